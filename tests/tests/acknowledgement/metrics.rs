//! What an invocation counts: each metric once per dimension set, one line per combination of
//! dimension values.

use std::collections::BTreeMap;

use adapters::metrics::MetricsSettings;
use adapters::records::Record;
use adapters::telemetry::Telemetry;
use deadletter::DeadLetters;
use delivery::delivery::DeadLetter;
use delivery::delivery::outcome::TransportResult;
use delivery::delivery::reason::Reason;
use delivery::manifest;
use delivery::manifest::Source;
use delivery::ports::{PutError, QueueName};
use delivery::subscription::catalogue::Catalogue;
use dispatch::{Deadline, Dispatch};
use serde_json::Value;

use super::reactions::{answers, times_out_after};
use super::{ENDS_MS, EVENT, buried, delivery, large, letter, retried, subscriptions};
use crate::desk::{Desk, NOW_MS, container, record, subscriptions_with_destination};

/// One event for four destinations: one accepts it, one is busy, one refuses it, and one refuses it
/// without a dead letter; and a topic whose events no filter matches.
const SCENE: &str = "
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
    manifest::read(&[Source { name: "scene", text: SCENE }])
        .into_result()
        .expect("the scene is right")
}

fn telemetry(per_subscription: bool) -> Telemetry {
    Telemetry::new(MetricsSettings { per_subscription, ..MetricsSettings::default() })
}

fn with_telemetry(desk: &Desk, per_subscription: bool) -> Dispatch<Desk> {
    Dispatch::new(desk.clone(), container(), None).with_telemetry(telemetry(per_subscription))
}

/// The metrics in the lines: `<dimension values> <metric>` and its value.
fn said(lines: &[String]) -> BTreeMap<String, Value> {
    let mut said = BTreeMap::new();
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
            let again = said.insert(format!("[{}] {name}", values.join(" ")), line[name].clone());
            assert_eq!(again, None, "{name} stands twice: {lines:#?}");
        }
    }
    said
}

fn table(lines: &[String]) -> Vec<String> {
    said(lines).iter().map(|(what, value)| format!("{what} {value}")).collect()
}

fn sorted<const N: usize>(mut lines: [&str; N]) -> [&str; N] {
    lines.sort_unstable();
    lines
}

/// The metrics of one invocation of dispatch.
fn counted(desk: &Desk, records: &[Record]) -> Vec<String> {
    let dispatch = with_telemetry(desk, false);
    desk.run(dispatch.handle(records, &Deadline::new(NOW_MS, ENDS_MS)));
    table(&dispatch.metrics())
}

/// The metrics of one invocation of deadletter.
fn counted_by_deadletter(desk: &Desk, records: &[Record]) -> Vec<String> {
    let letters = DeadLetters::new(desk.clone(), container()).with_telemetry(telemetry(false));
    desk.run(letters.handle(records));
    table(&letters.metrics())
}

#[test]
fn a_scene_with_every_end_counts_each_of_them_once_per_dimension_set() {
    let desk = Desk::new(catalogue())
        .meeting("takes.example.com", &[answers(200).after_ms(5)])
        .meeting("busy.example.com", &[answers(503).after_ms(5)])
        .meeting("refuses.example.com", &[answers(400).after_ms(5)])
        .meeting("drops.example.com", &[answers(400).after_ms(5)]);
    let dispatch = with_telemetry(&desk, false);
    let quiet = Record { topic: Some("shop/quiet".to_owned()), ..record("m2", EVENT) };
    let records = [record("m1", EVENT), quiet];
    assert_eq!(desk.run(dispatch.handle(&records, &Deadline::new(NOW_MS, ENDS_MS))), [""; 0]);
    let counted = [
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
    assert_eq!(table(&dispatch.metrics()), sorted(counted));
    assert!(dispatch.metrics().is_empty(), "what was read is not said again");

    // A dead letter counts when it is stored, and nowhere else.
    let (_, message) = desk
        .sent()
        .into_iter()
        .find(|(queue, _)| *queue == QueueName::DeadLetter)
        .expect("a letter");
    let stored = counted_by_deadletter(&desk, &[buried(&letter(&message))]);
    let counted = [
        "[] DeadLetteredCount 1",
        "[UndeliverableDueToHttpBadRequest] DeadLetteredCount 1",
        "[shop/orders] DeadLetteredCount 1",
    ];
    assert_eq!(stored, sorted(counted));
}

#[test]
fn subscriptions_have_metrics_of_their_own_only_where_that_is_asked_for() {
    let desk = Desk::new(subscriptions(2));
    let dispatch = with_telemetry(&desk, true);
    desk.run(dispatch.handle(&[record("m1", EVENT)], &Deadline::new(NOW_MS, ENDS_MS)));
    let said = table(&dispatch.metrics());
    for name in ["s0", "s1"] {
        for metric in ["MatchedEventCount 1", "DeliverySuccessCount 1"] {
            assert!(said.contains(&format!("[shop/orders {name}] {metric}")), "{said:#?}");
        }
    }
    assert!(said.contains(&"[shop/orders] MatchedEventCount 2".to_owned()), "{said:#?}");
    let without = counted(&Desk::new(subscriptions(2)), &[record("m1", EVENT)]);
    assert!(
        without.iter().all(|line| !line.contains("s0") && !line.contains("s1")),
        "{without:#?}"
    );
}

#[test]
fn a_record_that_comes_again_and_a_delivery_that_comes_back_match_once() {
    let desk = Desk::new(subscriptions(1)).taking_ms(60_000);
    let dispatch = with_telemetry(&desk, false);
    let records = [record("m1", EVENT), record("m2", EVENT)];
    // The first exchange takes so long that the second one would not end in time.
    assert_eq!(
        desk.run(dispatch.handle(&records, &Deadline::new(NOW_MS, NOW_MS + 45_000))),
        ["m2"]
    );
    assert_eq!(said(&dispatch.metrics())["[] MatchedEventCount"], 1);
    let now_ms = NOW_MS + 60_000;
    desk.run(dispatch.handle(&records[1..], &Deadline::new(now_ms, now_ms + 120_000)));
    assert_eq!(said(&dispatch.metrics())["[] MatchedEventCount"], 1);

    let back = counted(&Desk::new(subscriptions(1)), &[retried(&delivery("shop/orders/s0"))]);
    assert!(back.contains(&"[] DeliverySuccessCount 1".to_owned()), "{back:#?}");
    assert!(back.iter().all(|line| !line.contains("MatchedEventCount")), "{back:#?}");
}

#[test]
fn a_record_that_is_split_matches_where_it_is_split() {
    let desk = Desk::new(subscriptions(11));
    let split = counted(&desk, &[record("m1", EVENT)]);
    assert_eq!(split, ["[] MatchedEventCount 11", "[shop/orders] MatchedEventCount 11"]);
}

#[test]
fn an_attempt_of_which_no_packet_left_has_no_duration() {
    for result in [TransportResult::Blocked, TransportResult::Unsendable] {
        let said = counted(&Desk::new(subscriptions(1)).result(result), &[record("m1", EVENT)]);
        assert!(said.contains(&"[] DeliveryAttemptFailCount 1".to_owned()), "{said:#?}");
        assert!(said.iter().all(|line| !line.contains("Duration")), "{said:#?}");
    }
}

#[test]
fn waits_that_are_no_retries_count_nothing() {
    let mut early = delivery("shop/orders/s0");
    (early.attempts, early.due_ms) = (1, NOW_MS + 5_000);
    assert_eq!(counted(&Desk::new(subscriptions(1)), &[retried(&early)]), [""; 0]);
    let without = Desk::without_subscriptions();
    assert_eq!(counted(&without, &[record("m1", EVENT)]), [""; 0]);
}

#[test]
fn a_late_answer_makes_a_success_of_an_attempt_that_had_failed() {
    let desk = Desk::new(subscriptions_with_destination("timeout: PT1S, lateResponseWindow: PT1M"));
    let desk = desk.meeting("s0", &[times_out_after(1_000).and_late(1_500, answers(200))]);
    let said = counted(&desk, &[record("m1", EVENT)]);
    for line in [
        "DeliveryAttemptFailCount 1",
        "RetryScheduledCount 1",
        "DeliverySuccessCount 1",
        "EventAgeAtDeliveryInMs [1510]",
    ] {
        assert!(said.contains(&format!("[] {line}")), "{line}: {said:#?}");
    }
    assert_eq!(desk.sent().len(), 0);
}

#[test]
fn a_letter_that_dispatch_stores_itself_counts_there() {
    let said = counted(&Desk::new(subscriptions(1)).answering(503), &[record("m1", &large())]);
    assert!(said.contains(&"[EventTooLargeToResend] DeadLetteredCount 1".to_owned()), "{said:#?}");
}

#[test]
fn a_letter_for_an_unknown_topic_makes_no_dimension_of_its_name() {
    let desk = Desk::new(subscriptions(1));
    let unknown = Record { topic: Some("any/thing".to_owned()), ..record("m1", EVENT) };
    assert_eq!(counted(&desk, &[unknown]), [""; 0]);
    let said = counted_by_deadletter(&desk, &[buried(&letter(&desk.sent()[0].1))]);
    assert_eq!(
        said,
        sorted([
            "[] DeadLetteredCount 1",
            "[TopicNotFound] DeadLetteredCount 1",
            "[_/_] DeadLetteredCount 1"
        ])
    );
}

#[test]
fn a_letter_counts_as_refused_only_when_it_lies_in_the_last_resort_queue() {
    let ill = || {
        Desk::new(subscriptions(0)).refusing_blobs("letters", PutError::Refused("503".to_owned()))
    };
    let letter = |since_ms| {
        DeadLetter::without_subscription(
            delivery("shop/orders/s0"),
            Reason::TimeToLiveExceeded,
            NOW_MS - since_ms,
        )
    };
    let (young, old) = (letter(0), letter(2 * 86_400_000));
    assert_eq!(counted_by_deadletter(&ill(), &[buried(&young)]), [""; 0]);
    assert_eq!(counted_by_deadletter(&ill().refusing_messages(), &[buried(&old)]), [""; 0]);
    let counted = [
        "[] FailedDeadLetteredCount 1",
        "[TimeToLiveExceeded] FailedDeadLetteredCount 1",
        "[shop/orders] FailedDeadLetteredCount 1",
    ];
    assert_eq!(counted_by_deadletter(&ill(), &[buried(&old)]), sorted(counted));
}

#[test]
fn a_function_that_nobody_asks_counts_nothing() {
    let desk = Desk::new(subscriptions(1));
    let dispatch = Dispatch::new(desk.clone(), container(), None);
    desk.run(dispatch.handle(&[record("m1", EVENT)], &Deadline::new(NOW_MS, ENDS_MS)));
    assert!(dispatch.metrics().is_empty());
}
