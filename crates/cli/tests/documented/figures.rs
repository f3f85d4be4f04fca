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
/// Other services: the column after that of lastmile, and the list prices of a million events and
/// of a million attempts, which docs/reference/comparison-sources.md has. The custom event bus,
/// column 2, has no price.
const OTHERS: [(usize, f64, f64); 4] =
    [(1, 1.00, 0.20), (3, 0.60, 0.60), (4, 0.50, 0.60), (5, 100.00, 0.00)];

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
fn a_million(estimate: &Value, is_selected: impl Fn(&str) -> bool) -> String {
    let dollars: f64 = estimate["lines"]
        .as_array()
        .expect("an estimate has lines")
        .iter()
        .filter(|line| is_selected(line["service"].as_str().expect("a service")))
        .map(|line| line["usd"].as_f64().expect("a price is a number"))
        .sum();
    let events = estimate["events"].as_f64().expect("a number of events");
    price(dollars / events * 1e6)
}

fn price(dollars: f64) -> String {
    format!("${dollars:.2}").trim_end_matches(".00").to_owned()
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
    for name in ["README.md", "docs/coming-from/comparison.md"] {
        let page = fs::read_to_string(pages::root().join(name)).expect("it is a page");
        let (without, with) = (cells(&page, WITHOUT), cells(&page, WITH));
        for estimate in [&default].into_iter().chain(&windows) {
            let own = a_million(estimate, |service| !LOGS_AND_NETWORK.contains(&service));
            assert!(without[0].contains(&own), "{name}: {own} in {}", without[0]);
            let all = a_million(estimate, |_| true);
            assert!(with[0].contains(&all), "{name}: {all} in {}", with[0]);
        }
        let attempts = default["delivery"]["attempts"].as_f64().expect("a number");
        for (column, event, attempt) in OTHERS {
            let price = price(event + attempts * attempt);
            assert!(without[column].starts_with(&price), "{name}: {price} in {}", without[column]);
        }
    }
}

#[test]
fn the_comparison_has_the_prices_of_larger_loads() {
    let page = fs::read_to_string(pages::root().join("docs/coming-from/comparison.md"))
        .expect("it is a page");
    for load in ["10e6 --concurrency 20", "100e6 --concurrency 50"] {
        let options: Vec<&str> = load.split(' ').collect();
        let price = a_million(&estimate(&options), |_| true);
        assert!(page.contains(&format!("{price} for `--events {load}`")), "{load}: {price}");
    }
}
