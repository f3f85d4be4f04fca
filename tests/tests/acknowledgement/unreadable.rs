//! A record with an unreadable attribute waits unchanged for half an hour. A newer version of the
//! functions may run beside this one, or soon.

use deadletter::{DeadLetters, dead_letter_of};
use delivery::ports::{Attribute, Message, MessageGroup, QueueName, Record};
use delivery::time::duration::{HOUR_MS, MINUTE_MS};
use delivery::wire::{write_dead_letter, write_delivery, write_publication};
use dispatch::{Deadline, Dispatch};
use lastmile_tests::fake_ports::{FakePorts, Fault, NOW_MS};
use lastmile_tests::logs::Logged;
use tracing::Level;

use crate::examples::{
    ENDS_MS, EVENT, container, deadletter, delivery, dispatch, letter, record, subscriptions,
};

/// A delivery to an unknown kind of target.
fn of_newer_version() -> Attribute {
    let known = write_delivery(&delivery("shop/orders/s0"));
    Attribute::Delivery(known.replacen(r#""attempts""#, r#""leg":"copy","attempts""#, 1))
}

fn unreadable(queue: QueueName, attribute: &Attribute) -> Record {
    let (attribute, group) = (Some(attribute.clone()), Some("g".to_owned()));
    Record { queue, attribute, group, ..record("m1", EVENT) }
}

/// Handles a record with the function that reads its queue.
fn handle(ports: &FakePorts, record: &Record, now_ms: u64) -> Vec<String> {
    let batch = std::slice::from_ref(record);
    if record.queue == QueueName::DeadLetter {
        return ports.run(DeadLetters::new(ports.clone(), container()).handle(batch));
    }
    let deadline = Deadline::new(now_ms, now_ms + 120_000);
    ports.run(Dispatch::new(ports.clone(), container(), None).handle(batch, &deadline))
}

/// Handles a record until it no longer waits in this queue, but at most `most` times. Returns the
/// minutes of its waits, and the record as it was received last.
fn waits_of(ports: &FakePorts, first: Record, queue: QueueName, most: usize) -> (Vec<u64>, Record) {
    let (mut minutes, mut waiting) = (Vec::new(), first);
    while minutes.len() < most {
        let now_ms = NOW_MS + ports.elapsed_ms();
        assert_eq!(handle(ports, &waiting, now_ms), [""; 0], "a wait uses up no receive");
        let Some((to, message)) = ports.sent().pop() else { break };
        if to != queue || ports.sent().len() == minutes.len() {
            break;
        }
        let Message { body, topic, attribute, group, unread, wait_ms, .. } = message;
        assert_eq!((&body, Some(&attribute)), (&waiting.body, waiting.attribute.as_ref()));
        assert_eq!(group, MessageGroup::Received(Some("g".to_owned())));
        minutes.push(wait_ms / MINUTE_MS);
        ports.advance_ms(wait_ms);
        let (sent_ms, message) = (now_ms, format!("m{}", minutes.len() + 1));
        let (topic, first_received_ms) = (topic.map(|topic| topic.to_string()), now_ms + wait_ms);
        waiting = Record { queue, message, topic, unread, sent_ms, first_received_ms, ..waiting };
    }
    assert_eq!((ports.visibility_changes().len(), ports.requests()), (0, 0));
    (minutes, waiting)
}

#[test]
fn an_unreadable_attribute_waits_half_an_hour_as_it_is_before_its_event_is_a_dead_letter() {
    let publication = write_publication(&record("m0", EVENT).as_publication());
    let publication = publication.replacen(r#""message":"#, r#""messages":"#, 1);
    for (queue, attribute) in [
        (QueueName::Retry, of_newer_version()),
        (QueueName::Retry, Attribute::Publication(publication)),
        (QueueName::Retry, Attribute::DeadLetter(r#"{"v":1}"#.to_owned())),
        (QueueName::Retry, Attribute::Delivery("express".to_owned())),
    ] {
        let ports = FakePorts::new(subscriptions(1));
        let (minutes, last) = waits_of(&ports, unreadable(queue, &attribute), queue, 99);
        assert_eq!(minutes, [1, 2, 4, 8, 15], "{queue:?} {attribute:?}");
        assert_eq!(ports.elapsed_ms(), 30 * MINUTE_MS);
        let (to, message) = ports.sent().pop().expect("a dead letter");
        let name = letter(&message).delivery.subscription.to_string();
        let names_it = attribute.value().contains("shop/orders/s0");
        let expected = if names_it { "shop/orders/s0" } else { "shop/orders/_unprocessed" };
        assert_eq!((to, name.as_str()), (QueueName::DeadLetter, expected));
        assert_eq!((message.body, message.unread), (last.body, 0));
    }
}

#[test]
fn deadletter_lets_it_wait_in_its_own_queue_and_then_stores_its_event() {
    let attribute = write_dead_letter(&delivery::delivery::DeadLetter::without_subscription(
        delivery("shop/orders/s0"),
        delivery::delivery::reason::Reason::TimeToLiveExceeded,
        NOW_MS,
    ));
    let attribute = attribute.replacen(r#""format":"namespace""#, r#""format":"avro""#, 1);
    for attribute in [Attribute::DeadLetter(attribute), of_newer_version()] {
        let ports = FakePorts::new(subscriptions(1));
        let queue = QueueName::DeadLetter;
        let (minutes, _) = waits_of(&ports, unreadable(queue, &attribute), queue, 99);
        assert_eq!((minutes, ports.elapsed_ms()), (vec![1, 2, 4, 8, 15], 30 * MINUTE_MS));
        let (key, text) = ports.blobs().remove(0);
        assert!(key.starts_with("letters/shop/orders/s0/"), "{key}");
        assert!(text.contains("ProcessingFailed"), "{text}");
        assert_eq!(ports.sent().len(), 5);
    }
}

#[test]
fn a_newer_version_waits_until_newer_code_runs_and_is_never_a_dead_letter() {
    for (queue, attribute) in [
        (QueueName::Retry, Attribute::Delivery(r#"{"v":2}"#.to_owned())),
        (QueueName::Retry, Attribute::Publication(r#"{"v":2}"#.to_owned())),
        (QueueName::DeadLetter, Attribute::DeadLetter(r#"{"v":2}"#.to_owned())),
        (QueueName::DeadLetter, Attribute::Delivery(r#"{"v":2}"#.to_owned())),
    ] {
        let ports = FakePorts::new(subscriptions(1));
        let (minutes, _) = waits_of(&ports, unreadable(queue, &attribute), queue, 100);
        assert_eq!((minutes.len(), &minutes[..6]), (100, &[1, 2, 4, 8, 15, 15][..]), "{queue:?}");
        assert_eq!(ports.blobs().len(), 0);
    }
}

#[test]
fn a_newer_version_that_is_not_deployed_for_an_hour_is_an_error_in_the_log() {
    for (queue, attribute) in [
        (QueueName::Retry, Attribute::Delivery(r#"{"v":2}"#.to_owned())),
        (QueueName::DeadLetter, Attribute::DeadLetter(r#"{"v":2}"#.to_owned())),
    ] {
        let log = Logged::at(Level::ERROR);
        let ports = FakePorts::new(subscriptions(1));
        // The waits are 1, 2, 4, 8 and three times 15 minutes.
        waits_of(&ports, unreadable(queue, &attribute), queue, 7);
        assert_eq!(log.messages(), [""; 0], "{queue:?}");
        let later = FakePorts::new(subscriptions(1));
        waits_of(&later, Record { unread: 7, ..unreadable(queue, &attribute) }, queue, 1);
        assert_eq!(log.messages(), ["record.unreadable"], "{queue:?}");
    }
}

#[test]
fn an_unreadable_record_leaves_isolation_and_keeps_its_count_when_it_moves_there() {
    let isolated = Record { receives: 9, ..unreadable(QueueName::Isolation, &of_newer_version()) };
    let ports = FakePorts::new(subscriptions(1));
    assert_eq!(dispatch(&ports, &[isolated], ENDS_MS), [""; 0]);
    let (queue, message) = ports.sent().remove(0);
    assert_eq!((queue, message.unread, message.receives), (QueueName::Retry, 1, 0));
    let again = Record { receives: 2, unread: 3, ..unreadable(queue, &of_newer_version()) };
    let ports = FakePorts::new(subscriptions(1));
    assert_eq!(dispatch(&ports, &[again], ENDS_MS), [""; 0]);
    let (queue, message) = ports.sent().remove(0);
    assert_eq!((queue, message.unread, message.receives), (QueueName::Isolation, 3, 2));
}

/// A record whose event fits into a message with its attribute, but not with a count of waits.
fn large(queue: QueueName) -> Record {
    let mut large = unreadable(queue, &of_newer_version());
    let message = large.unread_message().expect("a small record fits");
    let room = 1_048_576 + "unreadString1".len() - message.size_bytes() - 1;
    large.body = format!("{EVENT}{}", " ".repeat(room)).into();
    assert_eq!(large.unread_message(), None);
    large
}

#[test]
fn a_record_too_large_to_count_its_waits_is_hidden_for_an_hour_and_then_a_dead_letter() {
    for queue in [QueueName::Retry, QueueName::DeadLetter] {
        let ports = FakePorts::new(subscriptions(1));
        let first = Record { first_received_ms: NOW_MS, ..large(queue) };
        assert_eq!(handle(&ports, &first, NOW_MS), ["m1"], "{queue:?}");
        assert_eq!(ports.visibility_changes(), [(queue, "m1".to_owned(), 3_600)]);
        assert_eq!((ports.sent().len(), ports.blobs().len()), (0, 0));
        ports.advance_ms(HOUR_MS);
        let again = Record { receives: 2, ..first };
        assert_eq!(handle(&ports, &again, NOW_MS + HOUR_MS), [""; 0], "{queue:?}");
        let (key, _) = ports.blobs().remove(0);
        assert!(key.starts_with("letters/shop/orders/s0/"), "{key}");
    }
}

#[test]
fn a_record_that_no_queue_accepts_stays_in_the_dead_letter_queue_and_counts_no_wait() {
    let ports =
        FakePorts::new(subscriptions(1)).with_queue_fault(QueueName::DeadLetter, Fault::Refuses);
    let first = unreadable(QueueName::DeadLetter, &of_newer_version());
    assert_eq!(deadletter(&ports, std::slice::from_ref(&first)), ["m1"]);
    assert_eq!(ports.visibility_changes(), [(QueueName::DeadLetter, "m1".to_owned(), 3_600)]);
    ports.repair_queues();
    ports.advance_ms(HOUR_MS);
    assert_eq!(deadletter(&ports, &[Record { receives: 2, ..first }]), [""; 0]);
    let (queue, message) = ports.sent().remove(0);
    assert_eq!((queue, message.unread, ports.blobs().len()), (QueueName::DeadLetter, 1, 0));
}

#[test]
fn nothing_waits_in_the_last_resort_queue_which_no_function_reads() {
    let read = |queue| dead_letter_of(&unreadable(queue, &of_newer_version()), NOW_MS);
    let letter = read(QueueName::LastResort).expect("a person rescues it");
    assert_eq!(letter.delivery.subscription.to_string(), "shop/orders/s0");
    assert!(read(QueueName::DeadLetter).is_err());
}
