//! A tally in CloudWatch's embedded metric format: JSON lines on standard output. Pure.
//!
//! One line per combination of dimension values, with one dimension set: a line with two sets would
//! attribute its values to both. The lines are built as text: no part of them needs escaping, and
//! they are written in every invocation.
//! <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>

use super::tally::{Tally, Totals};
use super::{Dimensions, Metric};

/// The most values of a metric in one line.
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>
pub const VALUES_MAX: usize = 100;

/// Whether this is a valid namespace: letters, digits, spaces and `. - _ / #`, at most 255 of them,
/// the first a letter or digit, and not one of Amazon's.
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricData.html>
#[must_use]
pub fn is_namespace(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b" .-_/#".contains(&byte);
    let begins_well =
        text.starts_with(|first: char| first.is_ascii_alphanumeric()) && !text.starts_with("AWS/");
    begins_well && text.len() <= 255 && text.bytes().all(allowed)
}

/// The lines of a tally, without line ends. The namespace has to be [valid](is_namespace).
#[must_use]
pub fn lines(tally: &Tally, namespace: &str, now_ms: u64) -> Vec<String> {
    tally
        .totals()
        .map(|(dimensions, values, totals)| line(namespace, now_ms, dimensions, &values, totals))
        .collect()
}

fn line(
    namespace: &str,
    now_ms: u64,
    dimensions: Dimensions,
    values: &[String],
    totals: &Totals,
) -> String {
    let names = dimensions.names();
    let counted = totals.counts.iter().map(|(metric, count)| (*metric, count.to_string()));
    let measured = totals.measured.iter();
    let measured =
        measured.map(|(metric, values)| (*metric, format!("[{}]", joined(thinned(values)))));
    let metrics: Vec<(Metric, String)> = counted.chain(measured).collect();
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

/// The values, or as many as a line can hold: then the smallest, the largest, and evenly spaced
/// ones between, sorted, so that percentiles stay right. Another metric counts how many there were.
fn thinned(values: &[u64]) -> Vec<u64> {
    if values.len() <= VALUES_MAX {
        return values.to_vec();
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    (0..VALUES_MAX).map(|index| sorted[index * (sorted.len() - 1) / (VALUES_MAX - 1)]).collect()
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
    use crate::metrics::Label;

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
        let mut tally = Tally::new(false);
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
        let mut tally = Tally::new(true);
        for topic in ["shop/orders", "\"quoted\\/näme"] {
            let of = name(&format!("{topic}/billing"));
            tally.count(Metric::DeliveryAttemptFailCount, &of, Label::Outcome(Outcome::TimedOut));
            tally.count(
                Metric::DeadLetteredCount,
                &of,
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
    fn more_values_than_a_line_can_hold_are_sampled() {
        for (count, sent) in [(99, 99), (100, 100), (101, 100), (5_000, 100)] {
            let mut tally = Tally::new(false);
            for value in (1..=count).rev() {
                tally.measure(Metric::DestinationProcessingDurationInMs, &name("a/b/c"), value);
            }
            let line = &parsed(&tally)[0];
            let mut values: Vec<u64> =
                serde_json::from_value(line["DestinationProcessingDurationInMs"].clone()).unwrap();
            values.sort_unstable();
            assert_eq!((values.len(), values[0], *values.last().unwrap()), (sent, 1, count));
            assert!(
                values[sent / 2].abs_diff(count / 2) <= count / 50 + 1,
                "the median of {count} is {}",
                values[sent / 2]
            );
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
