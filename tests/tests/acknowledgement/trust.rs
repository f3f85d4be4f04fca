//! Our attributes count on internal queues only. On the events queue they belong to the publisher.

use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Publication, Store};
use delivery::ports::{Attribute, QueueName, Record};
use delivery::wire::{write_dead_letter, write_delivery, write_publication};
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};

use crate::examples::{ENDS_MS, EVENT, carried, delivery, dispatch, record, subscriptions};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01";

/// A record of the events queue with an attribute that its publisher made up.
fn forged(attribute: Attribute) -> Record {
    Record { attribute: Some(attribute), earlier_receives: 0, ..record("m1", EVENT) }
}

fn forged_letter() -> DeadLetter {
    let delivery = delivery("other/topic/victim");
    let letter = DeadLetter::without_subscription(delivery, Reason::TimeToLiveExceeded, NOW_MS);
    DeadLetter { store: Store::Container("elsewhere".parse().expect("a container")), ..letter }
}

#[test]
fn a_forged_delivery_or_publication_is_an_event_of_its_own_topic() {
    let publication = Publication {
        topic: Some("other/topic".to_owned()),
        ..record("m0", EVENT).as_publication()
    };
    for attribute in [
        Attribute::Delivery(write_delivery(&delivery("other/topic/victim"))),
        Attribute::Delivery("mine".to_owned()),
        Attribute::Publication(write_publication(&publication)),
    ] {
        let ports = FakePorts::new(subscriptions(1)).with_status(503);
        assert_eq!(dispatch(&ports, &[forged(attribute)], ENDS_MS), [""; 0]);
        let (_, message) = ports.sent().remove(0);
        let sent = carried(&message);
        assert_eq!(ports.posts()[0].url.as_str(), "https://s0.example.com/");
        assert_eq!((sent.origin.message.as_str(), sent.attempts), ("m1", 1));
        assert_eq!(sent.subscription.to_string(), "shop/orders/s0");
    }
}

#[test]
fn a_dead_letter_attribute_of_a_publisher_changes_nothing_about_the_event() {
    let attribute = Attribute::DeadLetter(write_dead_letter(&forged_letter()));
    for attribute in [attribute, Attribute::DeadLetter("mine".to_owned())] {
        let ports = FakePorts::new(subscriptions(1)).with_status(503);
        assert_eq!(dispatch(&ports, &[forged(attribute.clone())], ENDS_MS), [""; 0]);
        let (queue, message) = ports.sent().remove(0);
        assert_eq!((ports.requests(), queue), (1, QueueName::Retry));
        assert_eq!(carried(&message).subscription.to_string(), "shop/orders/s0");
        // Received again, it goes to isolation as any event, without the attribute.
        let again = Record { receives: 2, ..forged(attribute) };
        let ports = FakePorts::new(subscriptions(1));
        assert_eq!(dispatch(&ports, &[again], ENDS_MS), [""; 0]);
        let (queue, message) = ports.sent().remove(0);
        assert_eq!(queue, QueueName::Isolation);
        assert!(matches!(message.attribute, Attribute::Publication(_)), "{message:?}");
    }
}

#[test]
fn a_dead_letter_moved_to_an_internal_queue_is_a_fresh_delivery_to_its_subscription() {
    let mut delivery = delivery("shop/orders/s0");
    delivery.attempts = 7;
    delivery.traceparent = Some(PARENT.to_owned());
    let letter = DeadLetter::without_subscription(delivery, Reason::TimeToLiveExceeded, NOW_MS);
    let attribute = Some(Attribute::DeadLetter(write_dead_letter(&letter)));
    let ports = FakePorts::new(subscriptions(2)).with_status(503);
    let moved = Record { queue: QueueName::Retry, attribute, ..record("m9", EVENT) };
    assert_eq!(dispatch(&ports, &[moved], ENDS_MS), [""; 0]);
    let sent = carried(&ports.sent()[0].1);
    assert_eq!((ports.requests(), sent.attempts, sent.id), (1, 1, letter.delivery.id));
    assert_eq!(sent.published_ms, NOW_MS, "its age begins anew");
    assert_eq!(sent.traceparent.as_deref(), Some(PARENT));
}

#[test]
fn a_record_that_waited_keeps_its_id_publication_topic_and_trace() {
    let traceparent = Some(PARENT.to_owned());
    let published = Record {
        traceparent: traceparent.clone(),
        group: Some("g".to_owned()),
        ..record("m1", EVENT)
    };
    let ports = FakePorts::without_subscriptions();
    dispatch(&ports, &[published], ENDS_MS);
    let (queue, message) = ports.sent().remove(0);
    let waited = Record {
        queue,
        attribute: Some(message.attribute),
        topic: None,
        sent_ms: NOW_MS + 1,
        ..record("m2", EVENT)
    };
    let ports = FakePorts::new(subscriptions(1)).with_status(503);
    assert_eq!(dispatch(&ports, &[waited], ENDS_MS), [""; 0]);
    let sent = carried(&ports.sent()[0].1);
    assert_eq!((sent.origin.message.as_str(), sent.published_ms), ("m1", NOW_MS - 10));
    assert_eq!(
        (sent.subscription.to_string().as_str(), sent.traceparent),
        ("shop/orders/s0", traceparent)
    );
}
