//! Responses that carry an event: the reply is re-enqueued before its delivery is acknowledged.

use std::collections::BTreeMap;

use delivery::delivery::reason::Reason;
use delivery::delivery::{Delivery, DeliveryTarget};
use delivery::ports::{Attribute, Message, QueueName};
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::sink::Sink;
use delivery::subscription::{ReplyTo, Subscription};
use lastmile_tests::fake_ports::FakePorts;
use lastmile_tests::fake_ports::reactions::replies;
use uuid::Uuid;

use super::divided::received;
use crate::examples::{
    ENDS_MS, EVENT, carried, catalogue_of, delivery, dispatch, letter, publication, record,
    retry_record, subscription,
};

const REPLY: &str = r#"{"specversion":"1.0","id":"r1","source":"/billing","type":"order.billed"}"#;

/// A subscription with this reply target.
fn with_reply(to: ReplyTo) -> Subscription {
    Subscription { reply: Some(to), ..subscription("shop/orders/s0") }
}

fn to_address() -> ReplyTo {
    ReplyTo::Address("https://replies.example.com/".parse().expect("an address"))
}

fn to_topic() -> ReplyTo {
    ReplyTo::Topic("shop/billed".parse().expect("a topic"))
}

/// The subscriber sends a reply; the topic of replies has two subscriptions.
fn ports(to: ReplyTo) -> FakePorts {
    let all = [with_reply(to), subscription("shop/billed/a"), subscription("shop/billed/b")];
    FakePorts::new(catalogue_of(all)).with_reactions("s0.example.com", &[replies(REPLY)])
}

#[test]
fn a_reply_is_enqueued_as_its_own_message_and_the_record_is_acknowledged() {
    let ports = ports(to_address());
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let (queue, message) = ports.sent().remove(0);
    let reply = carried(&message);
    assert_eq!((queue, message.body.as_ref(), message.wait_ms), (QueueName::Retry, REPLY, 0));
    assert_eq!((&reply.target, reply.hops, reply.attempts), (&DeliveryTarget::Reply, 1, 0));
    assert_eq!((ports.requests(), ports.sent().len()), (1, 1));
}

#[test]
fn a_record_whose_reply_cannot_be_enqueued_is_redelivered() {
    for to in [to_address(), to_topic()] {
        let ports = ports(to).with_failing_queue();
        assert_eq!(
            dispatch(&ports, &[record("m1", EVENT), record("m2", EVENT)], ENDS_MS),
            ["m1", "m2"]
        );
        assert_eq!((ports.requests(), ports.visibility_changes().len()), (2, 0));
    }
}

/// The topic of replies has so many subscriptions.
fn catalogue(subscriptions: usize) -> Catalogue {
    let all = (0..subscriptions).map(|number| subscription(&format!("shop/billed/s{number:05}")));
    catalogue_of(all.chain([with_reply(to_topic())]))
}

/// The message of a reply to a topic.
fn published(catalogue: &Catalogue) -> (QueueName, Message) {
    let ports =
        FakePorts::new(catalogue.clone()).with_reactions("s0.example.com", &[replies(REPLY)]);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    assert!(ports.elapsed_ms() <= 2_000, "{} ms", ports.elapsed_ms());
    assert_eq!((ports.requests(), ports.sent().len()), (1, 1));
    ports.sent().remove(0)
}

#[test]
fn a_reply_to_a_topic_is_one_message_however_many_subscriptions_take_it() {
    for subscriptions in [1, 2, 10_000] {
        let (queue, message) = published(&catalogue(subscriptions));
        assert_eq!((queue, message.body.as_ref()), (QueueName::Retry, REPLY));
        let onward = publication(&message).onward.expect("a reply says what led to it");
        assert_eq!((onward.hops, onward.replies_left), (1, 64));
    }
}

#[test]
fn a_reply_reaches_each_of_ten_thousand_subscriptions_once_with_the_same_ids_after_a_kill() {
    let catalogue = catalogue(10_000);
    // Its process is killed after the message was sent: the record is received again.
    let mut open = vec![published(&catalogue), published(&catalogue)];
    let mut requests: BTreeMap<Uuid, usize> = BTreeMap::new();
    while let Some(message) = open.pop() {
        // Each is refused once, so that its next message shows its id.
        let ports = FakePorts::new(catalogue.clone()).with_status(503);
        assert_eq!(dispatch(&ports, &[received(0, &message)], ENDS_MS), [""; 0]);
        let (parts, retries): (Vec<_>, Vec<_>) = ports
            .sent()
            .into_iter()
            .partition(|(_, message)| matches!(message.attribute, Attribute::Publication(_)));
        assert_eq!(ports.requests(), retries.len());
        open.extend(parts);
        for (_, message) in retries {
            *requests.entry(carried(&message).id).or_default() += 1;
        }
    }
    assert_eq!(requests.len(), 10_000, "one id for each subscription");
    assert!(requests.values().all(|count| *count == 2), "once for each of the two messages");
}

#[test]
fn a_refused_reply_to_a_topic_is_published_there_when_it_is_replayed() {
    let ports = FakePorts::new(catalogue_of([with_reply(to_topic())]))
        .with_reactions("s0.example.com", &[replies(REPLY)]);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let refused = letter(&ports.sent().remove(0).1);
    assert_eq!(refused.reason.known(), Some(Reason::TopicNotFound));
    // The topic is there, and an operator replays the dead letter.
    let replayed = Delivery { target: refused.delivery.target, ..delivery("shop/orders/s0") };
    let repaired = FakePorts::new(catalogue(2));
    assert_eq!(dispatch(&repaired, &[retry_record(&replayed)], ENDS_MS), [""; 0]);
    let (queue, message) = repaired.sent().remove(0);
    assert_eq!((queue, repaired.requests()), (QueueName::Retry, 0));
    assert_eq!(message.topic.map(|topic| topic.to_string()).as_deref(), Some("shop/billed"));
}

#[test]
fn a_reply_is_posted_to_its_address_and_the_response_to_it_is_no_reply() {
    let ports = ports(to_address()).with_reactions("replies.example.com", &[replies(REPLY)]);
    let reply = Delivery { target: DeliveryTarget::Reply, hops: 1, ..delivery("shop/orders/s0") };
    assert_eq!(dispatch(&ports, &[retry_record(&reply)], ENDS_MS), [""; 0]);
    let urls: Vec<_> = ports.posts().iter().map(|request| request.url.to_string()).collect();
    assert_eq!((urls, ports.sent().len()), (vec!["https://replies.example.com/".to_owned()], 0));
}

#[test]
fn the_eleventh_hop_is_dead_lettered() {
    for (hops, expected) in [(9, QueueName::Retry), (10, QueueName::DeadLetter)] {
        for to in [to_address(), to_topic()] {
            let ports = ports(to);
            let at_hop_limit = Delivery { hops, ..delivery("shop/orders/s0") };
            assert_eq!(dispatch(&ports, &[retry_record(&at_hop_limit)], ENDS_MS), [""; 0]);
            let sent = ports.sent();
            assert!(
                !sent.is_empty() && sent.iter().all(|(queue, _)| *queue == expected),
                "{sent:?}"
            );
            for (_, message) in sent.iter().filter(|_| hops == 10) {
                let letter = letter(message);
                assert_eq!(
                    (letter.reason.known(), letter.delivery.hops),
                    (Some(Reason::ReplyLoop), 11)
                );
            }
        }
    }
}

#[test]
fn an_undeliverable_reply_is_dropped_if_dead_letters_are_and_otherwise_stored() {
    let address = Sink::Address("https://sink.example.com/".parse().expect("an address"));
    for (sink, letters, says_why) in
        [(Sink::None, 0, false), (Sink::DefaultContainer, 1, false), (address, 1, true)]
    {
        let mut with_reply = with_reply(to_address());
        with_reply.dead_letter.sink = sink;
        let ports = FakePorts::new(catalogue_of([with_reply]))
            .with_reactions("s0.example.com", &[replies("{}")]);
        assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
        let sent = ports.sent();
        assert!(sent.iter().all(|(queue, _)| *queue == QueueName::DeadLetter), "{sent:?}");
        let errors: Vec<bool> =
            sent.iter().map(|(_, message)| letter(message).sink_error.is_some()).collect();
        assert_eq!(errors, vec![says_why; letters]);
    }
}
