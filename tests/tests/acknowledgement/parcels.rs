//! Several dead letters in one blob: each record gets its own result, and a redelivered one is
//! stored alone.

use adapters::records::Record;
use delivery::deadletter::blob::{key, shared_key};
use delivery::deadletter::stored;
use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, Origin};
use delivery::ports::PutError;
use delivery::wire::write_dead_letter;

use super::{EVENT, deadletter, delivery};
use crate::desk::{Desk, NOW_MS, record, subscriptions};

/// A dead letter about the event of this record; at most two of them share a blob.
fn letter(message: &str) -> DeadLetter {
    let of = delivery("shop/orders/s0");
    let origin = Origin { message: message.to_owned(), index: 0 };
    let delivery = Delivery::new(of.event, of.subscription, origin, of.published_ms);
    let letter = DeadLetter::without_subscription(delivery, Reason::TimeToLiveExceeded, NOW_MS);
    DeadLetter { events_per_blob: 2, ..letter }
}

fn carrying(letter: &DeadLetter) -> Record {
    let message = &letter.delivery.origin.message;
    Record {
        deadletter: Some(write_dead_letter(letter)),
        queue: "dead-letter".to_owned(),
        ..record(message, EVENT)
    }
}

/// The keys of all blobs, and the number of dead letters in each.
fn stored(desk: &Desk) -> Vec<(String, usize)> {
    let read = |key: &str, blob: &str| {
        stored::read(key, "letters", blob.as_bytes()).expect("a blob of ours").len()
    };
    let mut blobs: Vec<_> =
        desk.blobs().into_iter().map(|(key, blob)| (key.clone(), read(&key, &blob))).collect();
    blobs.sort();
    blobs
}

fn sorted(mut expected: Vec<(String, usize)>) -> Vec<(String, usize)> {
    expected.iter_mut().for_each(|(key, _)| key.insert_str(0, "letters/"));
    expected.sort();
    expected
}

#[test]
fn letters_that_are_alike_share_blobs_of_as_many_as_they_allow() {
    let desk = Desk::new(subscriptions(0));
    let letters = ["m1", "m2", "m3"].map(letter);
    let own = DeadLetter { events_per_blob: 1, ..letter("m4") };
    let records: Vec<Record> = letters.iter().chain([&own]).map(carrying).collect();
    assert_eq!(deadletter(&desk, &records), [""; 0]);
    let shared = shared_key(&[&letters[0], &letters[1]], "");
    assert_eq!(
        stored(&desk),
        sorted(vec![(shared, 2), (key(&letters[2], ""), 1), (key(&own, ""), 1)])
    );
}

#[test]
fn the_same_letter_twice_is_one_letter_and_both_records_are_done() {
    let desk = Desk::new(subscriptions(0));
    let letter = letter("m1");
    assert_eq!(deadletter(&desk, &[carrying(&letter), carrying(&letter)]), [""; 0]);
    assert_eq!(stored(&desk), sorted(vec![(key(&letter, ""), 1)]));
}

#[test]
fn a_letter_that_is_not_due_keeps_no_other_waiting() {
    let desk = Desk::new(subscriptions(0));
    let letters = ["m1", "m2", "m3"].map(letter);
    let late = DeadLetter { not_before_ms: NOW_MS + 60_000, ..letters[1].clone() };
    assert_eq!(deadletter(&desk, &[&letters[0], &late, &letters[2]].map(carrying)), ["m2"]);
    assert_eq!(desk.hidden(), [("dead-letter".to_owned(), "m2".to_owned(), 60)]);
    assert_eq!(stored(&desk), sorted(vec![(shared_key(&[&letters[0], &letters[2]], ""), 2)]));
}

#[test]
fn what_comes_again_is_stored_alone() {
    let desk = Desk::new(subscriptions(0));
    let letters = ["m1", "m2"].map(letter);
    let again = letters.each_ref().map(|letter| Record { receives: 2, ..carrying(letter) });
    assert_eq!(deadletter(&desk, &again), [""; 0]);
    assert_eq!(stored(&desk), sorted(letters.iter().map(|letter| (key(letter, ""), 1)).collect()));
}

#[test]
fn a_shared_blob_that_storage_refuses_makes_each_record_wait_for_itself() {
    let desk =
        Desk::new(subscriptions(0)).refusing_blobs("letters", PutError::Refused("503".to_owned()));
    let fresh = letter("m1");
    let older = DeadLetter { decided_ms: NOW_MS - 60_000, ..letter("m2") };
    assert_eq!(deadletter(&desk, &[&fresh, &older].map(carrying)), ["m1", "m2"]);
    let hidden = |message: &str, seconds| ("dead-letter".to_owned(), message.to_owned(), seconds);
    assert_eq!(desk.hidden(), [hidden("m1", 10), hidden("m2", 240)]);
    // One of them has been refused for too long and moves to the last-resort queue; the other waits
    // on.
    let desk =
        Desk::new(subscriptions(0)).refusing_blobs("letters", PutError::Refused("503".to_owned()));
    let oldest = DeadLetter { decided_ms: NOW_MS - 2 * 86_400_000, ..letter("m3") };
    assert_eq!(deadletter(&desk, &[&fresh, &oldest].map(carrying)), ["m1"]);
    assert_eq!((desk.sent().len(), desk.hidden()), (1, vec![hidden("m1", 10)]));
}

#[test]
fn a_record_that_cannot_be_read_holds_up_no_parcel() {
    let desk = Desk::new(subscriptions(0));
    let newer = Record { deadletter: Some(r#"{"v":2}"#.to_owned()), ..record("m0", EVENT) };
    let letters = ["m1", "m2"].map(letter);
    assert_eq!(deadletter(&desk, &[newer, carrying(&letters[0]), carrying(&letters[1])]), ["m0"]);
    assert_eq!(stored(&desk), sorted(vec![(shared_key(&letters.each_ref()[..], ""), 2)]));
}
