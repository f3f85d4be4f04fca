//! The functions' responses to their queue: which records are redelivered, when, and what was
//! re-enqueued before; and the ingress function's responses to publishers.
//!
//! One test per rule of returning, splitting and acknowledging records, over fake ports that record
//! every call.

mod adaptive;
mod aws_targets;
mod batches;
mod by_need;
mod consent;
mod credentials;
mod dead_letter_batch;
mod divided;
mod examples;
mod gate_limits;
mod identity;
mod ingress;
mod isolation;
mod json_log;
mod late;
mod metrics;
mod neighbours;
mod onward;
mod permits;
mod probation;
mod probes;
mod rate;
mod recoveries;
mod redelivered;
mod replays;
mod replies;
mod secret_policy;
mod sending;
mod shared;
mod signed;
mod sinks;
mod slow;
mod spared;
mod table_faults;
mod tokens;
mod trust;
mod unreadable;
mod unusable;

use deadletter::DeadLetters;
use delivery::delivery::outcome::TransportResult;
use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, Hold, Origin, Publication, Store};
use delivery::event::{Event, Input};
use delivery::ports::{Attribute, Message, PutError, QueueName, Record};
use delivery::subscription::Subscription;
use delivery::subscription::name::SubscriptionName;
use delivery::subscription::profile::Dialect;
use delivery::waits::{Kind, Schedule};
use delivery::wire::{
    read_dead_letter, read_delivery, read_publication, write_dead_letter, write_delivery,
};
use dispatch::{Deadline, Dispatch};
use lastmile_tests::fake_ports::reactions::answers;
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};

use crate::examples::{
    catalogue_of, container, record, subscriptions, subscriptions_with_destination,
    subscriptions_with_sink,
};

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"s","type":"t"}"#;
/// A deadline two minutes away.
const ENDS_MS: u64 = NOW_MS + 120_000;

fn dispatch(ports: &FakePorts, records: &[Record], ends_ms: u64) -> Vec<String> {
    let dispatch = Dispatch::new(ports.clone(), container(), None);
    ports.run(dispatch.handle(records, &Deadline::new(NOW_MS, ends_ms)))
}

fn deadletter(ports: &FakePorts, records: &[Record]) -> Vec<String> {
    ports.run(DeadLetters::new(ports.clone(), container()).handle(records))
}

fn delivery(name: &str) -> Delivery {
    let origin = Origin { message: "published".to_owned(), index: 0 };
    Delivery::new(
        Event::recall(&EVENT.into(), Input::Auto),
        name.parse().expect("a name"),
        origin,
        NOW_MS - 10_000,
    )
}

/// A subscription to `https://<its name>.example.com/` with native defaults but for its waits, 2 4 8 … s.
fn subscription(name: &str) -> Subscription {
    let name: SubscriptionName = name.parse().expect("a name");
    let url = format!("https://{}.example.com/", name.name).parse().expect("an address");
    let mut subscription = Subscription::new(name, Dialect::Native, url);
    subscription.retry.jitter_percent = 0;
    let kind = Kind::Exponential { delay_ms: 1_000 };
    subscription.retry.schedule = Schedule { kind, max_ms: Some(3_600_000) };
    subscription
}

/// The delivery that a message carries.
fn carried(message: &Message) -> Delivery {
    let Attribute::Delivery(attribute) = &message.attribute else { panic!("{message:?}") };
    read_delivery(attribute, Event::recall(&message.body, Input::Auto)).expect("a valid attribute")
}

/// Queue and wait of each message that was sent.
fn waits(ports: &FakePorts) -> Vec<(QueueName, u64)> {
    ports.sent().into_iter().map(|(queue, message)| (queue, message.wait_ms)).collect()
}

/// The published record that a message carries.
fn publication(message: &Message) -> Publication {
    let Attribute::Publication(attribute) = &message.attribute else { panic!("{message:?}") };
    read_publication(attribute).expect("a valid attribute")
}

/// The dead letter that a message carries.
fn letter(message: &Message) -> DeadLetter {
    let Attribute::DeadLetter(attribute) = &message.attribute else { panic!("{message:?}") };
    read_dead_letter(attribute, &message.body).expect("a valid attribute")
}

/// An event so large that no delivery state fits into a message with it.
fn large() -> String {
    format!(
        r#"{{"specversion":"1.0","id":"1","source":"s","type":"t","data":"{}"}}"#,
        "x".repeat(1_048_400)
    )
}

/// A record that the events queue gave up ten days ago, too large to travel.
fn long_given_up() -> Record {
    Record {
        queue: QueueName::DeadLetter,
        first_received_ms: NOW_MS - 10 * 86_400_000,
        ..record("m1", &large())
    }
}

/// A record of the retry queue that carries this delivery.
fn retry_record(delivery: &Delivery) -> Record {
    Record {
        attribute: Some(Attribute::Delivery(write_delivery(delivery))),
        topic: Some(delivery.subscription.topic.to_string()),
        queue: QueueName::Retry,
        ..record("m1", EVENT)
    }
}

/// A record of the dead-letter queue that carries this dead letter.
fn dead_letter_record(letter: &DeadLetter) -> Record {
    Record {
        attribute: Some(Attribute::DeadLetter(write_dead_letter(letter))),
        queue: QueueName::DeadLetter,
        ..record("m1", EVENT)
    }
}

#[test]
fn a_delivered_record_is_acknowledged_and_nothing_is_enqueued() {
    let ports = FakePorts::new(subscriptions(1));
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    assert_eq!((ports.requests(), ports.sent().len(), ports.visibility_changes().len()), (1, 0, 0));
}

#[test]
fn a_failed_delivery_is_re_enqueued_with_its_state_before_the_record_is_acknowledged() {
    let ports = FakePorts::new(subscriptions(1)).with_status(503);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let (queue, message) = ports.sent().remove(0);
    assert_eq!((queue, message.body.as_ref(), message.wait_ms), (QueueName::Retry, EVENT, 2_000));
    let Attribute::Delivery(attribute) = &message.attribute else { panic!("{message:?}") };
    let sent = read_delivery(attribute, Event::recall(&message.body, Input::Auto))
        .expect("a valid attribute");
    assert_eq!(
        (sent.attempts, sent.due_ms, sent.origin.message.as_str()),
        (1, NOW_MS + 2_000, "m1")
    );
}

#[test]
fn a_record_whose_message_cannot_be_sent_is_redelivered_after_its_visibility_timeout() {
    let ports = FakePorts::new(subscriptions(1)).with_status(503).with_failing_queue();
    let records = [record("m1", EVENT), record("m2", "not JSON")];
    // The second is a dead letter, which is stored when its queue refuses it.
    assert_eq!(dispatch(&ports, &records, ENDS_MS), ["m1"]);
    assert_eq!((ports.visibility_changes().len(), ports.blobs().len()), (0, 1));
}

#[test]
fn without_usable_subscriptions_every_record_waits_as_a_message_and_no_receive_is_used_up() {
    let ports = FakePorts::without_subscriptions();
    let records = [record("m1", EVENT), record("m2", EVENT)];
    assert_eq!(dispatch(&ports, &records, ENDS_MS), [""; 0]);
    let waits: Vec<_> = ports
        .sent()
        .into_iter()
        .map(|(queue, message)| (queue, publication(&message).message, message.wait_ms))
        .collect();
    let five_minutes = |message: &str| (QueueName::Retry, message.to_owned(), 300_000);
    assert_eq!(waits, [five_minutes("m1"), five_minutes("m2")]);
    assert_eq!((ports.requests(), ports.visibility_changes().len()), (0, 0));
}

#[test]
fn what_waits_for_subscriptions_once_more_waits_twice_as_long() {
    for first in [record("m1", EVENT), retry_record(&delivery("shop/orders/s0"))] {
        let mut waiting = first;
        for minutes in [5, 10, 20] {
            let ports = FakePorts::without_subscriptions();
            assert_eq!(dispatch(&ports, std::slice::from_ref(&waiting), ENDS_MS), [""; 0]);
            let (queue, message) = ports.sent().remove(0);
            assert_eq!(message.wait_ms, minutes * 60_000, "{waiting:?}");
            waiting = Record { queue, attribute: Some(message.attribute), ..waiting };
        }
    }
}

#[test]
fn out_of_time_a_delivery_waits_as_a_message_one_second_longer_each_time() {
    for (turns, seconds) in [(0, 0), (1, 1), (30, 30), (99, 30)] {
        let patient = subscriptions_with_destination("slowAfter: PT10M");
        let ports = FakePorts::new(patient).with_duration_ms(60_000);
        let mut late = delivery("shop/orders/s0");
        late.hold = Hold { turns, ..Hold::default() };
        let late = Record { message: "m2".to_owned(), ..retry_record(&late) };
        // The first exchange takes so long that the second one would not end in time.
        assert_eq!(dispatch(&ports, &[record("m1", EVENT), late], NOW_MS + 45_000), [""; 0]);
        let (queue, message) = ports.sent().remove(0);
        // It was never attempted, so it does not wait behind retries.
        assert_eq!((queue, message.wait_ms), (QueueName::Retry, seconds * 1_000));
        assert_eq!((carried(&message).hold.turns, carried(&message).attempts), (turns + 1, 0));
        assert_eq!(ports.visibility_changes(), []);
    }
}

#[test]
fn out_of_time_a_record_too_large_to_wait_as_a_message_is_hidden() {
    let ports = FakePorts::new(subscriptions(1)).with_duration_ms(60_000);
    let large = Record { receives: 3, ..record("m2", &large()) };
    assert_eq!(dispatch(&ports, &[record("m1", EVENT), large], NOW_MS + 45_000), ["m2"]);
    assert_eq!(ports.visibility_changes(), [(QueueName::Events, "m2".to_owned(), 3)]);
}

#[test]
fn out_of_time_the_unfinished_deliveries_of_a_started_record_are_re_enqueued() {
    let ports = FakePorts::new(subscriptions(2)).with_duration_ms(60_000);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], NOW_MS + 45_000), [""; 0]);
    assert_eq!(ports.requests(), 1);
    let (queue, message) = ports.sent().remove(0);
    let Attribute::Delivery(attribute) = &message.attribute else { panic!("{message:?}") };
    let left = read_delivery(attribute, Event::recall(&message.body, Input::Auto))
        .expect("a valid attribute");
    assert_eq!((queue, message.wait_ms, left.attempts), (QueueName::Retry, 0, 0));
}

#[test]
fn out_of_time_what_is_too_large_to_wait_is_a_dead_letter_if_its_record_was_begun() {
    // Redelivered, the record would repeat what its first subscription has.
    let ports = FakePorts::new(subscriptions(2)).with_duration_ms(60_000);
    assert_eq!(dispatch(&ports, &[record("m1", &large())], NOW_MS + 45_000), [""; 0]);
    let blobs = ports.blobs();
    let [(key, letter)] = &blobs[..] else { panic!("{} blobs", blobs.len()) };
    assert!(key.starts_with("letters/shop/orders/s1/") && letter.contains("EventTooLargeToResend"));
    assert_eq!((ports.requests(), ports.visibility_changes()), (1, Vec::new()));
}

#[test]
fn a_panic_counts_as_an_attempt_and_affects_no_other_record() {
    let ports = FakePorts::new(subscriptions(1)).with_one_panic();
    assert_eq!(dispatch(&ports, &[record("m1", EVENT), record("m2", EVENT)], ENDS_MS), [""; 0]);
    let sent = ports.sent();
    let [(QueueName::Retry, message)] = &sent[..] else { panic!("{sent:?}") };
    let Attribute::Delivery(attribute) = &message.attribute else { panic!("{message:?}") };
    assert!(attribute.contains(r#""attempts":1"#) && attribute.contains("Aborted"), "{attribute}");
}

#[test]
fn an_early_delivery_is_re_enqueued_with_the_rest_of_its_wait_and_without_an_attempt() {
    let ports = FakePorts::new(subscriptions(1));
    let mut early = delivery("shop/orders/s0");
    (early.attempts, early.due_ms) = (1, NOW_MS + 5_000);
    assert_eq!(dispatch(&ports, &[retry_record(&early)], ENDS_MS), [""; 0]);
    let (queue, message) = ports.sent().remove(0);
    assert_eq!((ports.requests(), queue, message.wait_ms), (0, QueueName::Retry, 5_000));
    assert_eq!(message.attribute, Attribute::Delivery(write_delivery(&early)));
}

#[test]
fn a_remaining_wait_below_a_second_is_spent_in_place() {
    let ports = FakePorts::new(subscriptions(1));
    let mut early = delivery("shop/orders/s0");
    early.due_ms = NOW_MS + 999;
    assert_eq!(dispatch(&ports, &[retry_record(&early)], ENDS_MS), [""; 0]);
    assert_eq!((ports.requests(), ports.sent().len(), ports.slept_ms()), (1, 0, 999));
    let ports = FakePorts::new(subscriptions(1));
    early.due_ms = NOW_MS + 1_000;
    assert_eq!(dispatch(&ports, &[retry_record(&early)], ENDS_MS), [""; 0]);
    assert_eq!((ports.requests(), waits(&ports)), (0, vec![(QueueName::Retry, 1_000)]));
}

#[test]
fn a_wait_for_a_retry_below_a_second_is_spent_in_place() {
    for (delay_ms, requests, sent) in
        [(999, 2, vec![]), (1_000, 1, vec![(QueueName::Retry, 1_000)])]
    {
        let mut quick = subscription("shop/orders/s0");
        quick.retry.schedule = Schedule { kind: Kind::Constant { delay_ms }, max_ms: None };
        let ports = FakePorts::new(catalogue_of([quick]))
            .with_reactions("s0.example.com", &[answers(503), answers(200)]);
        assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
        assert_eq!((ports.requests(), waits(&ports)), (requests, sent), "{delay_ms}");
    }
}

#[test]
fn after_five_waits_in_place_a_delivery_waits_as_a_message() {
    let mut quick = subscription("shop/orders/s0");
    quick.retry.schedule = Schedule { kind: Kind::Constant { delay_ms: 500 }, max_ms: None };
    let ports = FakePorts::new(catalogue_of([quick])).with_status(503);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    assert_eq!((ports.requests(), ports.slept_ms()), (6, 5 * 500));
    assert_eq!(waits(&ports), [(QueueName::Retry, 500)]);
}

#[test]
fn out_of_time_a_delivery_that_waits_in_place_is_re_enqueued_with_the_attempts_that_it_had() {
    let mut quick = subscription("shop/orders/s0");
    quick.retry.schedule = Schedule { kind: Kind::Constant { delay_ms: 500 }, max_ms: None };
    quick.destination.slow_after_ms = 600_000;
    let ports = FakePorts::new(catalogue_of([quick])).with_status(503).with_duration_ms(60_000);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], NOW_MS + 45_000), [""; 0]);
    assert_eq!((ports.requests(), waits(&ports)), (1, vec![(QueueName::Retry, 0)]));
    // The second one never began, so nothing was aborted.
    let waiting = carried(&ports.sent()[0].1);
    let newest = waiting.history.newest().map(|entry| entry.outcome.to_string());
    assert_eq!((waiting.attempts, newest.as_deref()), (1, Some("Busy")));
}

#[test]
fn subscriptions_are_reread_before_a_missing_name_becomes_a_dead_letter() {
    let ports = FakePorts::new(subscriptions(0)).with_newer_catalogue(subscriptions(1));
    assert_eq!(dispatch(&ports, &[retry_record(&delivery("shop/orders/s0"))], ENDS_MS), [""; 0]);
    assert_eq!((ports.requests(), ports.sent().len()), (1, 0));
    let ports = FakePorts::new(subscriptions(1));
    dispatch(&ports, &[retry_record(&delivery("shop/orders/gone"))], ENDS_MS);
    let (queue, message) = ports.sent().remove(0);
    let Attribute::DeadLetter(attribute) = &message.attribute else { panic!("{message:?}") };
    let letter = read_dead_letter(attribute, &message.body).expect("a valid attribute");
    assert_eq!(queue, QueueName::DeadLetter);
    assert_eq!(letter.reason, Reason::SubscriptionNotFound);
    assert_eq!(letter.delivery.subscription.to_string(), "shop/orders/gone");
}

#[test]
fn while_the_newest_subscriptions_cannot_be_read_no_name_counts_as_missing() {
    let ports = FakePorts::new(subscriptions(1)).with_failing_reload();
    let unknown = Record { topic: Some("shop/new".to_owned()), ..record("m2", EVENT) };
    assert_eq!(dispatch(&ports, &[record("m1", EVENT), unknown], ENDS_MS), [""; 0]);
    let (queue, message) = ports.sent().remove(0);
    assert_eq!((ports.requests(), queue, message.wait_ms), (1, QueueName::Retry, 300_000));
    assert_eq!(publication(&message).topic.as_deref(), Some("shop/new"));
}

#[test]
fn a_delivery_that_no_longer_fits_into_a_message_is_stored_by_dispatch_itself() {
    let ports = FakePorts::new(subscriptions(1)).with_status(503);
    assert_eq!(dispatch(&ports, &[record("m1", &large())], ENDS_MS), [""; 0]);
    let blobs = ports.blobs();
    assert_eq!((ports.sent().len(), blobs.len()), (0, 1));
    assert!(
        blobs[0].0.starts_with("letters/shop/orders/s0/")
            && blobs[0].1.contains("EventTooLargeToResend")
    );
}

#[test]
fn a_large_event_for_many_subscriptions_is_attempted_in_place_instead_of_divided() {
    let ports = FakePorts::new(subscriptions(11));
    assert_eq!(dispatch(&ports, &[record("m1", &large())], ENDS_MS), [""; 0]);
    assert_eq!((ports.requests(), ports.sent().len(), ports.blobs().len()), (11, 0, 0));
}

#[test]
fn a_dead_letter_stored_by_dispatch_falls_back_to_the_default_container_too() {
    let missing = PutError::Permanent("NoSuchBucket".to_owned());
    let ports = FakePorts::new(subscriptions_with_sink("s3://elsewhere"))
        .with_status(400)
        .with_put_error("elsewhere", missing);
    assert_eq!(dispatch(&ports, &[record("m1", &large())], ENDS_MS), [""; 0]);
    assert!(
        ports.blobs()[0].0.starts_with("letters/shop/orders/s0/")
            && ports.blobs()[0].1.contains("sinkerror")
    );
}

#[test]
fn the_wait_of_a_dead_letter_that_storage_refuses_follows_the_time_since_the_decision() {
    for (since_ms, seconds) in
        [(0, 10), (9_000, 1), (10_000, 50), (60_000, 240), (300_000, 300), (86_400_000, 300)]
    {
        let ports = FakePorts::new(subscriptions(0))
            .with_put_error("letters", PutError::Unavailable("503".to_owned()));
        let letter = DeadLetter::without_subscription(
            delivery("a/b/c"),
            Reason::TimeToLiveExceeded,
            NOW_MS - since_ms,
        );
        assert_eq!(deadletter(&ports, &[dead_letter_record(&letter)]), [""; 0]);
        let (queue, message) = ports.sent().remove(0);
        assert_eq!(
            (queue, message.wait_ms),
            (QueueName::DeadLetter, seconds * 1_000),
            "{since_ms}"
        );
        assert_eq!(message.attribute, Attribute::DeadLetter(write_dead_letter(&letter)));
        assert_eq!(ports.visibility_changes(), []);
    }
}

#[test]
fn a_dead_letter_that_storage_refuses_for_too_long_moves_to_the_last_resort_queue() {
    let two_days_ms = 2 * 86_400_000;
    let ports = FakePorts::new(subscriptions(0))
        .with_put_error("letters", PutError::Unavailable("503".to_owned()));
    let letter = DeadLetter::without_subscription(
        delivery("a/b/c"),
        Reason::TimeToLiveExceeded,
        NOW_MS - two_days_ms,
    );
    assert_eq!(deadletter(&ports, &[dead_letter_record(&letter)]), [""; 0]);
    let (queue, message) = ports.sent().remove(0);
    assert_eq!((queue, message.body.as_ref()), (QueueName::LastResort, EVENT));
    assert_eq!(message.attribute, Attribute::DeadLetter(write_dead_letter(&letter)));
    let ports = FakePorts::new(subscriptions(0))
        .with_put_error("letters", PutError::Unavailable("503".to_owned()))
        .with_failing_queue();
    assert_eq!(deadletter(&ports, &[dead_letter_record(&letter)]), ["m1"]);
    // It stays where it is, hidden for as long as storage is left alone.
    assert_eq!(ports.visibility_changes(), [(QueueName::DeadLetter, "m1".to_owned(), 300)]);
}

#[test]
fn a_dead_letter_that_its_own_queue_refuses_stays_in_it_hidden_for_its_wait() {
    let ports = FakePorts::new(subscriptions(0))
        .with_put_error("letters", PutError::Unavailable("503".to_owned()))
        .with_failing_queue();
    let letter =
        DeadLetter::without_subscription(delivery("a/b/c"), Reason::TimeToLiveExceeded, NOW_MS);
    assert_eq!(deadletter(&ports, &[dead_letter_record(&letter)]), ["m1"]);
    assert_eq!(ports.visibility_changes(), [(QueueName::DeadLetter, "m1".to_owned(), 10)]);
}

#[test]
fn a_record_is_never_hidden_for_longer_than_its_queue_allows_after_a_receive() {
    let ports = FakePorts::new(subscriptions(0)).with_failing_queue();
    let mut letter =
        DeadLetter::without_subscription(delivery("a/b/c"), Reason::TimeToLiveExceeded, NOW_MS);
    // Another machine, whose clock is ahead, decided.
    letter.not_before_ms = NOW_MS + 86_400_000;
    assert_eq!(deadletter(&ports, &[dead_letter_record(&letter)]), ["m1"]);
    let eleven_hours = 11 * 3_600;
    assert_eq!(
        ports.visibility_changes(),
        [(QueueName::DeadLetter, "m1".to_owned(), eleven_hours)]
    );
}

#[test]
fn a_container_that_refuses_permanently_is_replaced_by_the_default_and_the_dead_letter_says_so() {
    let missing = PutError::Permanent("NoSuchBucket".to_owned());
    let ports = FakePorts::new(subscriptions(0)).with_put_error("elsewhere", missing);
    let mut letter =
        DeadLetter::without_subscription(delivery("a/b/c"), Reason::TimeToLiveExceeded, NOW_MS);
    letter.store = Store::Container("elsewhere/deep".parse().expect("a container"));
    assert_eq!(deadletter(&ports, &[dead_letter_record(&letter)]), [""; 0]);
    let blobs = ports.blobs();
    assert!(
        blobs[0].0.starts_with("letters/a/b/c/")
            && blobs[0].1.contains(r#""sinkerror":"elsewhere/deep"#),
        "{blobs:?}"
    );
    let ports = FakePorts::new(subscriptions(0));
    deadletter(&ports, &[dead_letter_record(&letter)]);
    assert!(ports.blobs()[0].0.starts_with("elsewhere/deep/a/b/c/"));
}

#[test]
fn a_dead_letter_is_not_written_before_its_delay_has_passed() {
    let ports = FakePorts::new(subscriptions(0));
    let mut letter =
        DeadLetter::without_subscription(delivery("a/b/c"), Reason::TimeToLiveExceeded, NOW_MS);
    letter.not_before_ms = NOW_MS + 300_000;
    assert_eq!(deadletter(&ports, &[dead_letter_record(&letter)]), [""; 0]);
    assert_eq!((ports.blobs().len(), waits(&ports)), (0, vec![(QueueName::DeadLetter, 300_000)]));
}

#[test]
fn a_dead_letter_too_large_to_wait_as_a_message_is_hidden() {
    let ports = FakePorts::new(subscriptions(0))
        .with_put_error("letters", PutError::Unavailable("503".to_owned()));
    let known = Record { body: large().into(), ..retry_record(&delivery("shop/orders/s0")) };
    let given_up = Record { queue: QueueName::DeadLetter, ..known };
    assert_eq!(deadletter(&ports, &[given_up]), ["m1"]);
    assert_eq!(ports.visibility_changes(), [(QueueName::DeadLetter, "m1".to_owned(), 1_800)]);
    assert_eq!(waits(&ports), []);
}

#[test]
fn a_message_from_native_redrive_is_stored_with_what_is_known_of_it() {
    let ports = FakePorts::new(subscriptions(0));
    let known = Record { message: "m2".to_owned(), ..retry_record(&delivery("shop/orders/s0")) };
    let [given_up, known] =
        [record("m1", "[{"), known].map(|record| Record { queue: QueueName::DeadLetter, ..record });
    assert_eq!(deadletter(&ports, &[given_up, known]), [""; 0]);
    let mut keys: Vec<String> = ports.blobs().into_iter().map(|(key, _)| key).collect();
    keys.sort();
    assert!(keys[0].starts_with("letters/shop/orders/_unprocessed/"), "{keys:?}");
    assert!(keys[1].starts_with("letters/shop/orders/s0/"), "{keys:?}");
    assert!(ports.blobs().iter().all(|(_, blob)| blob.contains("ProcessingFailed")));
}

#[test]
fn a_blocked_address_is_one_attempt_and_a_dead_letter_and_a_refused_certificate_is_retried() {
    for (result, queue) in [
        (TransportResult::TlsError, QueueName::Retry),
        (TransportResult::Blocked, QueueName::DeadLetter),
        (TransportResult::Unsendable, QueueName::DeadLetter),
    ] {
        let ports = FakePorts::new(subscriptions(1)).with_result(result.clone());
        assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
        assert_eq!((ports.requests(), ports.sent()[0].0), (1, queue), "{result:?}");
    }
}

#[test]
fn a_dead_letter_too_large_for_the_last_resort_queue_stays_in_its_own() {
    // The events queue gives up what is too large to move to isolation, so it is too large for this.
    let ports = FakePorts::new(subscriptions(0))
        .with_put_error("letters", PutError::Unavailable("503".to_owned()));
    assert_eq!(deadletter(&ports, &[long_given_up()]), ["m1"]);
    assert_eq!((ports.sent().len(), ports.visibility_changes().len()), (0, 1));
}

#[test]
fn a_dead_letter_is_not_stored_among_the_ledgers_of_replays_where_no_tool_looks() {
    let of = Record { topic: Some("_replays/x".to_owned()), ..record("m1", EVENT) };
    let ports = FakePorts::new(subscriptions(1));
    dispatch(&ports, &[of], ENDS_MS);
    let letter = letter(&ports.sent()[0].1);
    deadletter(&ports, &[dead_letter_record(&letter)]);
    let (key, _) = ports.blobs().remove(0);
    assert!(!key.starts_with("letters/_replays/"), "{key}");
}
