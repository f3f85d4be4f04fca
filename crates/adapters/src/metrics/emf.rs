//! Formats a tally in CloudWatch's embedded metric format: JSON lines on standard output. Pure.
//!
//! Each combination of dimension values has a line with one dimension set, because a line with two
//! sets would attribute its values to both. Values beyond the limit of a line continue in further
//! lines, which contain no counts. The lines are built as text, because no part needs escaping.
//! <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>

use super::tally::{Tally, Totals};
use super::{Dimensions, Metric};

/// Maximum number of values of a metric in one line.
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>
pub const VALUES_MAX: usize = 100;

/// True if the text is a valid namespace: letters, digits, spaces and `. - _ / #`, at most 255
/// characters, beginning with a letter or digit, and not reserved by Amazon.
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricData.html>
#[must_use]
pub fn is_namespace(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b" .-_/#".contains(&byte);
    let begins_well =
        text.starts_with(|first: char| first.is_ascii_alphanumeric()) && !text.starts_with("AWS/");
    begins_well && text.len() <= 255 && text.bytes().all(allowed)
}

/// Formats a tally as lines, without line ends. The namespace must be [valid](is_namespace).
#[must_use]
pub fn lines(tally: &Tally, namespace: &str, now_ms: u64) -> Vec<String> {
    let mut lines = Vec::new();
    for (dimensions, values, totals) in tally.totals() {
        for index in 0..totals.most_values().div_ceil(VALUES_MAX).max(1) {
            let metrics = metrics(totals, index);
            lines.push(line(namespace, now_ms, dimensions, &values, &metrics));
        }
    }
    lines
}

/// Returns the metrics of line `index`. The first line has the counts, and each line has as many
/// measured values as fit.
fn metrics(totals: &Totals, index: usize) -> Vec<(Metric, String)> {
    let counts = totals.counts.iter().filter(|_| index == 0);
    let counts = counts.map(|(metric, count)| (*metric, count.to_string()));
    let measured = totals.measured.iter().filter_map(|(metric, values)| {
        let values = values.chunks(VALUES_MAX).nth(index)?;
        Some((*metric, format!("[{}]", joined(values))))
    });
    counts.chain(measured).collect()
}

fn line(
    namespace: &str,
    now_ms: u64,
    dimensions: Dimensions,
    values: &[String],
    metrics: &[(Metric, String)],
) -> String {
    let names = dimensions.names();
    let directive = format!(
        r#"{{"Namespace":"{namespace}","Dimensions":[[{}]],"Metrics":[{}]}}"#,
        joined(names.iter().map(|name| format!("\"{name}\""))),
        joined(metrics.iter().map(|(metric, _)| definition(*metric)))
    );
    let dimensions = names.iter().zip(values).map(|(name, value)| format!(r#""{name}":"{value}""#));
    let numbers = metrics.iter().map(|(metric, value)| format!(r#""{}":{value}"#, metric.name()));
    format!(
        r#"{{"_aws":{{"Timestamp":{now_ms},"CloudWatchMetrics":[{directive}]}},{}}}"#,
        joined(dimensions.chain(numbers))
    )
}

fn definition(metric: Metric) -> String {
    format!(r#"{{"Name":"{}","Unit":"{}"}}"#, metric.name(), metric.unit())
}

fn joined<T: ToString>(parts: impl IntoIterator<Item = T>) -> String {
    let parts: Vec<String> = parts.into_iter().map(|part| part.to_string()).collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use delivery::delivery::outcome::Outcome;
    use delivery::delivery::reason::Reason;
    use delivery::subscription::name::SubscriptionName;
    use serde_json::{Value, json};

    use super::*;
    use crate::metrics::{Label, Splits};

    const BY_TOPIC: Splits = Splits { topic: true, outcome: false, subscription: false };

    fn name(text: &str) -> SubscriptionName {
        text.parse().unwrap()
    }

    fn parsed(tally: &Tally) -> Vec<Value> {
        lines(tally, "lastmile", 1_795_158_180_000)
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn a_line_has_the_members_of_the_specification() {
        let mut tally = Tally::new(BY_TOPIC);
        tally.count(Metric::DeliverySuccessCount, &name("shop/orders/billing"), Label::None);
        tally.measure(Metric::EventAgeAtDeliveryInMs, &name("shop/orders/billing"), 42);
        let directive = |dimensions: Value| {
            json!({"Timestamp": 1_795_158_180_000_u64, "CloudWatchMetrics": [{
                "Namespace": "lastmile",
                "Dimensions": [dimensions],
                "Metrics": [
                    {"Name": "DeliverySuccessCount", "Unit": "Count"},
                    {"Name": "EventAgeAtDeliveryInMs", "Unit": "Milliseconds"},
                ],
            }]})
        };
        let expected = [
            json!({"_aws": directive(json!([])), "DeliverySuccessCount": 1, "EventAgeAtDeliveryInMs": [42]}),
            json!({
                "_aws": directive(json!(["topic"])), "topic": "shop/orders",
                "DeliverySuccessCount": 1, "EventAgeAtDeliveryInMs": [42],
            }),
        ];
        assert_eq!(parsed(&tally), expected);
    }

    #[test]
    fn every_metric_in_every_dimension_set_is_one_line_per_combination_of_one_line_each() {
        let mut tally = Tally::new(Splits::ALL);
        for topic in ["shop/orders", "\"quoted\\/näme"] {
            let subscription = name(&format!("{topic}/billing"));
            tally.count(
                Metric::DeliveryAttemptFailCount,
                &subscription,
                Label::Outcome(Outcome::TimedOut),
            );
            tally.count(
                Metric::DeadLetteredCount,
                &subscription,
                Label::Reason(Reason::TimeToLiveExceeded.into()),
            );
        }
        let lines = lines(&tally, "lastmile", 1);
        assert_eq!(lines.len(), 1 + 2 + 1 + 1 + 2);
        for line in &lines {
            assert!(!line.contains('\n') && line.is_ascii(), "{line}");
            serde_json::from_str::<Value>(line).unwrap();
        }
    }

    #[test]
    fn values_that_a_line_cannot_hold_go_on_in_further_lines_and_counts_are_written_once() {
        for (count, expected) in [(99, 1), (100, 1), (101, 2), (5_000, 50)] {
            let mut tally = Tally::new(Splits::default());
            for value in 0..count {
                tally.count(Metric::DeliverySuccessCount, &name("a/b/c"), Label::None);
                tally.measure(Metric::DestinationProcessingDurationInMs, &name("a/b/c"), value);
            }
            tally.measure(Metric::EventAgeAtDeliveryInMs, &name("a/b/c"), 1);
            let lines = parsed(&tally);
            assert_eq!(lines.len(), expected);
            let counts: Vec<u64> =
                lines.iter().filter_map(|line| line["DeliverySuccessCount"].as_u64()).collect();
            assert_eq!(counts, [count]);
            let values = lines.iter().flat_map(|line| {
                let values = line["DestinationProcessingDurationInMs"].as_array().unwrap();
                assert!((1..=VALUES_MAX).contains(&values.len()));
                values.iter().map(|value| value.as_u64().unwrap())
            });
            assert!(values.eq(0..count), "every value, once");
            let ages = lines.iter().filter(|line| line.get("EventAgeAtDeliveryInMs").is_some());
            assert_eq!(ages.count(), 1);
        }
    }

    #[test]
    fn a_namespace_needs_no_escaping_and_is_not_one_of_amazons() {
        for good in ["lastmile", "lastmile/eu #1", "shop.lastmile_2"] {
            assert!(is_namespace(good), "{good}");
        }
        for bad in ["", "AWS/Lambda", ":x", " x", "a\"b", "ä", &"x".repeat(256)] {
            assert!(!is_namespace(bad), "{bad}");
        }
    }
}
