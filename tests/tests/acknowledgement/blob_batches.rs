//! Several dead letters in one blob: each record gets its own result, and a redelivered one is
//! stored alone.

use delivery::deadletter::blob::{key, shared_key};
use delivery::deadletter::stored;
use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, Origin};
use delivery::ports::{Attribute, PutError, QueueName, Record};
use delivery::wire::write_dead_letter;

use super::{EVENT, deadletter, delivery, waits};
use crate::fake_ports::{FakePorts, NOW_MS, record, subscriptions};

/// A dead letter about the event of this record; at most two of them share a blob.
fn letter(message: &str) -> DeadLetter {
    let of = delivery("shop/orders/s0");
    let origin = Origin { message: message.to_owned(), index: 0 };
    let delivery = Delivery::new(of.event, of.subscription, origin, of.published_ms);
    let letter = DeadLetter::without_subscription(delivery, Reason::TimeToLiveExceeded, NOW_MS);
    DeadLetter { events_per_blob: 2, ..letter }
}

fn record_of(letter: &DeadLetter) -> Record {
    let message = &letter.delivery.origin.message;
    Record {
        attribute: Some(Attribute::DeadLetter(write_dead_letter(letter))),
        queue: QueueName::DeadLetter,
        ..record(message, EVENT)
    }
}

/// The keys of all blobs, and the number of dead letters in each.
fn stored(ports: &FakePorts) -> Vec<(String, usize)> {
    let read = |key: &str, blob: &str| {
        stored::read(key, "letters", blob.as_bytes()).expect("a blob of ours").len()
    };
    let mut blobs: Vec<_> =
        ports.blobs().into_iter().map(|(key, blob)| (key.clone(), read(&key, &blob))).collect();
    blobs.sort();
    blobs
}

fn sorted(mut expected: Vec<(String, usize)>) -> Vec<(String, usize)> {
    expected.iter_mut().for_each(|(key, _)| key.insert_str(0, "letters/"));
    expected.sort();
    expected
}

#[test]
fn matching_dead_letters_share_blobs_up_to_their_limit() {
    let ports = FakePorts::new(subscriptions(0));
    let letters = ["m1", "m2", "m3"].map(letter);
    let unshared = DeadLetter { events_per_blob: 1, ..letter("m4") };
    let records: Vec<Record> = letters.iter().chain([&unshared]).map(record_of).collect();
    assert_eq!(deadletter(&ports, &records), [""; 0]);
    let shared = shared_key(&[&letters[0], &letters[1]], "");
    assert_eq!(
        stored(&ports),
        sorted(vec![(shared, 2), (key(&letters[2], ""), 1), (key(&unshared, ""), 1)])
    );
}

#[test]
fn the_same_dead_letter_twice_is_stored_once_and_both_records_are_acknowledged() {
    let ports = FakePorts::new(subscriptions(0));
    let letter = letter("m1");
    assert_eq!(deadletter(&ports, &[record_of(&letter), record_of(&letter)]), [""; 0]);
    assert_eq!(stored(&ports), sorted(vec![(key(&letter, ""), 1)]));
}

#[test]
fn a_dead_letter_that_is_not_due_delays_no_other() {
    let ports = FakePorts::new(subscriptions(0));
    let letters = ["m1", "m2", "m3"].map(letter);
    let late = DeadLetter { not_before_ms: NOW_MS + 60_000, ..letters[1].clone() };
    assert_eq!(deadletter(&ports, &[&letters[0], &late, &letters[2]].map(record_of)), [""; 0]);
    assert_eq!(waits(&ports), [(QueueName::DeadLetter, 60_000)]);
    assert_eq!(stored(&ports), sorted(vec![(shared_key(&[&letters[0], &letters[2]], ""), 2)]));
}

#[test]
fn a_redelivered_dead_letter_is_stored_alone() {
    let ports = FakePorts::new(subscriptions(0));
    let letters = ["m1", "m2"].map(letter);
    let redelivered = letters.each_ref().map(|letter| Record { receives: 2, ..record_of(letter) });
    assert_eq!(deadletter(&ports, &redelivered), [""; 0]);
    assert_eq!(stored(&ports), sorted(letters.iter().map(|letter| (key(letter, ""), 1)).collect()));
}

#[test]
fn records_of_a_shared_blob_that_storage_refuses_wait_independently() {
    let ports = FakePorts::new(subscriptions(0))
        .with_put_error("letters", PutError::Unavailable("503".to_owned()));
    let fresh = letter("m1");
    let older = DeadLetter { decided_ms: NOW_MS - 60_000, ..letter("m2") };
    assert_eq!(deadletter(&ports, &[&fresh, &older].map(record_of)), [""; 0]);
    assert_eq!(waits(&ports), [(QueueName::DeadLetter, 10_000), (QueueName::DeadLetter, 240_000)]);
    // One of them has been refused for too long and moves to the last-resort queue; the other waits
    // on.
    let ports = FakePorts::new(subscriptions(0))
        .with_put_error("letters", PutError::Unavailable("503".to_owned()));
    let oldest = DeadLetter { decided_ms: NOW_MS - 2 * 86_400_000, ..letter("m3") };
    assert_eq!(deadletter(&ports, &[&fresh, &oldest].map(record_of)), [""; 0]);
    assert_eq!(waits(&ports), [(QueueName::DeadLetter, 10_000), (QueueName::LastResort, 0)]);
}

#[test]
fn an_unreadable_record_does_not_block_a_blob_batch() {
    let ports = FakePorts::new(subscriptions(0));
    let newer = Record {
        queue: QueueName::DeadLetter,
        attribute: Some(Attribute::DeadLetter(r#"{"v":2}"#.to_owned())),
        ..record("m0", EVENT)
    };
    let letters = ["m1", "m2"].map(letter);
    let records = [newer, record_of(&letters[0]), record_of(&letters[1])];
    assert_eq!(deadletter(&ports, &records), [""; 0]);
    assert_eq!(waits(&ports), [(QueueName::DeadLetter, 60_000)]);
    assert_eq!(stored(&ports), sorted(vec![(shared_key(&letters.each_ref()[..], ""), 2)]));
}
