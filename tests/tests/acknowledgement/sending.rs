//! A queue that refuses or hangs is replaced by another way to the same end, in time.

use delivery::ports::{PutError, QueueName, Record};

use super::{ENDS_MS, EVENT, delivery, dispatch, large, publication, retry_record, waits};
use crate::fake_ports::{
    FakePorts, Fault, Hanging, NOW_MS, record, subscriptions, subscriptions_with_destination,
};
use crate::reactions::answers;

#[test]
fn a_retry_that_its_queue_refuses_goes_to_the_slow_queue_with_its_wait() {
    let ports = FakePorts::new(subscriptions(1))
        .with_status(503)
        .with_queue_fault(QueueName::Retry, Fault::Refuses);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    assert_eq!(waits(&ports), [(QueueName::Slow, 2_000)]);
}

#[test]
fn parts_and_records_that_the_retry_queue_refuses_go_to_the_slow_queue() {
    let ports =
        FakePorts::new(subscriptions(11)).with_queue_fault(QueueName::Retry, Fault::Refuses);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    assert_eq!(waits(&ports), [(QueueName::Slow, 0); 2]);
    let ports =
        FakePorts::without_subscriptions().with_queue_fault(QueueName::Retry, Fault::Refuses);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let (queue, message) = ports.sent().remove(0);
    assert_eq!((queue, publication(&message).message.as_str()), (QueueName::Slow, "m1"));
}

#[test]
fn what_isolation_refuses_returns_to_its_queue_although_others_would_take_it() {
    let ports =
        FakePorts::new(subscriptions(1)).with_queue_fault(QueueName::Isolation, Fault::Refuses);
    let again = Record { receives: 2, ..record("m1", EVENT) };
    assert_eq!(dispatch(&ports, &[again], ENDS_MS), ["m1"]);
    assert_eq!((ports.requests(), ports.sent().len()), (0, 0));
}

#[test]
fn a_dead_letter_that_its_queue_does_not_take_is_stored_by_dispatch_itself() {
    for fault in [Fault::Refuses, Fault::Hangs] {
        let ports = FakePorts::new(subscriptions(1))
            .with_status(400)
            .with_queue_fault(QueueName::DeadLetter, fault);
        assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
        let blobs = ports.blobs();
        assert_eq!((ports.sent().len(), blobs.len()), (0, 1));
        assert!(blobs[0].0.starts_with("letters/shop/orders/s0/"), "{blobs:?}");
    }
}

#[test]
fn a_dead_letter_that_neither_its_queue_nor_storage_takes_has_its_record_redelivered() {
    let ports = FakePorts::new(subscriptions(1))
        .with_status(400)
        .with_put_error("letters", PutError::Unavailable("503".to_owned()))
        .with_failing_queue();
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), ["m1"]);
    let ports = FakePorts::new(subscriptions(1))
        .with_status(400)
        .with_hanging(Hanging::PutBlob)
        .with_queue_fault(QueueName::DeadLetter, Fault::Hangs);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), ["m1"]);
    assert!(ports.elapsed_ms() < 119_000, "{}", ports.elapsed_ms());
}

#[test]
fn a_hung_send_ends_before_the_deadline_and_the_other_records_are_acknowledged() {
    let ports = FakePorts::new(subscriptions(3))
        .with_reactions("s1.example", &[answers(503)])
        .with_queue_fault(QueueName::Retry, Fault::Hangs)
        .with_queue_fault(QueueName::Slow, Fault::Hangs);
    let fine = Record { topic: Some("shop/other".to_owned()), ..record("m2", EVENT) };
    let other = retry_record(&delivery("shop/orders/s2"));
    let records = [record("m1", EVENT), fine, Record { message: "m3".to_owned(), ..other }];
    assert_eq!(dispatch(&ports, &records, ENDS_MS), ["m1"]);
    assert!(ports.elapsed_ms() < 119_000, "{}", ports.elapsed_ms());
}

#[test]
fn after_an_attempt_that_used_up_its_time_both_queues_are_still_tried() {
    // The attempt ends nine seconds before Lambda would end the invocation.
    let ports = FakePorts::new(subscriptions(1))
        .with_status(503)
        .with_duration_ms(111_000)
        .with_queue_fault(QueueName::Retry, Fault::Hangs);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    assert_eq!(ports.sent()[0].0, QueueName::Slow);
    assert_eq!(ports.sent_after_ms(), [115_000]);
}

#[test]
fn a_record_that_cannot_be_hidden_in_time_is_redelivered_all_the_same() {
    let ports = FakePorts::new(subscriptions(1))
        .with_duration_ms(60_000)
        .with_hanging(Hanging::ChangeVisibility);
    let large = record("m2", &large());
    assert_eq!(dispatch(&ports, &[record("m1", EVENT), large], NOW_MS + 45_000), ["m2"]);
}

#[test]
fn a_consent_that_cannot_be_stored_in_time_still_counts() {
    let consent = "consent: {handshake: cloudevents, origin: events.example.com, rate: 120}";
    let ports =
        FakePorts::new(subscriptions_with_destination(consent)).with_hanging(Hanging::KeepConsent);
    ports.set_consent_headers(&[("allowed-origin", "events.example.com")]);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    assert_eq!((ports.requests(), ports.sent().len()), (1, 0));
}
