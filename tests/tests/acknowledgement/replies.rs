//! Responses that carry an event: the reply is re-enqueued before its delivery is acknowledged.

use delivery::delivery::reason::Reason;
use delivery::delivery::{Delivery, DeliveryTarget};
use delivery::ports::QueueName;
use delivery::subscription::sink::Sink;
use delivery::subscription::{ReplyTo, Subscription};

use super::reactions::{answers, replies};
use super::{ENDS_MS, EVENT, carried, delivery, dispatch, letter, retried, subscription};
use crate::desk::{Desk, catalogue_of, record};

const REPLY: &str = r#"{"specversion":"1.0","id":"r1","source":"/billing","type":"order.billed"}"#;

/// A subscription with this reply target.
fn replying(to: ReplyTo) -> Subscription {
    Subscription { reply: Some(to), ..subscription("shop/orders/s0") }
}

fn to_address() -> ReplyTo {
    ReplyTo::Address("https://replies.example.com/".parse().expect("an address"))
}

fn to_topic() -> ReplyTo {
    ReplyTo::Topic("shop/billed".parse().expect("a topic"))
}

/// The subscriber sends a reply; the topic of replies has two subscriptions.
fn desk(to: ReplyTo) -> Desk {
    let all = [replying(to), subscription("shop/billed/a"), subscription("shop/billed/b")];
    Desk::new(catalogue_of(all)).meeting("s0.example.com", &[replies(REPLY)])
}

#[test]
fn a_reply_leaves_as_its_own_message_and_the_record_is_acknowledged() {
    let desk = desk(to_address());
    assert_eq!(dispatch(&desk, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let (queue, message) = desk.sent().remove(0);
    let reply = carried(&message);
    assert_eq!((queue, message.body.as_ref(), message.wait_ms), (QueueName::Events, REPLY, 0));
    assert_eq!((&reply.target, reply.hops, reply.attempts), (&DeliveryTarget::Reply, 1, 0));
    assert_eq!((desk.requests(), desk.sent().len()), (1, 1));
}

#[test]
fn the_record_comes_again_when_the_queue_does_not_take_its_reply() {
    for to in [to_address(), to_topic()] {
        let desk = desk(to).refusing_messages();
        assert_eq!(
            dispatch(&desk, &[record("m1", EVENT), record("m2", EVENT)], ENDS_MS),
            ["m1", "m2"]
        );
        assert_eq!((desk.requests(), desk.hidden().len()), (2, 0));
    }
}

#[test]
fn the_same_answer_to_the_same_delivery_is_the_same_reply() {
    let desk = desk(to_address());
    let again = [retried(&delivery("shop/orders/s0"))];
    dispatch(&desk, &again, ENDS_MS);
    dispatch(&desk, &again, ENDS_MS);
    let ids: Vec<_> = desk.sent().iter().map(|(_, message)| carried(message).id).collect();
    assert!(ids.len() == 2 && ids[0] == ids[1], "{ids:?}");
}

#[test]
fn a_reply_to_a_topic_of_two_subscriptions_leaves_as_two_messages() {
    let desk = desk(to_topic());
    assert_eq!(dispatch(&desk, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let sent = desk.sent();
    let left: Vec<_> = sent
        .iter()
        .map(|(queue, message)| (*queue, carried(message).subscription.to_string()))
        .collect();
    let events = |name: &str| (QueueName::Events, name.to_owned());
    assert_eq!(left, [events("shop/billed/a"), events("shop/billed/b")]);
    assert!(sent.iter().all(|(_, message)| message.body.as_ref() == REPLY
        && carried(message).target == DeliveryTarget::Destination));
}

#[test]
fn a_reply_is_posted_to_its_address_and_its_own_answer_is_no_reply() {
    let desk = desk(to_address()).meeting("replies.example.com", &[replies(REPLY)]);
    let reply = Delivery { target: DeliveryTarget::Reply, hops: 1, ..delivery("shop/orders/s0") };
    assert_eq!(dispatch(&desk, &[retried(&reply)], ENDS_MS), [""; 0]);
    let urls: Vec<_> = desk.posts().iter().map(|request| request.url.to_string()).collect();
    assert_eq!((urls, desk.sent().len()), (vec!["https://replies.example.com/".to_owned()], 0));
}

#[test]
fn a_reply_that_fails_is_tried_again_by_itself() {
    let desk = desk(to_address()).meeting("replies.example.com", &[answers(503)]);
    let reply = Delivery { target: DeliveryTarget::Reply, hops: 1, ..delivery("shop/orders/s0") };
    assert_eq!(dispatch(&desk, &[retried(&reply)], ENDS_MS), [""; 0]);
    let (queue, message) = desk.sent().remove(0);
    let again = carried(&message);
    assert_eq!(
        (queue, &again.target, again.hops, again.attempts),
        (QueueName::Retry, &DeliveryTarget::Reply, 1, 1)
    );
}

#[test]
fn the_eleventh_hop_is_a_letter() {
    for (hops, expected) in [(9, QueueName::Events), (10, QueueName::DeadLetter)] {
        for to in [to_address(), to_topic()] {
            let desk = desk(to);
            let far = Delivery { hops, ..delivery("shop/orders/s0") };
            assert_eq!(dispatch(&desk, &[retried(&far)], ENDS_MS), [""; 0]);
            let sent = desk.sent();
            assert!(
                !sent.is_empty() && sent.iter().all(|(queue, _)| *queue == expected),
                "{sent:?}"
            );
            for (_, message) in sent.iter().filter(|_| hops == 10) {
                let letter = letter(message);
                assert_eq!((letter.reason, letter.delivery.hops), (Reason::ReplyLoop, 11));
            }
        }
    }
}

#[test]
fn a_letter_about_a_reply_is_dropped_where_letters_are_and_else_kept_at_rest() {
    let address = Sink::Address("https://sink.example.com/".parse().expect("an address"));
    for (sink, letters, says_why) in
        [(Sink::None, 0, false), (Sink::DefaultContainer, 1, false), (address, 1, true)]
    {
        let mut replying = replying(to_address());
        replying.dead_letter.sink = sink;
        let desk = Desk::new(catalogue_of([replying])).meeting("s0.example.com", &[replies("{}")]);
        assert_eq!(dispatch(&desk, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
        let sent = desk.sent();
        assert!(sent.iter().all(|(queue, _)| *queue == QueueName::DeadLetter), "{sent:?}");
        let errors: Vec<bool> =
            sent.iter().map(|(_, message)| letter(message).sink_error.is_some()).collect();
        assert_eq!(errors, vec![says_why; letters]);
    }
}
