//! Subscriptions whose destination is a topic: the event is re-enqueued for that topic's subscriptions before
//! its record is acknowledged, and nothing is requested.

use delivery::delivery::DeliveryTarget;
use delivery::delivery::reason::Reason;
use delivery::ports::QueueName;
use delivery::subscription::Subscription;
use delivery::subscription::topic_address::address_of;

use super::{ENDS_MS, EVENT, carried, dispatch, letter, subscription};
use crate::fake_ports::{FakePorts, catalogue_of, record};

/// The subscription of all events, which go on to `shop/all`.
fn onward() -> Subscription {
    let mut onward = subscription("shop/orders/s0");
    onward.destination.url = address_of(&"shop/all".parse().expect("a topic"));
    onward
}

fn ports() -> FakePorts {
    FakePorts::new(catalogue_of([onward(), subscription("shop/all/a"), subscription("shop/all/b")]))
}

#[test]
fn an_event_that_goes_on_is_a_message_for_each_subscription_and_no_request() {
    let ports = ports();
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let sent = ports.sent();
    let to: Vec<String> =
        sent.iter().map(|(_, message)| carried(message).subscription.to_string()).collect();
    assert_eq!(to, ["shop/all/a", "shop/all/b"]);
    for (queue, message) in &sent {
        let next = carried(message);
        assert_eq!((*queue, message.body.as_ref(), message.wait_ms), (QueueName::FanOut, EVENT, 0));
        assert_eq!((next.target, next.hops), (DeliveryTarget::Destination, 1));
    }
    assert_eq!(ports.requests(), 0);
}

#[test]
fn a_record_whose_event_cannot_go_on_is_redelivered() {
    let ports = ports().with_failing_queue();
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), ["m1"]);
    assert_eq!(ports.requests(), 0);
}

#[test]
fn an_event_that_would_go_on_to_a_topic_that_does_not_exist_is_a_dead_letter() {
    let ports = FakePorts::new(catalogue_of([onward()]));
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let (queue, message) = ports.sent().remove(0);
    assert_eq!(queue, QueueName::DeadLetter);
    let letter = letter(&message);
    assert_eq!(letter.reason.known(), Some(Reason::TopicNotFound));
    assert_eq!(letter.destination.as_deref(), Some("topic:shop/all"));
}
