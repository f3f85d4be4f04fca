//! A queue that refuses or hangs is replaced by another way to the same end, in time.

use delivery::ports::{PutError, QueueName, Record};
use lastmile_tests::fake_ports::reactions::answers;
use lastmile_tests::fake_ports::{FakePorts, Fault, Hanging, NOW_MS};

use crate::examples::{
    ENDS_MS, EVENT, delivery, dispatch, large, record, retry_record, subscriptions,
    subscriptions_with_destination,
};

#[test]
fn a_record_returns_to_its_queue_if_the_retry_queue_refuses_what_is_left_of_it() {
    for ports in [
        FakePorts::new(subscriptions(1)).with_status(503),
        FakePorts::new(subscriptions(11)),
        FakePorts::without_subscriptions(),
    ] {
        let ports = ports.with_queue_fault(QueueName::Retry, Fault::Refuses);
        assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), ["m1"]);
        assert_eq!(ports.sent(), []);
    }
}

#[test]
fn a_record_that_the_isolation_queue_refuses_returns_to_its_own() {
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
        .with_queue_fault(QueueName::Retry, Fault::Hangs);
    let fine = Record { topic: Some("shop/other".to_owned()), ..record("m2", EVENT) };
    let other = retry_record(&delivery("shop/orders/s2"));
    let records = [record("m1", EVENT), fine, Record { message: "m3".to_owned(), ..other }];
    assert_eq!(dispatch(&ports, &records, ENDS_MS), ["m1"]);
    assert!(ports.elapsed_ms() < 119_000, "{}", ports.elapsed_ms());
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
