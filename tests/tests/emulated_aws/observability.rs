//! The signals that operators see of the deployed application:
//!
//! - metric lines in its logs;
//! - lines about deliveries;
//! - the nested stack with alarms and a dashboard.
//!
//! These tests are separate from those over fake ports, which cannot show that the real binaries
//! write whole lines and that CloudFormation accepts the templates.

use std::collections::BTreeSet;
use std::time::Duration;

use adapters::metrics::emf::VALUES_MAX;
use adapters::metrics::{Dimensions, Metric};
use serde_json::Value;

use crate::{Deployment, KILLED_LIMIT, alone_on_deployment, event, now, on_deployment};

/// The metric namespace of a stack named `lastmile` whose `MetricsNamespace` is empty.
const NAMESPACE: &str = "lastmile/lastmile";

/// Every alarm of a stack with `Observability=true`.
const ALARMS: [&str; 16] = [
    "dead-letters",
    "dead-letters-refused",
    "dead-letters-wait",
    "deadletter-errors",
    "deadletter-throttles",
    "destinations-disabled",
    "destinations-failing",
    "dispatch-errors",
    "dispatch-throttles",
    "errors-logged",
    "events-wait",
    "first-attempts-wait",
    "isolated-records-wait",
    "last-resort",
    "retries-wait",
    "slow-destinations-wait",
];

/// A metric line: its time, the names and values of its dimensions, and its metrics.
struct Counted {
    at_ms: u64,
    dimensions: Vec<(String, String)>,
    metrics: Vec<(Metric, Value)>,
}

#[test]
fn metric_lines_in_the_logs_are_valid_for_cloudwatch_with_one_value_per_metric_and_dimension_set() {
    alone_on_deployment(|deployment| async move {
        deployment.stack.publish("shop/counted", &event("counted-1")).await;
        // A process writes its counts during a later invocation.
        let invoking = tokio::spawn(async {
            loop {
                tokio::time::sleep(Duration::from_secs(5)).await;
                for _ in 0..20 {
                    deployment.stack.publish("shop/uncounted", &event("uncounted")).await;
                }
            }
        });
        let read_all =
            |lines: &[String]| lines.iter().filter_map(|line| read(line)).collect::<Vec<Counted>>();
        let is_ended = |lines: &[String]| {
            let of_topic = |metric| total(&read_all(lines), "topic", "shop/counted", metric);
            let matched = of_topic(Metric::MatchedEventCount);
            matched > 0
                && of_topic(Metric::DeliverySuccessCount) + of_topic(Metric::DeadLetteredCount)
                    == matched
        };
        let lines = log_lines_until(deployment, is_ended).await;
        invoking.abort();
        let counted = read_all(&lines);
        let mut once = BTreeSet::new();
        for line in counted
            .iter()
            .filter(|line| line.dimensions == [("topic".to_owned(), "shop/counted".to_owned())])
        {
            for (metric, _) in &line.metrics {
                assert!(
                    once.insert((line.at_ms, *metric)),
                    "{} is reported twice: {lines:#?}",
                    metric.name()
                );
            }
        }
        let sum = |metric| total(&counted, "topic", "shop/counted", metric);
        // A busy emulator may accept a publication more than once, because the client retries when
        // a response is lost.
        let published = sum(Metric::MatchedEventCount) / 3;
        assert_eq!(sum(Metric::MatchedEventCount), 3 * published);
        assert_eq!(sum(Metric::DeliverySuccessCount), 2 * published);
        assert_eq!(sum(Metric::DeadLetteredCount), published);
        // The busy destination refuses the first attempt only.
        let (failed, retried) =
            (sum(Metric::DeliveryAttemptFailCount), sum(Metric::RetryScheduledCount));
        assert_eq!((failed - published, retried >= 1), (retried, true));
        assert_eq!(sum(Metric::UnmatchedEventCount), 0);
        let reason = total(
            &counted,
            "reason",
            "UndeliverableDueToHttpBadRequest",
            Metric::DeadLetteredCount,
        );
        assert!(reason >= 1, "the reason is a dimension");
        assert!(
            total(&counted, "outcome", "Busy", Metric::DeliveryAttemptFailCount) >= 1,
            "the outcome is a dimension"
        );
    });
}

#[test]
fn the_log_shows_the_progress_of_an_event_by_its_id() {
    on_deployment(|deployment| async move {
        deployment.stack.publish("shop/told", &event("told-1")).await;
        let of_event = |lines: &[String]| -> Vec<Value> {
            let lines = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            lines.filter(|line| line["event_id"] == "told-1").collect()
        };
        let ends = |lines: &[String]| {
            let of_event = of_event(lines);
            let has = |name: &str| of_event.iter().any(|line| line["message"] == name);
            ["deadletter.stored", "delivery.ended", "delivery.delivered"].into_iter().all(has)
        };
        let lines = of_event(&log_lines_until(deployment, ends).await);
        let is_attempt = |line: &&Value| {
            ["delivery.attempted", "delivery.delivered"]
                .contains(&line["message"].as_str().unwrap_or_default())
        };
        assert!(lines.iter().filter(is_attempt).count() >= 3, "{lines:#?}");
        for line in &lines {
            for name in ["source", "type", "subscription", "delivery_id", "level", "timestamp"] {
                assert!(line[name].is_string(), "{name} is missing: {line}");
            }
        }
    });
}

#[test]
fn the_observability_stack_deploys_with_its_alarms_and_its_dashboard() {
    on_deployment(|deployment| async move {
        let observed = deployment.stack.observed();
        let alarms = observed["alarms"].as_object().expect("alarms by name");
        // Another test may have deployed a second stack with alarms of its own.
        let of_stack: Vec<(&str, &Value)> = alarms
            .iter()
            .filter_map(|(name, alarm)| Some((name.strip_prefix("lastmile-")?, alarm)))
            .collect();
        assert_eq!(of_stack.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ALARMS);
        for (name, alarm) in of_stack {
            assert_eq!(
                alarm["AlarmActions"][0], "arn:aws:sns:us-east-1:000000000000:alarms",
                "{name}"
            );
            assert_eq!(alarm["TreatMissingData"], "notBreaching", "{name}");
        }
        let widgets = observed["dashboards"]["lastmile"]["widgets"]
            .as_array()
            .expect("the dashboard has widgets");
        assert!(
            !widgets.is_empty()
                && widgets.iter().all(|widget| widget["properties"]["region"] == "us-east-1")
        );
    });
}

/// Waits until the log lines of both functions are complete, and returns them.
async fn log_lines_until(
    deployment: &'static Deployment,
    is_complete: impl Fn(&[String]) -> bool,
) -> Vec<String> {
    let deadline = now() + KILLED_LIMIT;
    loop {
        let observed = tokio::task::spawn_blocking(|| deployment.stack.observed())
            .await
            .expect("observe.sh runs");
        let groups = observed["logs"].as_object().expect("log lines by group").values();
        let lines: Vec<String> = groups
            .flat_map(|lines| {
                lines
                    .as_array()
                    .expect("lines")
                    .iter()
                    .filter_map(Value::as_str)
                    .map(ToOwned::to_owned)
            })
            .collect();
        if is_complete(&lines) {
            return lines;
        }
        assert!(now() < deadline, "no such log lines within {KILLED_LIMIT:?}: {lines:#?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Returns the sum of a counting metric over all invocations, for this value of one dimension.
fn total(counted: &[Counted], dimension: &str, value: &str, metric: Metric) -> u64 {
    let wanted = [(dimension.to_owned(), value.to_owned())];
    let of_combination = counted.iter().filter(|line| line.dimensions == wanted);
    let values = of_combination.flat_map(|line| &line.metrics).filter(|(kind, _)| *kind == metric);
    values.map(|(_, value)| value.as_u64().expect("a count is a number")).sum()
}

/// Validates a metric line against the specification; `None` for other lines.
fn read(line: &str) -> Option<Counted> {
    let document: Value = serde_json::from_str(line).ok()?;
    let metadata = document.get("_aws")?;
    let at_ms = metadata["Timestamp"].as_u64().expect("a line has a time");
    assert!(at_ms > 1_700_000_000_000, "milliseconds: {line}");
    let [directive] = metadata["CloudWatchMetrics"].as_array().expect("directives").as_slice()
    else {
        panic!("one directive is expected: {line}")
    };
    assert_eq!(directive["Namespace"], NAMESPACE);
    let [set] = directive["Dimensions"].as_array().expect("dimension sets").as_slice() else {
        panic!("one dimension set is expected: {line}")
    };
    let names: Vec<&str> =
        set.as_array().expect("names").iter().map(|name| name.as_str().expect("a name")).collect();
    let dimensions = names
        .iter()
        .map(|name| ((*name).to_owned(), document[name].as_str().expect("text").to_owned()));
    let metrics: Vec<(Metric, Value)> = directive["Metrics"]
        .as_array()
        .expect("metrics")
        .iter()
        .map(|definition| {
            let name = definition["Name"].as_str().expect("a metric has a name");
            let metric = Metric::ALL
                .into_iter()
                .find(|metric| metric.name() == name)
                .expect("a metric of ours");
            assert_eq!(definition["Unit"], metric.unit(), "{line}");
            let allowed = metric
                .dimensions()
                .iter()
                .map(|dimensions: &Dimensions| dimensions.names())
                .collect::<Vec<_>>();
            assert!(allowed.contains(&names.as_slice()), "{name} has no such dimensions: {line}");
            (metric, document[name].clone())
        })
        .collect();
    let distinct: BTreeSet<Metric> = metrics.iter().map(|(metric, _)| *metric).collect();
    assert_eq!(distinct.len(), metrics.len(), "one value per metric: {line}");
    for (metric, value) in &metrics {
        match value {
            Value::Number(_) => assert_eq!(metric.unit(), "Count", "{line}"),
            Value::Array(values) => assert!((1..=VALUES_MAX).contains(&values.len()), "{line}"),
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Object(_) => {
                panic!("no value of a metric: {line}")
            }
        }
    }
    Some(Counted { at_ms, dimensions: dimensions.collect(), metrics })
}
