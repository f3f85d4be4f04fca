//! Several dead letters in one batch: each record gets its own result.

use delivery::deadletter::blob::key;
use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, Origin};
use delivery::ports::{Attribute, PutError, QueueName, Record};
use delivery::wire::write_dead_letter;
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};

use super::{EVENT, deadletter, delivery, waits};
use crate::examples::{record, subscriptions};

/// A dead letter about the event of this record.
fn letter(message: &str) -> DeadLetter {
    let of = delivery("shop/orders/s0");
    let origin = Origin { message: message.to_owned(), index: 0 };
    let delivery = Delivery::new(of.event, of.subscription, origin, of.published_ms);
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
    let letters = ["m1", "m2"].map(letter);
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
        ..record_of(&letter("m0"))
    };
    let late = DeadLetter { not_before_ms: NOW_MS + 30_000, ..letter("m1") };
    let records = [unreadable, record_of(&late), record_of(&letter("m2"))];
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
    let older = DeadLetter { decided_ms: NOW_MS - 60_000, ..letter("m2") };
    let oldest = DeadLetter { decided_ms: NOW_MS - 2 * 86_400_000, ..letter("m3") };
    assert_eq!(deadletter(&ports, &[&letter("m1"), &older, &oldest].map(record_of)), [""; 0]);
    let mut waits = waits(&ports);
    waits.sort_by_key(|(_, wait_ms)| *wait_ms);
    let expected = [
        (QueueName::LastResort, 0),
        (QueueName::DeadLetter, 10_000),
        (QueueName::DeadLetter, 240_000),
    ];
    assert_eq!(waits, expected);
}
