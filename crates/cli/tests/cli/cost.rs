//! `lastmile cost` as a person uses it.

mod estimates;

use estimates::{json, list, number, run, text};

#[test]
fn each_line_is_its_quantity_times_its_unit_price_and_the_month_is_their_sum() {
    let estimate = json("--events 3e6 --success 0.5 --fan-out 20");
    let mut sum = 0.0;
    for line in list(&estimate, "lines") {
        let (price, per) =
            text(line, "unit_price").split_once(" / ").expect("a price per something");
        let per: f64 = per.replace(',', "").replace("million", "1e6").parse().unwrap_or(1.0);
        let price: f64 = price.trim_start_matches('$').parse().expect("a number");
        let (by_hand, usd) = (number(line, "quantity") * price / per, number(line, "usd"));
        assert!((by_hand - usd).abs() <= 1e-6 * usd, "{line}");
        assert!(text(line, "source").starts_with("https://"), "{line}");
        sum += usd;
    }
    assert!((sum - number(&estimate["usd"], "month")).abs() < 0.01, "{sum}");
}

#[test]
fn an_invalid_load_is_a_usage_error_that_names_it() {
    for (arguments, named) in [
        ("", "--events"),
        ("--events many", "many"),
        ("--events -1", "-1"),
        ("--events 1e99", "--events"),
        ("--events 1e12 --fan-out 1e4", "--events"),
        ("--events 1 --success 99", "between 0 and 1"),
        ("--events 1 --success NaN", "NaN"),
        ("--events 1 --answer 11m", "10 minutes"),
        ("--events 1 --answer 50d", "10 minutes"),
        ("--events 1 --concurrency 30", "10, 20, 50, 100, 200, 500, 1000, 2000"),
        ("--events 1 --event-bytes 1048576", "1048576"),
        ("--events 1 --event-bytes 200000 --publish-batch 10", "1 MiB"),
    ] {
        let output = run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && stderr.contains(named), "{arguments}: {stderr}");
    }
}

#[test]
fn a_load_per_second_and_per_day_has_the_same_estimate() {
    assert_eq!(json("--events 10 --per second"), json("--events 864e3"));
    assert_eq!(json("--events 30 --per month"), json("--events 1"));
}
