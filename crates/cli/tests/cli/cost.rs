//! `lastmile cost` as a person uses it.

mod estimates;

use estimates::{json, list, number, text};

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
