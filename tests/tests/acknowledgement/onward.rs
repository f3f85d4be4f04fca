//! Subscriptions whose destination is a topic: the event is published there before its record is
//! acknowledged, as one message however many subscriptions the topic has, and nothing is requested.

use lastmile_tests::fake_ports::FakePorts;
use std::collections::BTreeMap;

use delivery::delivery::Delivery;
use delivery::delivery::reason::Reason;
use delivery::ports::{Attribute, Message, QueueName};
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::sink::Sink;
use delivery::subscription::topic_address::address_of;

use super::divided::received;
use super::{ENDS_MS, EVENT, carried, dispatch, large, letter, subscription};
use crate::examples::{catalogue_of, record};

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
fn its_message_becomes_a_request_to_each_subscription_there() {
    let catalogue = catalogue(2);
    let ports = FakePorts::new(catalogue.clone()).with_status(503);
    let records: Vec<_> = sent(&catalogue).iter().map(|sent| received(0, sent)).collect();
    assert_eq!(dispatch(&ports, &records, ENDS_MS), [""; 0]);
    assert_eq!(ports.requests(), 2);
    let retried: Vec<Delivery> = ports.sent().iter().map(|(_, message)| carried(message)).collect();
    let of = |delivery: &Delivery| (delivery.subscription.to_string(), delivery.hops);
    let to: Vec<_> = retried.iter().map(of).collect();
    assert_eq!(to, [("shop/all/s0000".to_owned(), 1), ("shop/all/s0001".to_owned(), 1)]);
    // By default 64 replies may follow from an event, and it is the only one that its topic sends on.
    assert_eq!(retried.iter().filter_map(|delivery| delivery.replies_left).sum::<u32>(), 64);
}

#[test]
fn on_a_topic_of_thousands_it_is_divided_like_any_event_and_so_is_what_may_follow() {
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
fn an_event_that_nobody_takes_there_is_unmatched_and_done() {
    let catalogue = catalogue_of([onward(), {
        let mut never = subscription("shop/all/never");
        never.expires_ms = Some(1);
        never
    }]);
    let ports = FakePorts::new(catalogue.clone());
    let records: Vec<_> = sent(&catalogue).iter().map(|sent| received(0, sent)).collect();
    assert_eq!(dispatch(&ports, &records, ENDS_MS), [""; 0]);
    assert_eq!((ports.requests(), ports.sent().len()), (0, 0));
}

#[test]
fn a_record_whose_event_cannot_go_on_is_redelivered() {
    let ports = FakePorts::new(catalogue(2)).with_failing_queue();
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), ["m1"]);
    assert_eq!(ports.requests(), 0);
}

#[test]
fn an_event_that_would_go_on_to_a_topic_that_does_not_exist_is_a_dead_letter() {
    let (queue, message) = sent(&catalogue_of([onward()])).remove(0);
    assert_eq!(queue, QueueName::DeadLetter);
    let letter = letter(&message);
    assert_eq!(letter.reason.known(), Some(Reason::TopicNotFound));
    assert_eq!(letter.destination.as_deref(), Some("topic:shop/all"));
}

#[test]
fn what_travels_beside_an_event_that_goes_on_is_small() {
    let beside = sent(&catalogue(1))[0].1.size_bytes() - EVENT.len();
    println!("{beside} bytes beside the event");
    assert!(beside <= 512, "{beside}");
}

#[test]
fn an_event_too_large_to_go_on_goes_where_the_dead_letters_of_its_subscription_go() {
    let elsewhere = Sink::Container("elsewhere/deep".parse().expect("a container"));
    for (sink, stored) in [
        (Sink::DefaultContainer, Some("letters/shop/orders/s0/")),
        (elsewhere, Some("elsewhere/deep/shop/orders/s0/")),
        (Sink::None, None),
    ] {
        let mut onward = onward();
        onward.dead_letter.sink = sink;
        let ports = FakePorts::new(catalogue_of([onward, subscription("shop/all/a")]));
        assert_eq!(dispatch(&ports, &[record("m1", &large())], ENDS_MS), [""; 0]);
        let keys: Vec<(String, String)> = ports.blobs();
        assert_eq!(keys.len(), usize::from(stored.is_some()));
        for ((key, letter), prefix) in keys.iter().zip(stored) {
            assert!(key.starts_with(prefix), "{key}");
            assert!(letter.contains("EventTooLargeToResend"), "{prefix}");
        }
        assert_eq!((ports.requests(), ports.sent().len()), (0, 0));
    }
}
