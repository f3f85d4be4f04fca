//! Subscriptions and topics that exist and cannot be used: their events wait, and the events of others do not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use delivery::ports::{Attribute, Message, QueueName, Record};
use delivery::subscription::catalogue::{Catalogue, Found, Settings, Topic, TopicSubscriptions};
use delivery::subscription::name::TopicName;
use delivery::wire::write_delivery;
use lastmile_tests::fake_ports::FakePorts;

use super::divided::received;
use crate::examples::{ENDS_MS, catalogue_of, delivery, dispatch, record, subscription};

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"s","type":"t"}"#;

fn orders() -> TopicName {
    "shop/orders".parse().expect("a topic")
}

/// So many subscriptions s00, s01 and so on, of which these cannot be used.
fn with_unusable(count: usize, unusable: &[usize]) -> Catalogue {
    let name = |number: usize| format!("shop/orders/s{number:02}");
    let usable = (0..count).filter(|number| !unusable.contains(number));
    let mut topic = TopicSubscriptions::new(Topic::new(orders()));
    usable.for_each(|number| topic.add(subscription(&name(number))));
    let unusable: BTreeMap<String, String> = unusable
        .iter()
        .map(|number| (format!("s{number:02}"), "it is broken".to_owned()))
        .collect();
    let mut all = Catalogue::default();
    all.add_whole_topic(topic.with_unusable(unusable));
    all
}

fn hosts(ports: &FakePorts) -> Vec<String> {
    let host = |request: &delivery::request::Request| {
        request.url.host_str().unwrap_or_default().to_owned()
    };
    let mut hosts: Vec<String> = ports.posts().iter().map(host).collect();
    hosts.sort();
    hosts
}

fn host(number: usize) -> String {
    format!("s{number:02}.example.com")
}

/// The messages that waited, each received again.
fn again(sent: &[(QueueName, Message)]) -> Vec<Record> {
    sent.iter().enumerate().map(|(number, message)| received(number, message)).collect()
}

#[test]
fn an_event_waits_for_the_subscription_that_cannot_be_used_and_the_others_have_it_at_once() {
    let ports = FakePorts::new(with_unusable(3, &[1]));
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    assert_eq!(hosts(&ports), [host(0), host(2)]);
    let first = ports.sent();
    assert_eq!(first.len(), 1);
    assert_eq!((first[0].0, first[0].1.wait_ms), (QueueName::Retry, 0));

    // While it still cannot be used, the part waits as a whole.
    let still = FakePorts::new(with_unusable(3, &[1]));
    assert_eq!(dispatch(&still, &again(&first), ENDS_MS), [""; 0]);
    assert_eq!((still.requests(), still.sent().len()), (0, 1));
    let waiting = still.sent();
    assert!(waiting[0].1.wait_ms > 0, "{:?}", waiting[0]);

    // Once it can be, it has the event, and nobody has it twice.
    let mended = FakePorts::new(with_unusable(3, &[]));
    assert_eq!(dispatch(&mended, &again(&waiting), ENDS_MS), [""; 0]);
    assert_eq!((hosts(&mended), mended.sent().len()), (vec![host(1)], 0));
    assert!(ports.blobs().is_empty() && still.blobs().is_empty() && mended.blobs().is_empty());
}

#[test]
fn adjacent_subscriptions_that_cannot_be_used_wait_together() {
    let ports = FakePorts::new(with_unusable(8, &[0, 1, 2, 5, 7]));
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    assert_eq!(hosts(&ports), [3, 4, 6].map(host));
    assert_eq!(ports.sent().len(), 3);
    let mended = FakePorts::new(with_unusable(8, &[]));
    assert_eq!(dispatch(&mended, &again(&ports.sent()), ENDS_MS), [""; 0]);
    assert_eq!(hosts(&mended), [0, 1, 2, 5, 7].map(host));
}

#[test]
fn a_delivery_waits_for_its_subscription_and_for_a_topic_that_is_gone_without_a_mark() {
    let retry = |name: &str| {
        let attribute = Some(Attribute::Delivery(write_delivery(&delivery(name))));
        Record { queue: QueueName::Retry, attribute, ..record("m1", EVENT) }
    };
    let mut gone = Catalogue::by_need(Settings::default());
    gone.add_missing(orders(), Found::Nothing);
    let mut unreadable = Catalogue::by_need(Settings::default());
    unreadable.add_missing(orders(), Found::Unreadable("it is truncated".to_owned()));
    for catalogue in [with_unusable(1, &[0]), gone, unreadable] {
        let ports = FakePorts::new(catalogue);
        assert_eq!(dispatch(&ports, &[retry("shop/orders/s00")], ENDS_MS), [""; 0]);
        let sent = ports.sent();
        assert_eq!((sent.len(), ports.requests()), (1, 0));
        assert_eq!(sent[0].0, QueueName::Retry);
        assert!(sent[0].1.wait_ms > 0 && ports.blobs().is_empty());
    }
    // One that was removed on purpose is no reason to wait.
    let mut removed = Catalogue::by_need(Settings::default());
    removed.add_missing(orders(), Found::Removed);
    let ports = FakePorts::new(removed);
    assert_eq!(dispatch(&ports, &[retry("shop/orders/s00")], ENDS_MS), [""; 0]);
    assert_eq!(
        ports.sent().iter().map(|(queue, _)| *queue).collect::<Vec<_>>(),
        [QueueName::DeadLetter]
    );
}

#[test]
fn an_unreadable_topic_delays_no_other_topic_of_its_batch() {
    let usable = catalogue_of([subscription("shop/orders/s00")]);
    let mut catalogue = Catalogue::by_need(Settings::default());
    let topic = usable.topic_subscriptions(&orders()).expect("a topic");
    catalogue.add_found(orders(), Arc::clone(topic));
    let hostile: TopicName = "hostile/t".parse().expect("a topic");
    catalogue.add_missing(hostile, Found::Unreadable("it has 20 MiB".to_owned()));
    let ports = FakePorts::new(catalogue);
    let broken = Record { topic: Some("hostile/t".to_owned()), ..record("m1", EVENT) };
    assert_eq!(dispatch(&ports, &[broken, record("m2", EVENT)], ENDS_MS), [""; 0]);
    assert_eq!(hosts(&ports), [host(0)]);
    let sent = ports.sent();
    assert_eq!((sent.len(), sent[0].0), (1, QueueName::Retry));
    assert!(sent[0].1.wait_ms > 0);
}

#[test]
fn eighty_subscriptions_each_get_the_event_once_when_all_can_be_used() {
    let unusable: Vec<usize> = (0..80).filter(|number| number % 3 == 1).collect();
    let ports = FakePorts::new(with_unusable(80, &unusable));
    let mut delivered = BTreeSet::new();
    let mut waiting = vec![record("m1", EVENT)];
    // At first parts for those that can be used, then only what waits.
    for _ in 0..2 {
        let (posts, sent) = (ports.posts().len(), ports.sent().len());
        assert_eq!(dispatch(&ports, &waiting, ENDS_MS), [""; 0]);
        for post in ports.posts().iter().skip(posts) {
            let host = post.url.host_str().expect("a host").to_owned();
            assert!(delivered.insert(host.clone()), "{host} has it twice");
        }
        let sent = ports.sent_after(sent);
        assert!(sent.iter().all(|(queue, _)| *queue == QueueName::Retry));
        waiting = again(&sent);
    }
    let usable = (0..80).filter(|number| !unusable.contains(number)).map(host);
    assert_eq!(delivered, usable.collect());
    let mended = FakePorts::new(with_unusable(80, &[]));
    let mut rounds = 0;
    while !waiting.is_empty() {
        let sent = mended.sent().len();
        assert_eq!(dispatch(&mended, &waiting, ENDS_MS), [""; 0]);
        waiting = again(&mended.sent_after(sent));
        rounds += 1;
        assert!(rounds < 10);
    }
    assert_eq!(hosts(&mended), unusable.iter().map(|number| host(*number)).collect::<Vec<_>>());
}
