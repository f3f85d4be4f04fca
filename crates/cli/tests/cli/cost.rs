//! `lastmile cost` as a person uses it.

mod estimates;

use estimates::{json, list, need, number, run, subscription, sum, text};

#[test]
fn each_line_is_its_quantity_times_its_unit_price_and_the_day_is_their_sum() {
    let estimate = json(
        "--events 3e6 --success 0.9 --down PT6H --down-share 0.5 --dialect eventgrid --fan-out 2",
    );
    let mut sum = 0.0;
    for line in list(&estimate, "lines") {
        let (price, per) =
            text(line, "unit_price").split_once(" / ").expect("a price per something");
        let per = match per {
            "million" => 1e6,
            "10,000" => 1e4,
            "1,000" => 1e3,
            _ => 1.0,
        };
        let price: f64 = price.trim_start_matches('$').parse().expect("a number");
        let by_hand = number(line, "quantity") * price / per;
        let usd = number(line, "usd");
        assert!((by_hand - usd).abs() <= 0.005_001, "{line}");
        assert!(text(line, "source").starts_with("https://"), "{line}");
        sum += usd;
    }
    assert!((sum - number(&estimate["usd"], "day")).abs() < 0.1, "{sum}");
}

#[test]
fn the_policy_of_a_file_is_used_and_several_need_a_name() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("two.yaml");
    std::fs::write(&path, format!("{}---\n{}", subscription("few", 2), subscription("many", 5)))
        .expect("the file can be written");
    let path = path.display();
    let attempts = |name: &str| {
        number(
            &json(&format!("--events 1 --success 0 -f {path} --subscription a/b/{name}"))["delivery"],
            "attempts",
        )
    };
    assert_eq!((attempts("few"), attempts("many")), (2.0, 5.0));
    let unnamed = run(&format!("--events 1 -f {path}"));
    assert_eq!(unnamed.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&unnamed.stderr).into_owned();
    assert!(stderr.contains("a/b/few") && stderr.contains("a/b/many"), "{stderr}");
}

#[test]
fn the_limits_of_a_file_are_used() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("limited.yaml");
    let limited =
        subscription("limited", 2).replace("url: ", "maxPerSecond: 10, maxConcurrency: 4, url: ");
    std::fs::write(&path, limited).expect("the file can be written");
    let estimate = json(&format!("--events 1e6 -f {}", path.display()));
    for (what, limit) in [("requests a second", 10.0), ("requests at once", 4.0)] {
        assert!((number(need(&estimate, what), "limit") - limit).abs() < 1e-9, "{what}");
    }
    assert_eq!(estimate["gives_way_first"], "requests a second");
    assert!(sum(&estimate, "quantity", |_, what| what == "table written") > 0.0);
}

#[test]
fn an_invalid_load_is_a_usage_error_that_names_it() {
    for (arguments, named) in [
        ("", "--events"),
        ("--events many", "many"),
        ("--events 1.5", "1.5"),
        ("--events -1", "-1"),
        ("--events 1e99", "1e99"),
        ("--events 1e13 --fan-out 2", "--events"),
        ("--events 1 --success 99", "between 0 and 1"),
        ("--events 1 --success NaN", "NaN"),
        ("--events 1 --down 24", "90s, 30m, 2h"),
        ("--events 1 --down P15D", "14 days"),
        ("--events 1 --answer 11m", "10 minutes"),
        ("--events 1 --answer 50d", "10 minutes"),
        ("--events 1 --concurrency 30", "10, 20, 50, 100, 200, 500, 1000, 2000"),
        ("--events 1 --events-pollers 5", "MINIMUM-MAXIMUM"),
        ("--events 1 --events-pollers 1-2", "2 to 200"),
        ("--events 1 --events-pollers 3-2", "MINIMUM-MAXIMUM"),
        ("--events 1 --metrics-per owner", "owner"),
        ("--events 1 --failing -1", "-1"),
        ("--events 1 --slow 2", "between 0 and 1"),
        ("--events 1 --event-bytes 1048576", "1048576"),
        ("--events 1 --event-bytes 200000 --publish-batch 10", "1 MiB"),
        ("--events 1 --subscription a/b/c", "--file"),
        ("--events 1 -f nowhere.yaml", "nowhere.yaml"),
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
