//! Replayed deliveries: their end is sent before they count as done, and recorded once.

use delivery::delivery::reason::Reason;
use delivery::delivery::replay::{Replay, ReplayEnd, ReplayOutcome, StoredReplayEnd, read_ends};
use delivery::delivery::{DeadLetter, Delivery, DeliveryTarget};
use delivery::ports::{Attribute, Message, PutError, QueueName, Record};
use delivery::subscription::ReplyTo;
use delivery::subscription::sink::Sink;
use delivery::wire::{is_replay_end, read_replay_end};
use lastmile_tests::fake_ports::{FakePorts, Fault, NOW_MS};
use uuid::Uuid;

use crate::examples::{
    ENDS_MS, carried, catalogue_of, deadletter, delivery, dispatch, letter, record, retry_record,
    subscription, subscriptions,
};

const OLD: Uuid = Uuid::from_u128(7);
const ENDS: &str = "letters/_replays/job-1/ends/";

fn replayed() -> Delivery {
    Delivery { replay: Replay::new("job-1", OLD), ..delivery("shop/orders/s0") }
}

/// The end that a message of the dead-letter queue carries.
fn end(message: &Message) -> ReplayEnd {
    let Attribute::DeadLetter(text) = &message.attribute else { panic!("{message:?}") };
    read_replay_end(text).expect("an end")
}

/// The record of a message in the dead-letter queue.
fn record_of(message: &Message) -> Record {
    Record {
        attribute: Some(message.attribute.clone()),
        queue: QueueName::DeadLetter,
        ..record("end", &message.body)
    }
}

/// The recorded end of the replay.
fn recorded(ports: &FakePorts) -> StoredReplayEnd {
    let blobs = ports.blobs();
    let objects: Vec<_> = blobs.iter().filter(|(key, _)| key.starts_with(ENDS)).collect();
    assert_eq!(objects.len(), 1, "{blobs:?}");
    let mut ends = read_ends(objects[0].1.as_bytes());
    assert_eq!(ends.len(), 1, "{blobs:?}");
    ends.remove(0)
}

#[test]
fn the_ends_of_an_invocation_share_an_object_for_each_job() {
    let ports = FakePorts::new(subscriptions(1));
    let record_of_end = |(job, letter)| {
        let replay = Replay::new(job, Uuid::from_u128(letter)).expect("a name");
        let (delivery, outcome) = (Uuid::from_u128(9), ReplayOutcome::Delivered);
        record_of(&Message::of_replay_end(
            &ReplayEnd { replay, delivery, outcome, at_ms: 1, stored: None },
            0,
        ))
    };
    let records = [("job-1", 1), ("job-2", 2), ("job-1", 3)].map(record_of_end);
    assert_eq!(deadletter(&ports, &records), [""; 0]);
    let blobs = ports.blobs();
    let letters = |folder: &str| {
        let objects: Vec<_> = blobs.iter().filter(|(key, _)| key.starts_with(folder)).collect();
        assert_eq!(objects.len(), 1, "{folder}");
        read_ends(objects[0].1.as_bytes())
            .iter()
            .map(|entry| entry.letter.as_u128())
            .collect::<Vec<_>>()
    };
    assert_eq!(letters(ENDS), [1, 3]);
    assert_eq!(letters("letters/_replays/job-2/ends/"), [2]);
}

/// The records of deliveries of job 1 that are dead again, and due.
fn dead_again(ports: &FakePorts, letters: std::ops::RangeInclusive<u128>) -> Vec<Record> {
    let refusing = FakePorts::new(subscriptions(1)).with_status(400);
    let replays = letters.map(|number| {
        let id = Uuid::from_u128(100 + number);
        let replay = Replay::new("job-1", Uuid::from_u128(number));
        retry_record(&Delivery { id, replay, ..delivery("shop/orders/s0") })
    });
    assert_eq!(dispatch(&refusing, &replays.collect::<Vec<_>>(), ENDS_MS), [""; 0]);
    ports.advance_ms(600_000);
    let sent = refusing.sent();
    let records = sent
        .iter()
        .zip(1..)
        .map(|((_, dead), number)| Record { message: format!("dead-{number}"), ..record_of(dead) });
    records.collect()
}

#[test]
fn deliveries_that_are_dead_again_share_an_object_with_the_other_ends_of_their_job() {
    let ports = FakePorts::new(subscriptions(1));
    let mut records = dead_again(&ports, 1..=3);
    let replay = Replay::new("job-1", Uuid::from_u128(4)).expect("a name");
    let (delivery, outcome) = (Uuid::from_u128(9), ReplayOutcome::Delivered);
    let end = ReplayEnd { replay, delivery, outcome, at_ms: 1, stored: None };
    records.push(record_of(&Message::of_replay_end(&end, 0)));
    assert_eq!(deadletter(&ports, &records), [""; 0]);
    let blobs = ports.blobs();
    let objects: Vec<_> = blobs.iter().filter(|(key, _)| key.starts_with(ENDS)).collect();
    assert_eq!((objects.len(), blobs.len()), (1, 4), "{blobs:?}");
    let mut ends: Vec<_> = read_ends(objects[0].1.as_bytes())
        .into_iter()
        .map(|end| (end.letter.as_u128(), end.state, end.key.is_some()))
        .collect();
    ends.sort_unstable();
    let again = |letter| (letter, ReplayOutcome::DeadAgain, true);
    assert_eq!(ends, [again(1), again(2), again(3), (4, ReplayOutcome::Delivered, false)]);
}

#[test]
fn an_end_that_neither_storage_nor_its_queue_takes_leaves_its_stored_dead_letter_in_the_queue() {
    let refused = PutError::Unavailable("503".to_owned());
    let ports = FakePorts::new(subscriptions(1)).with_put_error("letters/_replays", refused);
    let records = dead_again(&ports, 1..=2);
    // The queue accepts the ends, so both records are done.
    assert_eq!(deadletter(&ports, &records), [""; 0]);
    let outcomes = ports.sent().iter().map(|(_, sent)| end(sent).outcome).collect::<Vec<_>>();
    assert_eq!((outcomes, ports.blobs().len()), (vec![ReplayOutcome::DeadAgain; 2], 2));
    let ports = ports.with_queue_fault(QueueName::DeadLetter, Fault::Refuses);
    let mut left = deadletter(&ports, &records);
    left.sort_unstable();
    assert_eq!((left, ports.blobs().len()), (vec!["dead-1".to_owned(), "dead-2".to_owned()], 2));
}

#[test]
fn a_replay_that_is_delivered_sends_its_end_and_any_other_delivery_sends_nothing() {
    let ports = FakePorts::new(subscriptions(1));
    assert_eq!(dispatch(&ports, &[retry_record(&replayed())], ENDS_MS), [""; 0]);
    let sent = ports.sent();
    assert_eq!((sent.len(), sent[0].0), (1, QueueName::DeadLetter));
    let report = end(&sent[0].1);
    assert_eq!((report.outcome, report.delivery), (ReplayOutcome::Delivered, replayed().id));
    assert_eq!(deadletter(&ports, &[record_of(&sent[0].1)]), [""; 0]);
    assert_eq!(recorded(&ports).state, ReplayOutcome::Delivered);

    let ports = FakePorts::new(subscriptions(1));
    let other = retry_record(&delivery("shop/orders/s0"));
    assert_eq!(dispatch(&ports, &[other], ENDS_MS), [""; 0]);
    assert_eq!((ports.sent().len(), ports.blobs().len()), (0, 0));
}

#[test]
fn an_end_that_its_queue_refuses_repeats_no_delivery() {
    for status in [200, 400] {
        let mut drops = subscription("shop/orders/s0");
        drops.dead_letter.sink = Sink::None;
        let ports = FakePorts::new(catalogue_of([drops]))
            .with_status(status)
            .with_queue_fault(QueueName::DeadLetter, Fault::Refuses);
        assert_eq!(dispatch(&ports, &[retry_record(&replayed())], ENDS_MS), [""; 0], "{status}");
        assert_eq!((ports.requests(), ports.sent().len()), (1, 0), "{status}");
    }
}

#[test]
fn a_replay_keeps_its_job_through_a_retry_and_is_recorded_with_its_new_dead_letter() {
    let ports = FakePorts::new(subscriptions(1)).with_status(503);
    assert_eq!(dispatch(&ports, &[retry_record(&replayed())], ENDS_MS), [""; 0]);
    assert_eq!(carried(&ports.sent()[0].1).replay, replayed().replay);

    let ports = FakePorts::new(subscriptions(1)).with_status(400);
    assert_eq!(dispatch(&ports, &[retry_record(&replayed())], ENDS_MS), [""; 0]);
    let dead = ports.sent().remove(0).1;
    assert_eq!(letter(&dead).delivery.replay, replayed().replay);
    ports.advance_ms(600_000);
    // The dead letter is handled twice, as after a crash between storing and acknowledging.
    for _ in 0..2 {
        assert_eq!(deadletter(&ports, &[record_of(&dead)]), [""; 0]);
    }
    let end = recorded(&ports);
    assert_eq!((end.state, end.delivery), (ReplayOutcome::DeadAgain, replayed().id));
    let key = end.key.expect("it is in a container");
    let blobs = ports.blobs();
    let (_, blob) = blobs.iter().find(|(at, _)| *at == format!("letters/{key}")).expect("a blob");
    assert!(blob.contains(&format!("\"replayof\":\"{OLD}\",\"replayjob\":\"job-1\"")), "{blob}");
    assert_eq!(blobs.len(), 2);
}

#[test]
fn a_replay_that_its_subscription_drops_sends_that() {
    let mut drops = subscription("shop/orders/s0");
    drops.dead_letter.sink = Sink::None;
    let ports = FakePorts::new(catalogue_of([drops])).with_status(400);
    assert_eq!(dispatch(&ports, &[retry_record(&replayed())], ENDS_MS), [""; 0]);
    let sent = ports.sent();
    assert_eq!(
        sent.iter().map(|(_, message)| end(message).outcome).collect::<Vec<_>>(),
        [ReplayOutcome::Dropped]
    );
}

#[test]
fn an_end_that_storage_refuses_is_retried_for_a_day_and_never_becomes_a_dead_letter() {
    let refused = PutError::Unavailable("503".to_owned());
    let ports = FakePorts::new(subscriptions(1)).with_put_error("letters", refused);
    let end_of = |at_ms| ReplayEnd {
        replay: Replay::new("job-1", OLD).expect("a name"),
        delivery: replayed().id,
        outcome: ReplayOutcome::Delivered,
        at_ms,
        stored: None,
    };
    let fresh = record_of(&Message::of_replay_end(&end_of(NOW_MS), 0));
    assert_eq!(deadletter(&ports, std::slice::from_ref(&fresh)), [""; 0]);
    let (queue, again) = ports.sent().remove(0);
    assert_eq!((queue, end(&again)), (QueueName::DeadLetter, end_of(NOW_MS)));
    assert!(again.wait_ms > 0);
    // If neither storage nor the queue accepts the end, it stays in its queue, but not for ever.
    let ports = ports.with_queue_fault(QueueName::DeadLetter, Fault::Refuses);
    assert_eq!(deadletter(&ports, std::slice::from_ref(&fresh)), ["end"]);
    assert_eq!(deadletter(&ports, &[Record { receives: 10, ..fresh }]), [""; 0]);
    let old = record_of(&Message::of_replay_end(&end_of(NOW_MS - 86_400_000), 0));
    assert_eq!(deadletter(&ports, &[old]), [""; 0]);
    assert_eq!((ports.sent().len(), ports.blobs().len()), (1, 0));
}

#[test]
fn an_end_that_nobody_can_read_waits_and_is_given_up_without_a_dead_letter() {
    let ports = FakePorts::new(subscriptions(1));
    let text = r#"{"v":2,"replay_end":{"replay":{"job":"../x","letter":"?"}}}"#;
    assert!(is_replay_end(text));
    let unreadable = Record {
        attribute: Some(Attribute::DeadLetter(text.to_owned())),
        queue: QueueName::DeadLetter,
        ..record("end", "{}")
    };
    assert_eq!(deadletter(&ports, std::slice::from_ref(&unreadable)), [""; 0]);
    assert_eq!((ports.sent().len(), ports.sent()[0].1.unread), (1, 1));
    assert_eq!(deadletter(&ports, &[Record { unread: 9, ..unreadable }]), [""; 0]);
    assert_eq!((ports.sent().len(), ports.blobs().len()), (1, 0));
}

#[test]
fn a_replayed_reply_and_a_replay_to_a_sink_report_their_ends_too() {
    let replay = || Replay::new("job-1", OLD);
    let to_reply = Delivery { target: DeliveryTarget::Reply, ..replayed() };
    let dead = DeadLetter::without_subscription(
        delivery("shop/orders/s0"),
        Reason::MaxDeliveryAttemptsExceeded,
        NOW_MS,
    );
    let to_sink = Delivery {
        target: DeliveryTarget::Sink(Box::new(dead)),
        replay: replay(),
        ..delivery("shop/orders/s0")
    };
    let mut with_both = subscription("shop/orders/s0");
    let address: url::Url = "https://other.example.com/".parse().expect("an address");
    with_both.reply = Some(ReplyTo::Address(address.clone()));
    with_both.dead_letter.sink = Sink::Address(address);
    for replayed in [to_reply, to_sink] {
        let ports = FakePorts::new(catalogue_of([with_both.clone()]));
        assert_eq!(dispatch(&ports, &[retry_record(&replayed)], ENDS_MS), [""; 0]);
        let sent = ports.sent();
        let report = end(&sent[0].1);
        assert_eq!((sent.len(), report.outcome), (1, ReplayOutcome::Delivered), "{replayed:?}");
    }
}
