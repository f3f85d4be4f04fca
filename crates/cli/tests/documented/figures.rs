//! The prices of the README and of the comparison are those that `lastmile cost` prints.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::pages;

/// The row of what the services charge for their own work.
const WITHOUT: &str = "a million deliveries, without logs and network";
/// The row of what lastmile costs in all.
const WITH: &str = "with logs, metrics and network";
/// Services of an estimate that count in the second row only.
const LOGS_AND_NETWORK: [&str; 2] = ["CloudWatch", "network"];
/// Other services, with their column after that of lastmile. The custom event bus, column 2, has no price.
const OTHERS: [(&str, usize); 4] = [("EventBridge", 1), ("Event Grid", 3), ("SNS", 4), ("Svix", 5)];

/// The estimate for a day on which 99 % of the attempts succeed.
fn estimate(options: &[&str]) -> Value {
    let cost = Command::new(env!("CARGO_BIN_EXE_lastmile"))
        .args(["cost", "--success", "0.99", "--output", "json", "--events"])
        .args(options)
        .output()
        .expect("the program runs");
    serde_json::from_slice(&cost.stdout).expect("it prints JSON")
}

/// The dollars per million events of those lines whose service is selected.
fn a_million(estimate: &Value, lines: &str, is_selected: impl Fn(&str) -> bool) -> String {
    let text = |line: &Value, member: &str| line[member].as_str().expect(member).to_owned();
    let dollars: f64 = estimate[lines]
        .as_array()
        .expect("an estimate has lines")
        .iter()
        .filter(|line| is_selected(&text(line, "service")))
        .map(|line| text(line, "usd").parse::<f64>().expect("a price is a number"))
        .sum();
    let events = estimate["events"].as_f64().expect("a number of events");
    let price = format!("${:.2}", dollars / events * 1e6);
    price.trim_end_matches(".00").to_owned()
}

/// The cells of a row after its name.
fn cells(page: &str, row: &str) -> Vec<String> {
    let start = format!("| {row} |");
    let cells = page.lines().find_map(|line| line.strip_prefix(&start)).expect(row);
    cells.split('|').map(|cell| cell.trim().to_owned()).collect()
}

#[test]
fn the_prices_of_the_readme_and_the_comparison_are_those_that_cost_prints() {
    let default = estimate(&["1e6"]);
    let windows = ["1", "5"].map(|seconds| estimate(&["1e6", "--batch-window", seconds]));
    for name in ["README.md", "docs/comparison.md"] {
        let page = fs::read_to_string(pages::root().join(name)).expect("it is a page");
        let (without, with) = (cells(&page, WITHOUT), cells(&page, WITH));
        for estimate in [&default].into_iter().chain(&windows) {
            let own = a_million(estimate, "lines", |service| !LOGS_AND_NETWORK.contains(&service));
            assert!(without[0].contains(&own), "{name}: {own} in {}", without[0]);
            let all = a_million(estimate, "lines", |_| true);
            assert!(with[0].contains(&all), "{name}: {all} in {}", with[0]);
        }
        for (other, column) in OTHERS {
            let price = a_million(&default, "elsewhere", |service| service == other);
            assert!(without[column].starts_with(&price), "{name}: {other}: {price}");
        }
    }
}

#[test]
fn the_comparison_has_the_prices_of_larger_loads() {
    let page = fs::read_to_string(pages::root().join("docs/comparison.md")).expect("it is a page");
    for load in ["10e6 --concurrency 20", "100e6 --concurrency 50"] {
        let options: Vec<&str> = load.split(' ').collect();
        let price = a_million(&estimate(&options), "lines", |_| true);
        assert!(page.contains(&format!("{price} for `--events {load}`")), "{load}: {price}");
    }
}
