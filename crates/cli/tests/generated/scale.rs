//! The numbers of `docs/scale.md`: what `lastmile cost` prints.
//!
//! A section is between `<!-- NAME -->` and `<!-- / -->`. A name that begins with `lastmile` is a command, and its
//! section is the output. The other sections are tables made from its JSON.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use crate::estimates::{json, list, need, number, printed, subscription, sum, text};

/// The deployment of the estimates for a billion events.
const TUNED: &str = "--batch-window 1 --concurrency 1000";
/// Options that a deployment can set without its publishers.
const TUNED_ALONE: &str = "--batch-window 1 --log-level failures";
/// Volumes of a day, and the least concurrency of which full batches of ten use at most half.
const VOLUMES: [(&str, &str); 4] = [("1e6", "10"), ("1e7", "20"), ("1e8", "50"), ("1e9", "500")];

/// Loads with 99 % successful attempts, and what a million of their events shall cost without the network: with a line
/// for each delivery, and with lines of failures only.
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
        "10 M a day, window 1 s, ten subscriptions each",
        "--events 1e7 --concurrency 20 --batch-window 1 --fan-out 10",
        [3.10, 0.80],
    ),
];

/// The price of a million events without the network, which costs the same everywhere.
fn million(estimate: &Value) -> f64 {
    let network = sum(estimate, "usd", |service, _| service == "network");
    (number(&estimate["usd"], "day") - network) / number(estimate, "events") * 1e6
}

/// The price of a million events through another service.
fn elsewhere_million(estimate: &Value, service: &str) -> f64 {
    let lines = list(estimate, "elsewhere").iter().filter(|line| line["service"] == service);
    lines.map(|line| number(line, "usd")).sum::<f64>() / number(estimate, "events") * 1e6
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

const LOADS: [(&str, &str); 4] = [
    ("100 %", "--success 1"),
    ("99 %", "--success 0.99"),
    ("90 %", "--success 0.9"),
    ("99 %, one destination of ten down for a day", "--success 0.99 --down P1D --down-share 0.1"),
];

/// The rows of the two large tables: events, the name of the load, the policy, and the estimate. Two
/// policies are compared only for a destination that stays down: else they cost the same.
fn days() -> Vec<(&'static str, &'static str, &'static str, Value)> {
    let mut days = Vec::new();
    for (events, deployed) in [("1e6", ""), ("1e9", TUNED)] {
        for (dialect, loads) in [("native", LOADS.as_slice()), ("eventgrid", &LOADS[3..])] {
            for (name, load) in loads {
                let estimate =
                    json(&format!("--events {events} {load} --dialect {dialect} {deployed}"));
                days.push((events, *name, dialect, estimate));
            }
        }
    }
    days
}

fn needed() -> String {
    let mut rows = Vec::new();
    for (events, name, dialect, estimate) in days() {
        let delivery = &estimate["delivery"];
        let deliveries = number(&estimate, "deliveries");
        rows.push(format!(
            "| {events} | {name} | {dialect} | {} | {} | {} | {} / {} | {} | {} |",
            short(deliveries * number(delivery, "attempts")),
            short(sum(&estimate, "quantity", |_, what| what.ends_with(" invoked"))),
            short(sum(&estimate, "quantity", |service, what| service == "SQS"
                && what != "fair queues")),
            short(number(need(&estimate, "in flight, events queue"), "amount")),
            short(number(need(&estimate, "in flight, retry queue"), "amount")),
            short(number(need(&estimate, "delayed messages, on average"), "amount")),
            short(deliveries * number(delivery, "dead_letters")),
        ));
    }
    let head = "| events a day | attempts succeed | policy | attempts | invocations | SQS requests | in flight, events / waits | waiting messages, on average | dead letters |";
    table(head, &rows)
}

fn money() -> String {
    let mut rows = Vec::new();
    for (events, name, dialect, estimate) in days() {
        let at_once = ["events", "waits"]
            .map(|of| need(&estimate, &format!("invocations at once, {of}")).clone());
        let service = |wanted: &str| short(sum(&estimate, "usd", |service, _| service == wanted));
        let gigabytes = sum(&estimate, "quantity", |_, what| what.starts_with("logs of"));
        let mut row = format!("| {events} | {name} | {dialect} |");
        for need in &at_once {
            let share = number(need, "share");
            let past = if share > 1.0 { "**" } else { "" };
            write!(row, " {past}{}{past} |", short(number(need, "limit") * share))
                .expect("a string takes it");
        }
        rows.push(format!(
            "{row} {} | {} | {} | {} | {} | **{}** | {} |",
            short(gigabytes),
            service("SQS"),
            service("Lambda"),
            service("CloudWatch"),
            short(sum(&estimate, "usd", |service, _| service == "S3" || service == "network")),
            short(number(&estimate["usd"], "day")),
            short(number(&estimate["usd"], "million_events")),
        ));
    }
    let head = "| events a day | attempts succeed | policy | concurrent invocations, events | waits | logs, GB | SQS $ | Lambda $ | CloudWatch $ | S3, network $ | $ a day | $ a million |";
    table(head, &rows)
}

fn waits() -> String {
    let mut rows = Vec::new();
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("long.yaml");
    std::fs::write(&path, subscription("long", 16)).expect("the file can be written");
    let defaults =
        ["eventgrid", "eventgrid-kubernetes", "eventgrid-namespace", "native", "knative"];
    let mut policies = defaults.map(|dialect| (dialect, format!("--dialect {dialect}"))).to_vec();
    policies.push(("native, `maxAttempts: 16`", format!("-f {}", path.display())));
    for (dialect, policy) in policies {
        let estimate = json(&format!("--events 1e6 --success 0 --outcome 500 {policy}"));
        let all = list(&estimate, "waits");
        let Some(longest) = all.iter().map(|wait| number(wait, "wait_ms")).reduce(f64::max) else {
            rows.push(format!(
                "| {dialect} | none: one attempt, unless `retry` says more | | | | | |"
            ));
            continue;
        };
        let long: Vec<&Value> =
            all.iter().filter(|wait| wait["over_one_message"] == true).collect();
        if long.is_empty() {
            rows.push(format!(
                "| {dialect} | none: the longest is {} min | | | | | |",
                short(longest / 60_000.0)
            ));
        }
        let request = unit_price(&estimate, "waits sent") + unit_price(&estimate, "fair queues");
        let mut seen = BTreeSet::new();
        for wait in long.into_iter().filter(|wait| seen.insert(wait["wait_ms"].as_u64())) {
            let messages = number(wait, "messages");
            let alone = 3.0 * messages;
            rows.push(format!(
                "| {dialect} | {} min | {messages} | {} | {alone} | {:.2} | {:.2} |",
                short(number(wait, "wait_ms") / 60_000.0),
                number(wait, "messages_most"),
                alone * request,
                alone / 10.0 * request,
            ));
        }
    }
    let head = "| defaults of | wait | messages | with all jitter | SQS requests, alone | $ a million, alone | $ a million, ten together |";
    table(head, &rows)
}

/// The price of a million, as a line quotes it.
fn unit_price(estimate: &Value, what: &str) -> f64 {
    let line = list(estimate, "lines")
        .iter()
        .find(|line| line["what"] == what)
        .expect("there is such a line");
    let quoted =
        text(line, "unit_price").strip_suffix(" / million").expect("a price for a million");
    quoted.trim_start_matches('$').parse().expect("a number")
}

fn limits() -> String {
    let rows = [
        ("99 %, as deployed by default", "--success 0.99"),
        ("99 %", "--success 0.99 --concurrency 100"),
        ("90 %", "--success 0.9 --concurrency 100"),
        ("99 %, failures hang for 30 s", "--success 0.99 --outcome timeout --concurrency 100"),
        ("99 %, answers take a second", "--success 0.99 --answer PT1S --concurrency 100"),
        ("every destination down for a day, native", "--down P1D --concurrency 100"),
        ("the same, they hang for 30 s", "--down P1D --outcome timeout --concurrency 100"),
        (
            "every destination down for a day, eventgrid",
            "--down P1D --dialect eventgrid --concurrency 100",
        ),
        (
            "one of ten down for a day, eventgrid",
            "--down P1D --down-share 0.1 --dialect eventgrid --concurrency 100",
        ),
        (
            "the same, window 1 s",
            "--down P1D --down-share 0.1 --dialect eventgrid --batch-window 1 --concurrency 100",
        ),
        (
            "the same, Concurrency 1000",
            "--down P1D --down-share 0.1 --dialect eventgrid --batch-window 1 --concurrency 1000",
        ),
        ("99 %, window 1 s", "--success 0.99 --batch-window 1 --concurrency 100"),
        ("99 %, the same, Concurrency 1000", "--success 0.99 --batch-window 1 --concurrency 1000"),
        ("99 %, 2 to 20 event pollers", "--success 0.99 --events-pollers 2-20 --concurrency 100"),
    ]
    .map(|(name, load)| {
        // All but the first are of an account whose quota was raised.
        let quota = if load.contains("--concurrency") { "--account-concurrency 2000" } else { "" };
        let estimate = json(&format!("--events 1e6 {load} {quota}"));
        let first = text(&estimate, "gives_way_first");
        let nearest = need(&estimate, first);
        let (limit, who) = (short(number(nearest, "limit")), text(nearest, "set_by"));
        format!("| {name} | {first} | {limit}, {who} | {} |", short(1e6 / number(nearest, "share")))
    });
    table("| load | first bottleneck | its limit | reached at events a day |", &rows)
}

fn what_processes_share() -> String {
    const SEVENTY: &str = "--events 1e9 --success 0.9 --concurrency 100";
    let rows = [
        ("a million events, all healthy", "--events 1e6 --success 0.99", ""),
        ("the same", "--events 1e6 --success 0.99", "--failing 100"),
        ("the same", "--events 1e6 --success 0.99", "--rate-limited 1"),
        ("the same", "--events 1e6 --success 0.99", "--concurrency-limited 1"),
        ("70 processes, all healthy", SEVENTY, ""),
        ("the same", SEVENTY, "--failing 1"),
        ("the same", SEVENTY, "--failing 100"),
        ("the same, probes hang for 30 s", SEVENTY, "--failing 100 --outcome timeout"),
        ("the same", SEVENTY, "--rate-limited 1"),
        ("the same, each gets fewer than one request a second", SEVENTY, "--rate-limited 1000"),
        ("the same", SEVENTY, "--concurrency-limited 1"),
    ]
    .map(|(name, load, options)| {
        let estimate = json(&format!("{load} {options}"));
        // The sum of no lines is a negative zero.
        let of = |member, wanted| 0.0 + sum(&estimate, member, |_, what| what == wanted);
        let [read, written] = ["table read", "table written"];
        let usd = of("usd", read) + of("usd", written);
        let options = if options.is_empty() { String::new() } else { format!("`{options}`") };
        let counts = [read, written].map(|what| short(of("quantity", what)));
        format!("| {name} | {options} | {} | {} | {} |", counts[0], counts[1], short(usd))
    });
    table("| load | options | reads | writes | $ a day |", &rows)
}

/// The cost of a million deliveries that wait a day for their destination.
fn outage() -> String {
    let rows = [
        ("as the template has it", ""),
        ("`LogLevel: warn`", "--log-level warn"),
        ("`DispatchBatchWindow: 1`", "--batch-window 1"),
        ("events of 10 KiB", "--event-bytes 10240"),
        ("without probation: eventgrid-kubernetes", "--dialect eventgrid-kubernetes"),
    ]
    .map(|(name, options)| {
        let estimate = json(&format!("--events 1e6 {options}"));
        let outage = &estimate["outage"];
        let of = |wanted: &[&str]| // The sum of no lines is a negative zero.
            short(0.0 + sum(outage, "usd", |service, _| wanted.contains(&service)));
        let services = [&["SQS"][..], &["Lambda"], &["CloudWatch"], &["S3", "DynamoDB", "network"]];
        let [day, ends] = ["day", "dead_letters"].map(|member| number(&outage["usd"], member));
        let options = if options.is_empty() { String::new() } else { format!("`{options}`") };
        let services = services.map(of).join(" | ");
        format!("| {name} | {options} | {services} | **{day:.2}** | {ends:.2} |")
    });
    let head = "| deployment | options | SQS $ | Lambda $ | CloudWatch $ | S3, table, network $ | $ for the day | dead letters then, $ more |";
    table(head, &rows)
}

/// The price of looking for changes, for some numbers of processes and topics.
fn looking() -> String {
    let rows = [(20, 12, 100), (100, 70, 1_000), (1_000, 700, 10_000)];
    let rows = rows.map(|(concurrency, processes, topics)| {
        let load = "--events 1e11 --success 0.9";
        let estimate = json(&format!("{load} --concurrency {concurrency} --topics {topics}"));
        let of = |member, wanted| sum(&estimate, member, |_, what| what == wanted);
        let [reads, looks] = ["subscriptions read", "subscriptions looked at"];
        let usd = of("usd", reads) + of("usd", looks);
        let counts = [reads, looks].map(|what| short(of("quantity", what)));
        let of_each = usd / f64::from(processes);
        format!(
            "| {concurrency} | {processes} | {topics} | {} | {} | {usd:.2} | {of_each:.4} |",
            counts[0], counts[1]
        )
    });
    let head = "| `Concurrency` | processes | topics | reads a day | pages listed a day | $ a day | $ a day for each process |";
    table(head, &rows)
}

/// The services beside, in the order of the tables.
const OTHERS: [&str; 5] = ["EventBridge", "SNS", "Event Grid", "Pub/Sub", "Svix"];
const OTHERS_HEAD: &str =
    "EventBridge, API destinations | SNS, HTTP | Event Grid, basic | Pub/Sub, push | Svix";

fn elsewhere() -> String {
    let rows = LOADS.map(|(name, load)| {
        let estimate = json(&format!("--events 1e6 {load} --dialect eventgrid --batch-window 5"));
        let others = OTHERS.map(|service| short(elsewhere_million(&estimate, service)));
        format!("| {name} | {} | {} |", short(million(&estimate)), others.join(" | "))
    });
    table(&format!("| attempts succeed | lastmile | {OTHERS_HEAD} |"), &rows)
}

fn volumes() -> String {
    let rows = VOLUMES.map(|(events, concurrency)| {
        let load = format!("--events {events} --concurrency {concurrency} --success 0.99");
        let of = |options: &str| json(&format!("{load} {options}"));
        let default = of("");
        let tuned = ["", "--publish-batch 10", "--events-per-message 10"]
            .map(|more| of(&format!("{TUNED_ALONE} {more}")));
        let ours = [&default].into_iter().chain(&tuned).map(|it| format!("{:.2}", million(it)));
        let others = OTHERS.map(|service| short(elsewhere_million(&default, service)));
        let a_day = [&default, &tuned[0]].map(|it| short(number(&it["usd"], "day")));
        let ours: Vec<String> = ours.collect();
        format!(
            "| {events} | {} | {} / {} | {} |",
            ours.join(" | "),
            a_day[0],
            a_day[1],
            others.join(" | ")
        )
    });
    let head = format!(
        "| events a day | default | tuned | tuned, ten messages per request | tuned, arrays of ten | $ a day with the network, default / tuned | {OTHERS_HEAD} |"
    );
    table(&head, &rows)
}

fn goals() -> String {
    let rows = GOALS.map(|(name, options, bounds)| {
        let of = |logged: &str, bound: f64| {
            let load = format!("{options} --success 0.99 --log-level {logged}");
            let costs = million(&json(&load));
            let over = costs - bound;
            let verdict =
                if over <= 0.0 { "met".to_owned() } else { format!("**missed by {over:.3}**") };
            format!("{costs:.2} | {bound:.2}, {verdict}")
        };
        let cells = [of("info", bounds[0]), of("failures", bounds[1])];
        format!("| {name} | `{options}` | {} |", cells.join(" | "))
    });
    let head = "| load, 99 % | options | all logged | at most | failures only | at most |";
    table(head, &rows)
}

fn turned_down() -> String {
    const LOAD: &str = "--events 1e6 --success 0.99";
    let base = number(&json(LOAD)["usd"], "day");
    let rows = [
        ("as the template has it", ""),
        ("publishers send arrays of ten", "--events-per-message 10"),
        ("batches wait 5 s", "--batch-window 5"),
        ("publishers send ten at a time", "--publish-batch 10"),
        ("half the memory", "--memory 128"),
        ("no line of what succeeds at once", "--log-level failures"),
        ("no line of any delivery", "--log-level warn"),
        (
            "all but the arrays",
            "--batch-window 5 --log-level failures --publish-batch 10 --memory 128",
        ),
        ("twice the memory", "--memory 512"),
        ("x86_64", "--architecture x86_64"),
        ("metrics of 10 topics", "--topics 10 --metrics-per topic"),
        ("metrics of 100 subscriptions", "--subscriptions 100 --metrics-per subscription"),
        ("answers take a second", "--answer PT1S --concurrency 100"),
        ("failures hang for 30 s", "--outcome timeout --concurrency 100"),
    ]
    .map(|(name, change)| {
        let day = number(&json(&format!("{LOAD} {change}"))["usd"], "day");
        let percent = (day / base - 1.0) * 100.0;
        let change = if change.is_empty() { String::new() } else { format!("`{change}`") };
        let percent =
            if percent.abs() < 0.5 { "–".to_owned() } else { format!("{percent:+.0} %") };
        format!("| {name} | {change} | {day:.2} | {percent} |")
    });
    table("| what | options | $ a day | |", &rows)
}

/// The expected section of this name.
fn expected(name: &str) -> String {
    match name {
        "needed" => needed(),
        "money" => money(),
        "waits" => waits(),
        "limits" => limits(),
        "looking" => looking(),
        "outage" => outage(),
        "table" => what_processes_share(),
        "elsewhere" => elsewhere(),
        "volumes" => volumes(),
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
const TABLES: [&str; 11] = [
    "needed",
    "money",
    "limits",
    "waits",
    "looking",
    "outage",
    "table",
    "elsewhere",
    "volumes",
    "goals",
    "turned down",
];

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
