//! Subscriptions whose destination is a topic: the event is published there before its record is
//! acknowledged, as one message however many subscriptions the topic has, and nothing is requested.

use std::collections::BTreeMap;

use delivery::ports::{Attribute, Message, QueueName};
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::topic_address::address_of;
use lastmile_tests::fake_ports::FakePorts;

use super::divided::received;
use crate::examples::{ENDS_MS, EVENT, carried, catalogue_of, dispatch, record, subscription};

/// The subscription of all events, which go on to `shop/all`.
fn onward() -> Subscription {
    let mut onward = subscription("shop/orders/s0");
    onward.destination.url = address_of(&"shop/all".parse().expect("a topic")).into();
    onward
}

/// With so many subscriptions of `shop/all`.
fn catalogue(subscriptions: usize) -> Catalogue {
    let all = (0..subscriptions).map(|number| subscription(&format!("shop/all/s{number:04}")));
    catalogue_of(all.chain([onward()]))
}

/// The messages of an event that goes on.
fn sent(catalogue: &Catalogue) -> Vec<(QueueName, Message)> {
    let ports = FakePorts::new(catalogue.clone());
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    assert_eq!(ports.requests(), 0);
    ports.sent()
}

#[test]
fn an_event_that_goes_on_is_one_message_and_no_request() {
    for subscriptions in [1, 2, 3_000] {
        let sent = sent(&catalogue(subscriptions));
        let [(QueueName::Retry, message)] = &sent[..] else { panic!("{sent:?}") };
        assert!(matches!(message.attribute, Attribute::Publication(_)), "{message:?}");
        assert_eq!((message.body.as_ref(), message.wait_ms), (EVENT, 0));
    }
}

#[test]
fn an_event_that_goes_on_to_thousands_of_subscriptions_is_divided_with_its_replies() {
    let catalogue = catalogue(3_000);
    let (mut open, mut left) = (sent(&catalogue), BTreeMap::new());
    let mut most = 0;
    while let Some(message) = open.pop() {
        let ports = FakePorts::new(catalogue.clone()).with_status(503);
        assert_eq!(dispatch(&ports, &[received(0, &message)], ENDS_MS), [""; 0]);
        most = most.max(ports.sent().len());
        for (queue, message) in ports.sent() {
            match &message.attribute {
                Attribute::Publication(_) => open.push((queue, message)),
                Attribute::Delivery(_) => {
                    let delivery = carried(&message);
                    left.insert(delivery.id, delivery.replies_left.expect("a share"));
                }
                Attribute::DeadLetter(_) => panic!("{message:?}"),
            }
        }
    }
    assert_eq!(left.len(), 3_000, "one delivery for each");
    assert_eq!(left.values().sum::<u32>(), 64, "together as many replies as follow from any event");
    assert!(most <= dispatch::PARTS_MAX, "{most} messages at once");
}

#[test]
fn a_record_whose_event_cannot_go_on_is_redelivered() {
    let ports = FakePorts::new(catalogue(2)).with_failing_queue();
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), ["m1"]);
    assert_eq!(ports.requests(), 0);
}

#[test]
fn an_event_that_goes_on_has_at_most_512_bytes_of_state() {
    let beside = sent(&catalogue(1))[0].1.size_bytes() - EVENT.len();
    println!("{beside} bytes beside the event");
    assert!(beside <= 512, "{beside}");
}
