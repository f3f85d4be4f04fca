//! The metrics of an invocation. Each counts once per dimension set, in one line per combination of
//! dimension values.

use std::collections::BTreeMap;

use adapters::metrics::{Metric, MetricsSettings, NAMESPACE, Splits};
use adapters::telemetry::Telemetry;
use deadletter::DeadLetters;
use delivery::delivery::outcome::TransportResult;
use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, Publication};
use delivery::ports::{Attribute, Clock as _, PutError, QueueName, Record};
use delivery::subscription::Disable;
use delivery::subscription::catalogue::Catalogue;
use delivery::wire::write_publication;
use lastmile_tests::fake_ports::reactions::{Reaction, answers, times_out_after};
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};
use serde_json::Value;

use crate::examples::{
    EVENT, carried, catalogue_from, catalogue_of, container, dead_letter_record, delivery, large,
    letter, record, retry_record, subscription, subscriptions, subscriptions_with_destination,
};
use crate::process::Process;

/// One event for four destinations: one accepts it, one is busy, one refuses it, and one refuses it
/// without a dead letter. There is also a topic whose events no filter matches.
const SUBSCRIPTIONS: &str = "
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: takes}
spec: {destination: {url: 'https://takes.example.com/'}, retry: {jitterPercent: 0}}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: busy}
spec: {destination: {url: 'https://busy.example.com/'}, retry: {jitterPercent: 0}}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: refuses}
spec: {destination: {url: 'https://refuses.example.com/'}, retry: {jitterPercent: 0}}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: drops}
spec: {destination: {url: 'https://drops.example.com/'}, retry: {jitterPercent: 0}, deadLetter: none}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: quiet, name: picky}
spec: {destination: {url: 'https://picky.example.com/'}, filter: {exact: {type: never}}}
";

fn catalogue() -> Catalogue {
    catalogue_from(SUBSCRIPTIONS)
}

/// Splits metrics by everything but the subscription.
fn telemetry() -> Telemetry {
    let splits = Splits { subscription: false, ..Splits::ALL };
    Telemetry::new(MetricsSettings { namespace: NAMESPACE.to_owned(), splits })
}

fn process(ports: &FakePorts) -> Process {
    Process::new(ports.clone()).with_telemetry(telemetry())
}

/// The metrics in the lines: `<dimension values> <metric>` and its value.
fn metric_values(lines: &[String]) -> BTreeMap<String, Value> {
    let mut reported = BTreeMap::new();
    for line in lines {
        let line: Value = serde_json::from_str(line).expect("a line is JSON");
        let directive = &line["_aws"]["CloudWatchMetrics"][0];
        let dimensions = directive["Dimensions"][0].as_array().expect("a dimension set").iter();
        let value = |name: &Value| {
            name.as_str().and_then(|name| line[name].as_str()).expect("a dimension has a value")
        };
        let values: Vec<String> = dimensions.map(|name| value(name).to_owned()).collect();
        for metric in directive["Metrics"].as_array().expect("metrics") {
            let name = metric["Name"].as_str().expect("a name");
            let duplicate =
                reported.insert(format!("[{}] {name}", values.join(" ")), line[name].clone());
            assert_eq!(duplicate, None, "{name} is reported twice: {lines:#?}");
        }
    }
    reported
}

fn table(lines: &[String]) -> Vec<String> {
    metric_values(lines).iter().map(|(name, value)| format!("{name} {value}")).collect()
}

fn sorted<const N: usize>(mut lines: [&str; N]) -> [&str; N] {
    lines.sort_unstable();
    lines
}

/// The metrics of one invocation of dispatch.
fn dispatch_metrics(ports: &FakePorts, records: &[Record]) -> Vec<String> {
    let process = process(ports);
    process.invoke(records);
    table(&process.dispatch.metrics())
}

/// The metrics of one invocation of deadletter.
fn deadletter_metrics(ports: &FakePorts, records: &[Record]) -> Vec<String> {
    let letters = DeadLetters::new(ports.clone(), container()).with_telemetry(telemetry());
    ports.run(letters.handle(records));
    table(&letters.metrics())
}

#[test]
fn an_invocation_with_every_outcome_counts_each_of_them_once_per_dimension_set() {
    let ports = FakePorts::new(catalogue())
        .with_reactions("takes.example.com", &[answers(200).after_ms(5)])
        .with_reactions("busy.example.com", &[answers(503).after_ms(5)])
        .with_reactions("refuses.example.com", &[answers(400).after_ms(5)])
        .with_reactions("drops.example.com", &[answers(400).after_ms(5)]);
    let process = process(&ports);
    let unmatched = Record { topic: Some("shop/quiet".to_owned()), ..record("m2", EVENT) };
    let records = [record("m1", EVENT), unmatched];
    process.invoke(&records);
    let expected = [
        "[] DeliveryAttemptFailCount 3",
        "[] DeliverySuccessCount 1",
        "[] DestinationProcessingDurationInMs [5,5,5,5]",
        "[] DroppedEventCount 1",
        "[] EventAgeAtDeliveryInMs [15]",
        "[] MatchedEventCount 4",
        "[] RetryScheduledCount 1",
        "[] UnmatchedEventCount 1",
        "[BadRequest] DeliveryAttemptFailCount 2",
        "[Busy] DeliveryAttemptFailCount 1",
        "[Busy] RetryScheduledCount 1",
        "[UndeliverableDueToHttpBadRequest] DroppedEventCount 1",
        "[shop/orders] DeliveryAttemptFailCount 3",
        "[shop/orders] DeliverySuccessCount 1",
        "[shop/orders] DestinationProcessingDurationInMs [5,5,5,5]",
        "[shop/orders] DroppedEventCount 1",
        "[shop/orders] EventAgeAtDeliveryInMs [15]",
        "[shop/orders] MatchedEventCount 4",
        "[shop/orders] RetryScheduledCount 1",
        "[shop/quiet] UnmatchedEventCount 1",
    ];
    assert_eq!(table(&process.dispatch.metrics()), sorted(expected));
    assert!(process.dispatch.metrics().is_empty(), "what was read is not reported again");

    // A dead letter counts only when it is stored.
    let (_, message) = ports
        .sent()
        .into_iter()
        .find(|(queue, _)| *queue == QueueName::DeadLetter)
        .expect("a dead letter");
    let stored = deadletter_metrics(&ports, &[dead_letter_record(&letter(&message))]);
    let expected = [
        "[] DeadLetteredCount 1",
        "[UndeliverableDueToHttpBadRequest] DeadLetteredCount 1",
        "[shop/orders] DeadLetteredCount 1",
    ];
    assert_eq!(stored, sorted(expected));
}

#[test]
fn a_redelivered_record_and_a_retried_delivery_match_once() {
    let ports = FakePorts::new(subscriptions(1)).with_duration_ms(60_000);
    let process = process(&ports);
    let records = [record("m1", EVENT), record("m2", EVENT)];
    // The first exchange takes so long that the second one would not end in time.
    process.invoke_for(45_000, &records);
    assert_eq!(metric_values(&process.dispatch.metrics())["[] MatchedEventCount"], 2);
    let waited = retry_record(&carried(&ports.sent()[0].1));
    process.invoke(&[waited]);
    assert!(!metric_values(&process.dispatch.metrics()).contains_key("[] MatchedEventCount"));

    let retried_metrics = dispatch_metrics(
        &FakePorts::new(subscriptions(1)),
        &[retry_record(&delivery("shop/orders/s0"))],
    );
    assert!(
        retried_metrics.contains(&"[] DeliverySuccessCount 1".to_owned()),
        "{retried_metrics:#?}"
    );
    assert!(
        retried_metrics.iter().all(|line| !line.contains("MatchedEventCount")),
        "{retried_metrics:#?}"
    );
}

#[test]
fn a_divided_record_matches_where_its_parts_are_delivered() {
    let ports = FakePorts::new(subscriptions(11));
    assert_eq!(dispatch_metrics(&ports, &[record("m1", EVENT)]), [""; 0]);
    let parts: Vec<Record> = ports
        .sent()
        .into_iter()
        .map(|(queue, part)| {
            let attribute = Some(part.attribute);
            Record { queue, attribute, ..record("part", &part.body) }
        })
        .collect();
    let matched = dispatch_metrics(&FakePorts::new(subscriptions(11)), &parts);
    assert!(matched.contains(&"[shop/orders] MatchedEventCount 11".to_owned()), "{matched:#?}");
}

#[test]
fn an_attempt_that_sent_no_packet_has_no_duration() {
    for result in [TransportResult::Blocked, TransportResult::Unsendable] {
        let reported = dispatch_metrics(
            &FakePorts::new(subscriptions(1)).with_result(result),
            &[record("m1", EVENT)],
        );
        assert!(reported.contains(&"[] DeliveryAttemptFailCount 1".to_owned()), "{reported:#?}");
        assert!(reported.iter().all(|line| !line.contains("Duration")), "{reported:#?}");
    }
}

#[test]
fn a_wait_that_is_no_retry_measures_only_the_age_before_the_first_attempt() {
    let mut early = delivery("shop/orders/s0");
    (early.attempts, early.due_ms) = (1, NOW_MS + 5_000);
    assert_eq!(
        dispatch_metrics(&FakePorts::new(subscriptions(1)), &[retry_record(&early)]),
        [""; 0]
    );
    let without = FakePorts::without_subscriptions();
    assert_eq!(dispatch_metrics(&without, &[record("m1", EVENT)]), [""; 0]);
    let published_ms = NOW_MS - 7_200_000;
    let long_ago = Publication { published_ms, ..record("m1", EVENT).as_publication() };
    let attribute = Some(Attribute::Publication(write_publication(&long_ago)));
    let sent_again = Record { queue: QueueName::Retry, attribute, ..record("m9", EVENT) };
    assert_eq!(
        dispatch_metrics(&without, &[sent_again]),
        ["[] EventAgeBeforeAttemptInMs [7200000]"],
        "from publication, and not since it was sent again"
    );
    let held = Delivery { attempts: 0, published_ms, starts_ms: published_ms, ..early };
    let held = dispatch_metrics(&FakePorts::new(subscriptions(1)), &[retry_record(&held)]);
    assert_eq!(held, [""; 0], "a wait that was asked for is not late");
}

#[test]
fn the_age_of_a_delivery_begins_when_its_requested_wait_ends() {
    let (published_ms, starts_ms) = (NOW_MS - 7_200_000, NOW_MS - 20_000);
    let waited = Delivery { attempts: 0, published_ms, starts_ms, ..delivery("shop/orders/s0") };
    let reported = dispatch_metrics(&FakePorts::new(subscriptions(1)), &[retry_record(&waited)]);
    assert!(reported.contains(&"[] EventAgeAtDeliveryInMs [20000]".to_owned()), "{reported:#?}");
}

#[test]
fn a_late_success_counts_beside_the_failed_attempt() {
    let ports =
        FakePorts::new(subscriptions_with_destination("timeout: PT1S, lateResponseWindow: PT1M"));
    let ports = ports.with_reactions("s0", &[times_out_after(1_000).and_late(1_500, answers(200))]);
    let reported = dispatch_metrics(&ports, &[record("m1", EVENT)]);
    for line in [
        "DeliveryAttemptFailCount 1",
        "RetryScheduledCount 1",
        "DeliverySuccessCount 1",
        "EventAgeAtDeliveryInMs [1510]",
    ] {
        assert!(reported.contains(&format!("[] {line}")), "{line}: {reported:#?}");
    }
    assert_eq!(ports.sent().len(), 0);
}

#[test]
fn a_dead_letter_that_dispatch_stores_itself_is_counted_by_dispatch() {
    let reported = dispatch_metrics(
        &FakePorts::new(subscriptions(1)).with_status(503),
        &[record("m1", &large())],
    );
    assert!(
        reported.contains(&"[EventTooLargeToResend] DeadLetteredCount 1".to_owned()),
        "{reported:#?}"
    );
}

#[test]
fn a_dead_letter_counts_as_failed_only_when_it_is_in_the_last_resort_queue() {
    let failing_storage = || {
        FakePorts::new(subscriptions(0))
            .with_put_error("letters", PutError::Unavailable("503".to_owned()))
    };
    let letter = |since_ms| {
        DeadLetter::without_subscription(
            delivery("shop/orders/s0"),
            Reason::TimeToLiveExceeded,
            NOW_MS - since_ms,
        )
    };
    let (young, old) = (letter(0), letter(2 * 86_400_000));
    assert_eq!(deadletter_metrics(&failing_storage(), &[dead_letter_record(&young)]), [""; 0]);
    assert_eq!(
        deadletter_metrics(&failing_storage().with_failing_queue(), &[dead_letter_record(&old)]),
        [""; 0]
    );
    let expected = [
        "[] FailedDeadLetteredCount 1",
        "[TimeToLiveExceeded] FailedDeadLetteredCount 1",
        "[shop/orders] FailedDeadLetteredCount 1",
    ];
    assert_eq!(
        deadletter_metrics(&failing_storage(), &[dead_letter_record(&old)]),
        sorted(expected)
    );
}

/// The topic shop/orders with s0, whose destination may be on probation and is disabled after an
/// hour.
fn unhealthy(reactions: &[Reaction]) -> FakePorts {
    let mut subscription = subscription("shop/orders/s0");
    subscription.destination.probation = true;
    subscription.destination.disable = Some(Disable { after_ms: 3_600_000 });
    FakePorts::new(catalogue_of([subscription])).with_reactions("s0", reactions)
}

/// The metrics about unhealthy destinations, from one invocation of a process.
fn unhealthy_metrics(process: &Process, id: &str) -> Vec<String> {
    process.invoke(&[Record { sent_ms: process.ports.now_ms(), ..record(id, EVENT) }]);
    let is_exceptional = |line: &String| {
        let metrics = Metric::ALL.into_iter().filter(|metric| metric.is_exceptional());
        metrics.into_iter().any(|metric| line.contains(&metric.name()))
    };
    table(&process.dispatch.metrics()).into_iter().filter(is_exceptional).collect()
}

#[test]
fn a_destination_that_keeps_failing_counts_once_for_all_processes_and_without_dimensions() {
    let ports = unhealthy(&[answers(503)]);
    // While the table is unreachable, neither process sees the failures of the other.
    let processes = [process(&ports), process(&ports)];
    ports.set_table_unreachable(true);
    for number in 0..9 {
        for process in &processes {
            let counted = unhealthy_metrics(process, &format!("m{number}"));
            assert!(counted.is_empty(), "{counted:?}");
        }
    }
    assert!(unhealthy_metrics(&processes[0], "m9").is_empty(), "not written yet");
    ports.set_table_unreachable(false);
    ports.advance_ms(30_000);
    let failing = ["[] DestinationFailingCount 1"];
    assert_eq!(unhealthy_metrics(&processes[0], "m10"), failing);
    assert!(unhealthy_metrics(&processes[1], "m11").is_empty());
    // After more than an hour of failed probes, the destination is disabled.
    let mut counted = Vec::new();
    for number in 12..300 {
        ports.advance_ms(60_000);
        counted.extend(unhealthy_metrics(&processes[0], &format!("m{number}")));
    }
    assert_eq!(counted, ["[] DestinationDisabledCount 1"]);
}

#[test]
fn a_destination_that_is_slow_counts_and_so_does_the_attempt_that_is_abandoned() {
    let ports = unhealthy(&[answers(200).after_ms(5_000)]);
    let counted = unhealthy_metrics(&process(&ports), "m1");
    assert_eq!(counted, ["[] AbandonedAttemptCount 1", "[] DestinationSlowCount 1"]);
}
