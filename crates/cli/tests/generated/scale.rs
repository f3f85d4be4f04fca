//! The numbers of `docs/reference/scale.md`: what `lastmile cost` prints.
//!
//! A section is between `<!-- NAME -->` and `<!-- / -->`. A name that begins with `lastmile` is a command, and its
//! section is the output. The other sections are tables made from its JSON.

use std::fmt::Write as _;

use serde_json::Value;

use crate::estimates::{json, list, number, printed, text};

/// A million events a day, with the defaults of the template.
const LOAD: &str = "--events 1e6 --success 0.99";
/// Options that a deployment can set without its publishers.
const TUNED_ALONE: &str = "--batch-window 1 --log-level failures";
/// Volumes of a day, and the least concurrency of which full batches of ten use at most half.
const VOLUMES: [(&str, &str); 4] = [("1e6", "10"), ("1e7", "20"), ("1e8", "50"), ("1e9", "500")];

/// Loads with 99 % successful attempts, and what a million of their events shall cost without the
/// network: with a line for each delivery, and with lines of failures only.
const GOALS: [(&str, &str, [f64; 2]); 6] = [
    ("1 M a day, the defaults", "--events 1e6", [2.20, 2.00]),
    ("1 M a day, window 1 s", "--events 1e6 --batch-window 1", [1.45, 1.25]),
    ("10 M a day, window 1 s", "--events 1e7 --concurrency 20 --batch-window 1", [0.82, 0.60]),
    (
        "the same, publishers send ten messages per request",
        "--events 1e7 --concurrency 20 --batch-window 1 --publish-batch 10",
        [0.46, 0.25],
    ),
    (
        "100 M a day, window 1 s, arrays of ten",
        "--events 1e8 --concurrency 50 --batch-window 1 --events-per-message 10",
        [0.34, 0.12],
    ),
    (
        "10 M a day, window 1 s, ten subscriptions per event",
        "--events 1e7 --concurrency 20 --batch-window 1 --fan-out 10",
        [3.10, 0.80],
    ),
];

/// The sum of a member over the lines that match.
fn sum(estimate: &Value, member: &str, is_counted: impl Fn(&str, &str) -> bool) -> f64 {
    let lines = list(estimate, "lines")
        .iter()
        .filter(|line| is_counted(text(line, "service"), text(line, "what")));
    lines.map(|line| number(line, member)).sum()
}

fn need<'a>(estimate: &'a Value, name: &str) -> &'a Value {
    list(estimate, "needs")
        .iter()
        .find(|need| need["what"] == name)
        .unwrap_or_else(|| panic!("no need {name}"))
}

/// The price of a million events without the network, which costs the same everywhere.
fn million(estimate: &Value) -> f64 {
    let network = sum(estimate, "usd", |service, _| service == "network");
    (number(&estimate["usd"], "month") - network) / number(estimate, "events") * 1e6
}

/// A number with three significant digits, for a table.
fn short(number: f64) -> String {
    for (step, unit) in [(1e9, " G"), (1e6, " M"), (1e3, " k"), (1.0, "")] {
        if number >= step {
            let scaled = number / step;
            let digits = if scaled >= 99.95 { 0 } else { usize::from(scaled < 9.995) + 1 };
            let rounded = format!("{scaled:.digits$}");
            let rounded = if digits > 0 {
                rounded.trim_end_matches('0').trim_end_matches('.')
            } else {
                &rounded
            };
            return format!("{rounded}{unit}");
        }
    }
    format!("{number:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A markdown table.
fn table(head: &str, rows: &[String]) -> String {
    let rule = "|---".repeat(head.matches('|').count() - 1);
    format!("{head}\n{rule}|\n{}\n", rows.join("\n"))
}

/// Options as a cell.
fn cell(options: &str) -> String {
    if options.is_empty() { String::new() } else { format!("`{options}`") }
}

fn volumes() -> String {
    let rows = VOLUMES.map(|(events, concurrency)| {
        let load = format!("--events {events} --concurrency {concurrency} --success 0.99");
        let estimated = |options: &str| json(&format!("{load} {options}"));
        let default = estimated("");
        let tuned = ["", "--publish-batch 10", "--events-per-message 10"]
            .map(|more| estimated(&format!("{TUNED_ALONE} {more}")));
        let all: Vec<&Value> = [&default].into_iter().chain(&tuned).collect();
        let millions: Vec<String> =
            all.iter().map(|estimate| format!("{:.2}", million(estimate))).collect();
        let months = [&default, &tuned[0]].map(|estimate| short(number(&estimate["usd"], "month")));
        format!(
            "| {events} | {concurrency} | {} | {} / {} |",
            millions.join(" | "),
            months[0],
            months[1]
        )
    });
    let head = "| events a day | `Concurrency` | default | tuned | tuned, ten messages per request | tuned, arrays of ten | $ a month with the network, default / tuned |";
    table(head, &rows)
}

fn limits() -> String {
    let rows = [
        ("99 %, as deployed by default", "--success 0.99"),
        ("99 %", "--success 0.99 --concurrency 100"),
        ("90 %", "--success 0.9 --concurrency 100"),
        ("99 %, responses take a second", "--success 0.99 --answer 1s --concurrency 100"),
        ("99 %, window 1 s", "--success 0.99 --batch-window 1 --concurrency 100"),
        ("99 %, the same, Concurrency 1000", "--success 0.99 --batch-window 1 --concurrency 1000"),
        ("no attempt succeeds", "--success 0 --concurrency 100"),
        ("the same, window 1 s", "--success 0 --batch-window 1 --concurrency 100"),
    ]
    .map(|(name, load)| {
        let estimate = json(&format!("--events 1e6 {load}"));
        let first = text(&estimate, "first_limit");
        let nearest = need(&estimate, first);
        let (limit, set_by) = (short(number(nearest, "limit")), text(nearest, "set_by"));
        let waiting = short(number(&estimate, "waiting_max"));
        let reached = short(1e6 / number(nearest, "share"));
        format!("| {name} | {first} | {limit}, {set_by} | {reached} | {waiting} |")
    });
    let head =
        "| load | first limit | it is | reached at events a day | deliveries that may wait |";
    table(head, &rows)
}

/// The price of a million deliveries that wait or are given up.
fn beside() -> String {
    let rows = [
        ("defaults of the template", ""),
        ("`DispatchBatchWindow: 1`", "--batch-window 1"),
        ("events of 10 KiB", "--event-bytes 10240"),
    ]
    .map(|(name, options)| {
        let estimate = json(&format!("--events 1e6 {options}"));
        let price = |member| format!("{:.2}", number(&estimate["usd_of_a_million"], member));
        let costs = ["waiting_day", "dead_letters", "replay"].map(price);
        format!("| {name} | {} | {} |", cell(options), costs.join(" | "))
    });
    let head = "| deployment | options | $ for a day of waiting | $ for dead letters, kept a month | $ for their replay |";
    table(head, &rows)
}

fn goals() -> String {
    let rows = GOALS.map(|(name, options, bounds)| {
        let comparison = |logged: &str, bound: f64| {
            let load = format!("{options} --success 0.99 --log-level {logged}");
            let costs = million(&json(&load));
            let over = costs - bound;
            let verdict =
                if over <= 0.0 { "met".to_owned() } else { format!("**missed by {over:.3}**") };
            format!("{costs:.2} | {bound:.2}, {verdict}")
        };
        let cells = [comparison("info", bounds[0]), comparison("failures", bounds[1])];
        format!("| {name} | `{options}` | {} |", cells.join(" | "))
    });
    let head = "| load, 99 % | options | all logged | at most | failures only | at most |";
    table(head, &rows)
}

fn turned_down() -> String {
    let base = number(&json(LOAD)["usd"], "month");
    let rows = [
        ("defaults of the template", ""),
        ("publishers send arrays of ten events", "--events-per-message 10"),
        ("batches wait 5 s", "--batch-window 5"),
        ("publishers send ten messages per request", "--publish-batch 10"),
        ("no log line for deliveries that succeed at once", "--log-level failures"),
        (
            "all of the above, without arrays",
            "--batch-window 5 --log-level failures --publish-batch 10",
        ),
        ("responses take a second", "--answer 1s --concurrency 100"),
        ("ten subscriptions per event", "--fan-out 10"),
    ]
    .map(|(name, change)| {
        let month = number(&json(&format!("{LOAD} {change}"))["usd"], "month");
        let percent = (month / base - 1.0) * 100.0;
        let percent =
            if percent.abs() < 0.5 { "–".to_owned() } else { format!("{percent:+.0} %") };
        format!("| {name} | {} | {month:.2} | {percent} |", cell(change))
    });
    table("| what | options | $ a month | |", &rows)
}

/// The expected section of this name.
fn expected(name: &str) -> String {
    match name {
        "volumes" => volumes(),
        "limits" => limits(),
        "beside" => beside(),
        "goals" => goals(),
        "turned down" => turned_down(),
        command => {
            let arguments = command
                .strip_prefix("lastmile cost ")
                .unwrap_or_else(|| panic!("nothing is named {name}"));
            format!("```text\n{}```\n", printed(arguments))
        }
    }
}

/// The sections of the page that are not the output of a command.
const TABLES: [&str; 5] = ["volumes", "limits", "beside", "goals", "turned down"];

/// The page with every section written anew.
pub(crate) fn page(current: &str) -> String {
    let (mut written, mut rest, mut names) = (String::new(), current, Vec::new());
    while let Some((before, after)) = rest.split_once("<!-- ") {
        let (name, after) = after.split_once(" -->\n").expect("a mark ends its line");
        let (_, after) =
            after.split_once("<!-- / -->\n").unwrap_or_else(|| panic!("{name} has no end"));
        write!(written, "{before}<!-- {name} -->\n{}<!-- / -->\n", expected(name))
            .expect("a string takes it");
        names.push(name);
        rest = after;
    }
    assert!(TABLES.iter().all(|name| names.contains(name)), "{names:?}");
    written + rest
}
