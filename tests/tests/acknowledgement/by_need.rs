//! Topics are read when records need them. Every topic that a delivery may lead to is read before
//! its first attempt.

use delivery::delivery::Delivery;
use delivery::ports::{QueueName, Record};
use delivery::request::Request;
use delivery::subscription::sink::Sink;
use delivery::subscription::topic_address::address_of;
use delivery::subscription::{ReplyTo, Subscription};
use lastmile_tests::fake_ports::FakePorts;
use lastmile_tests::fake_ports::reactions::replies;

use super::divided::received;
use crate::examples::{
    ENDS_MS, EVENT, catalogue_of, delivery, dispatch, publication, record, retry_record,
    subscription,
};

const REPLY: &str = r#"{"specversion":"1.0","id":"r1","source":"/s","type":"t"}"#;

/// The subscription s0 of shop/orders, whose replies and dead letters go to topics, and
/// subscriptions of two other topics.
fn subscriptions() -> [Subscription; 3] {
    let topic = |name: &str| name.parse().expect("a topic");
    let mut leading = subscription("shop/orders/s0");
    leading.reply = Some(ReplyTo::Topic(topic("shop/replies")));
    leading.dead_letter.sink = Sink::Topic(topic("shop/failed"));
    [leading, subscription("shop/others/s1"), subscription("shop/replies/s2")]
}

fn ports() -> FakePorts {
    FakePorts::new(catalogue_of(subscriptions()))
        .with_reactions("s0.example.com", &[replies(REPLY)])
}

fn of_others(message: &str) -> Record {
    Record { topic: Some("shop/others".to_owned()), ..record(message, EVENT) }
}

#[test]
fn each_topic_of_a_batch_is_read_once_and_those_it_leads_to_before_an_attempt() {
    let ports = ports();
    let records = [record("m1", EVENT), of_others("m2"), record("m3", EVENT)];
    assert_eq!(dispatch(&ports, &records, ENDS_MS), [""; 0]);
    let mut read = ports.topics_read();
    read.sort();
    assert_eq!(read, [&["shop/failed", "shop/replies"][..], &["shop/orders"], &["shop/others"]]);
    // The subscription of shop/orders sends two replies, which are published to their topic.
    assert_eq!((ports.requests(), ports.sent().len()), (3, 2));
}

/// This also holds for a retry in a batch with retries of another topic.
#[test]
fn no_record_waits_while_the_topic_of_another_record_is_read() {
    for is_retry in [false, true] {
        let ports = FakePorts::new(catalogue_of(subscriptions()))
            .with_status(503)
            .with_slow_topic("shop/others", 10_000);
        let records = match is_retry {
            false => [of_others("m1"), record("m2", EVENT)],
            true => ["shop/others/s1", "shop/orders/s0"].map(|name| retry_record(&delivery(name))),
        };
        assert_eq!(dispatch(&ports, &records, ENDS_MS), [""; 0]);
        assert_eq!(ports.sent_after_ms(), [0, 10_000], "a retry: {is_retry}");
    }
}

#[test]
fn no_record_waits_for_a_topic_that_the_subscription_of_another_record_leads_to() {
    let ports = FakePorts::new(catalogue_of(subscriptions()))
        .with_status(503)
        .with_slow_topic("shop/replies", 10_000);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT), of_others("m2")], ENDS_MS), [""; 0]);
    assert_eq!(ports.sent_after_ms(), [0, 10_000]);
}

#[test]
fn a_record_waits_whose_topic_is_not_read_before_the_invocation_ends() {
    let ports =
        FakePorts::new(catalogue_of(subscriptions())).with_slow_topic("shop/others", 3_600_000);
    assert_eq!(dispatch(&ports, &[of_others("m1"), record("m2", EVENT)], ENDS_MS), [""; 0]);
    let sent = ports.sent();
    let held = sent.iter().filter(|(queue, _)| *queue == QueueName::Retry).count();
    assert_eq!((ports.requests(), held), (1, 1), "{sent:?}");
    assert!(ports.elapsed_ms() < 3_600_000);
}

/// An event may go on only if these topics do not lead it back.
#[test]
fn before_an_event_goes_on_again_the_topics_that_it_may_come_to_are_read() {
    let topic = |name: &str| name.parse().expect("a topic");
    let mut onward = subscription("shop/orders/s0");
    onward.destination.url = address_of(&topic("shop/next")).into();
    let mut next = subscription("shop/next/s1");
    next.dead_letter.sink = Sink::Topic(topic("shop/failed"));
    let again = Delivery { hops: 1, ..delivery("shop/orders/s0") };
    let failed = ["shop/failed"];
    for (record, read) in
        [(retry_record(&again), &failed[..]), (retry_record(&delivery("shop/orders/s0")), &[])]
    {
        let ports = FakePorts::new(catalogue_of([onward.clone(), next.clone()]));
        assert_eq!(dispatch(&ports, &[record], ENDS_MS), [""; 0]);
        assert_eq!(ports.topics_read().get(2..).unwrap_or_default().concat(), read);
        assert!(matches!(&ports.sent()[..], [(QueueName::Retry, _)]), "{:?}", ports.sent());
    }
}

#[test]
fn a_record_waits_unattempted_while_a_topic_that_it_may_lead_to_cannot_be_read() {
    for unreadable in ["shop/replies", "shop/failed", "shop/orders"] {
        for first in [record("m1", EVENT), retry_record(&delivery("shop/orders/s0"))] {
            let ports = ports().with_unreadable_topic(unreadable);
            assert_eq!(dispatch(&ports, &[first, of_others("m2")], ENDS_MS), [""; 0]);
            // The other record is delivered.
            let sent = ports.sent();
            let [(QueueName::Retry, held)] = &sent[..] else { panic!("{sent:?}") };
            assert_eq!((ports.requests(), held.wait_ms), (1, 300_000), "{unreadable}");
        }
    }
}

#[test]
fn an_event_waits_for_the_subscription_alone_that_may_lead_to_a_topic_that_cannot_be_read() {
    let [leading, ..] = subscriptions();
    let catalogue = || catalogue_of([leading.clone(), subscription("shop/orders/s1")]);
    for unreadable in ["shop/replies", "shop/failed"] {
        let ports = FakePorts::new(catalogue()).with_unreadable_topic(unreadable);
        assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
        let hosts = |ports: &FakePorts| {
            let host = |post: &Request| post.url.host_str().map(str::to_owned);
            ports.posts().iter().filter_map(host).collect::<Vec<_>>()
        };
        assert_eq!(hosts(&ports), ["s1.example.com"]);
        let sent = ports.sent();
        let [part @ (QueueName::Retry, _)] = &sent[..] else { panic!("{sent:?}") };
        let mended = FakePorts::new(catalogue());
        assert_eq!(dispatch(&mended, &[received(0, part)], ENDS_MS), [""; 0]);
        assert_eq!(hosts(&mended), ["s0.example.com"]);
    }
}

#[test]
fn a_topic_that_is_read_and_not_there_is_unknown_only_if_the_newest_does_not_have_it_either() {
    let record_to = |topic: &str| Record { topic: Some(topic.to_owned()), ..record("m1", EVENT) };
    let known = || FakePorts::new(catalogue_of([subscription("shop/orders/s0")]));
    let newer = catalogue_of([subscription("shop/orders/s0"), subscription("shop/new/s1")]);
    let ports = known().with_newer_catalogue(newer);
    assert_eq!(dispatch(&ports, &[record_to("shop/new")], ENDS_MS), [""; 0]);
    assert_eq!((ports.requests(), ports.sent().len()), (1, 0));
    let ports = known();
    assert_eq!(dispatch(&ports, &[record_to("shop/new")], ENDS_MS), [""; 0]);
    let sent = ports.sent();
    assert!(matches!(&sent[..], [(QueueName::DeadLetter, _)]), "{sent:?}");
    let ports = known().with_failing_reload();
    assert_eq!(dispatch(&ports, &[record_to("shop/new")], ENDS_MS), [""; 0]);
    let (queue, held) = ports.sent().remove(0);
    assert_eq!((queue, publication(&held).message.as_str()), (QueueName::Retry, "m1"));
}

#[test]
fn a_reply_to_a_topic_that_is_not_there_causes_a_look_at_the_newest_before_the_attempt() {
    let [leading, ..] = subscriptions();
    let newer = catalogue_of([leading.clone(), subscription("shop/replies/s2")]);
    let ports = FakePorts::new(catalogue_of([leading]))
        .with_newer_catalogue(newer)
        .with_reactions("s0.example.com", &[replies(REPLY)]);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let sent = ports.sent();
    assert!(matches!(&sent[..], [(QueueName::Retry, _)]), "{sent:?}");
}
