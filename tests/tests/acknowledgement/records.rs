//! The records that dispatch acknowledges, re-enqueues and returns, and the time at which it does
//! so.

use delivery::delivery::Hold;
use delivery::delivery::reason::Reason;
use delivery::event::{Event, Input};
use delivery::ports::{Attribute, PutError, QueueName, Record};
use delivery::time::duration::HOUR_MS;
use delivery::waits::{Kind, Schedule};
use delivery::wire::{read_dead_letter, read_delivery};
use lastmile_tests::fake_ports::reactions::answers;
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};

use crate::examples::{
    ENDS_MS, EVENT, carried, catalogue_of, delivery, dispatch, large, publication, published_at,
    record, retry_record, subscription, subscriptions, subscriptions_with_destination,
    subscriptions_with_sink, waits,
};

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
        // The delivery was never attempted, so it waits only for its next turn.
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
    // A redelivery of the record would repeat the delivery to its first subscription.
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
    // The second attempt never began, so nothing was aborted.
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
fn a_schedule_of_moments_begins_with_the_first_attempt_even_if_that_was_late() {
    let mut own = subscription("shop/orders/s0");
    let kind = Kind::Moments { moments_ms: [20_000, 90_000].into() };
    own.retry.schedule = Schedule { kind, max_ms: None };
    let ports = FakePorts::new(catalogue_of([own])).with_status(503);
    // Both moments would have passed if they counted from the publication.
    let late = published_at(NOW_MS - HOUR_MS);
    assert_eq!(dispatch(&ports, &[retry_record(&late)], ENDS_MS), [""; 0]);
    assert_eq!(waits(&ports), [(QueueName::Retry, 20_000)]);
}
