//! The prices of lastmile in the README and in the comparison are what `lastmile cost` prints.

use std::fs;
use std::process::Command;

use crate::pages;

/// The dollars for a million events of so many a day, of whose attempts 99 % succeed.
fn a_million(events_a_day: &str) -> String {
    let cost = Command::new(env!("CARGO_BIN_EXE_lastmile"))
        .args(["cost", "--events", events_a_day, "--success", "0.99"])
        .output()
        .expect("the program runs");
    let printed = String::from_utf8(cost.stdout).expect("it prints text");
    let (_, dollars) = printed.split_once("a million events: $").expect("it prints the price");
    let dollars = dollars.lines().next().expect("a line");
    let dollars: f64 = dollars.trim().parse().expect("a number");
    format!("${dollars:.2}")
}

#[test]
fn the_prices_of_the_readme_and_the_comparison_are_those_that_cost_prints() {
    let read = |name: &str| fs::read_to_string(pages::root().join(name)).expect("it is a page");
    let (readme, comparison) = (read("README.md"), read("docs/comparison.md"));
    let a_million_a_day = a_million("1e6");
    assert!(readme.contains(&a_million_a_day), "{a_million_a_day}");
    assert!(comparison.contains(&a_million_a_day), "{a_million_a_day}");
    for events_a_day in ["100e6", "1e9"] {
        let price = a_million(events_a_day);
        assert!(comparison.contains(&price), "{events_a_day} a day: {price}");
    }
}
