//! The dead letters that the deadletter function stores, re-enqueues, hides and moves to the
//! last-resort queue.

use delivery::deadletter::blob::key;
use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, Origin};
use delivery::ports::{Attribute, PutError, QueueName, Record};
use delivery::wire::write_dead_letter;
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};

use crate::examples::{
    ENDS_MS, EVENT, dead_letter_record, deadletter, delivery, dispatch, large, letter, record,
    retry_record, subscriptions, waits,
};

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
    // The dead letter stays in its queue, hidden until storage is tried again.
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
fn a_dead_letter_is_not_stored_among_the_ledgers_of_replays_where_no_tool_looks() {
    let ledger_record = Record { topic: Some("_replays/x".to_owned()), ..record("m1", EVENT) };
    let ports = FakePorts::new(subscriptions(1));
    dispatch(&ports, &[ledger_record], ENDS_MS);
    let letter = letter(&ports.sent()[0].1);
    deadletter(&ports, &[dead_letter_record(&letter)]);
    let (key, _) = ports.blobs().remove(0);
    assert!(!key.starts_with("letters/_replays/"), "{key}");
}

/// A dead letter about the event of this record.
fn letter_about(message: &str) -> DeadLetter {
    let original = delivery("shop/orders/s0");
    let origin = Origin { message: message.to_owned(), index: 0 };
    let delivery =
        Delivery::new(original.event, original.subscription, origin, original.published_ms);
    DeadLetter::without_subscription(delivery, Reason::TimeToLiveExceeded, NOW_MS)
}

fn record_of(letter: &DeadLetter) -> Record {
    let message = &letter.delivery.origin.message;
    Record {
        attribute: Some(Attribute::DeadLetter(write_dead_letter(letter))),
        queue: QueueName::DeadLetter,
        ..record(message, EVENT)
    }
}

#[test]
fn each_dead_letter_has_a_blob_of_its_own_and_the_same_one_twice_is_one_blob() {
    let ports = FakePorts::new(subscriptions(0));
    let letters = ["m1", "m2"].map(letter_about);
    let records = [&letters[0], &letters[1], &letters[0]].map(record_of);
    assert_eq!(deadletter(&ports, &records), [""; 0]);
    let mut keys: Vec<String> = ports.blobs().into_iter().map(|(key, _)| key).collect();
    keys.sort();
    let mut expected = letters.each_ref().map(|letter| key(letter, "letters"));
    expected.sort();
    assert_eq!(keys, expected);
}

#[test]
fn a_dead_letter_that_is_not_due_and_an_unreadable_record_delay_no_other() {
    let ports = FakePorts::new(subscriptions(0));
    let unreadable = Record {
        attribute: Some(Attribute::DeadLetter(r#"{"v":2}"#.to_owned())),
        ..record_of(&letter_about("m0"))
    };
    let late = DeadLetter { not_before_ms: NOW_MS + 30_000, ..letter_about("m1") };
    let records = [unreadable, record_of(&late), record_of(&letter_about("m2"))];
    assert_eq!(deadletter(&ports, &records), [""; 0]);
    let mut waits = waits(&ports);
    waits.sort_by_key(|(_, wait_ms)| *wait_ms);
    assert_eq!(waits, [(QueueName::DeadLetter, 30_000), (QueueName::DeadLetter, 60_000)]);
    assert_eq!(ports.blobs().len(), 1);
}

#[test]
fn dead_letters_that_storage_refuses_wait_independently() {
    let ports = FakePorts::new(subscriptions(0))
        .with_put_error("letters", PutError::Unavailable("503".to_owned()));
    let older = DeadLetter { decided_ms: NOW_MS - 60_000, ..letter_about("m2") };
    let oldest = DeadLetter { decided_ms: NOW_MS - 2 * 86_400_000, ..letter_about("m3") };
    assert_eq!(deadletter(&ports, &[&letter_about("m1"), &older, &oldest].map(record_of)), [""; 0]);
    let mut waits = waits(&ports);
    waits.sort_by_key(|(_, wait_ms)| *wait_ms);
    let expected = [
        (QueueName::LastResort, 0),
        (QueueName::DeadLetter, 10_000),
        (QueueName::DeadLetter, 240_000),
    ];
    assert_eq!(waits, expected);
}
