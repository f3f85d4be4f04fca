//! Sinks other than containers: a dead letter becomes a further delivery, a publication, or a
//! message in an external queue.

use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, DeliveryTarget};
use delivery::ports::{Attribute, PutError, QueueName};
use delivery::subscription::Subscription;
use delivery::subscription::dead_letter_format::{DeadLetterFormat, Format};
use delivery::subscription::sink::Sink;
use lastmile_tests::fake_ports::reactions::answers;
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};
use serde_json::Value;

use super::divided::received;
use crate::examples::{
    ENDS_MS, EVENT, carried, catalogue_of, dead_letter_record, deadletter, delivery, dispatch,
    large, letter, publication, record, retry_record, subscription, subscriptions, waits,
};

const QUEUE: &str = "127.0.0.1:4566/000000000000/lost";

/// A subscription with this sink, whose dead letters are CloudEvents.
pub(crate) fn with_sink(name: &str, sink: Sink) -> Subscription {
    let mut subscription = subscription(name);
    subscription.dead_letter.sink = sink;
    subscription.dead_letter.format = DeadLetterFormat::Fixed(Format::Knative);
    subscription
}

pub(crate) fn address() -> Sink {
    Sink::Address("https://sink.example.com/in?code=7".parse().expect("an address"))
}

fn topic(name: &str) -> Sink {
    Sink::Topic(name.parse().expect("a topic"))
}

/// Ports with these subscriptions. The destination of s0 refuses every event permanently.
fn ports(subscriptions: impl IntoIterator<Item = Subscription>) -> FakePorts {
    FakePorts::new(catalogue_of(subscriptions)).with_reactions("s0.example.com", &[answers(400)])
}

fn to_address() -> FakePorts {
    ports([with_sink("shop/orders/s0", address())])
}

/// The only message that was sent.
fn only_message(ports: &FakePorts) -> (QueueName, Delivery) {
    let sent = ports.sent();
    let [(queue, message)] = &sent[..] else { panic!("{sent:?}") };
    (*queue, carried(message))
}

/// The sink delivery that is enqueued when s0 has refused its event.
pub(crate) fn sink_delivery() -> Delivery {
    let ports = to_address();
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let (queue, sink_delivery) = only_message(&ports);
    assert_eq!(
        (queue, sink_delivery.attempts, sink_delivery.published_ms),
        (QueueName::Retry, 0, NOW_MS)
    );
    sink_delivery
}

#[test]
fn a_dead_letter_for_an_address_is_enqueued_as_its_own_delivery_with_the_event_unchanged() {
    let sink_delivery = sink_delivery();
    assert_eq!(sink_delivery.event.text().as_ref(), EVENT);
    let DeliveryTarget::Sink(letter) = &sink_delivery.target else { panic!("{sink_delivery:?}") };
    assert_eq!(
        (letter.reason.known(), letter.delivery.attempts),
        (Some(Reason::UndeliverableDueToHttpBadRequest), 1)
    );
    assert_ne!(sink_delivery.id, letter.delivery.id);
}

#[test]
fn a_dead_letter_that_goes_on_stays_in_the_trace_of_its_delivery() {
    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01";
    let traced = Delivery { traceparent: Some(TRACE.to_owned()), ..delivery("shop/orders/s0") };
    let listener = || subscription("shop/lost/s1");
    for sink in [address(), topic("shop/lost")] {
        let ports = ports([with_sink("shop/orders/s0", sink.clone()), listener()]);
        assert_eq!(dispatch(&ports, &[retry_record(&traced)], ENDS_MS), [""; 0]);
        let (_, message) = ports.sent().remove(0);
        let trace = match message.attribute {
            Attribute::Publication(_) => publication(&message).traceparent,
            Attribute::Delivery(_) | Attribute::DeadLetter(_) => carried(&message).traceparent,
        };
        assert_eq!(trace.as_deref(), Some(TRACE), "{sink:?}");
    }
}

#[test]
fn the_sink_gets_the_event_with_the_reason_and_none_of_the_destinations_headers() {
    let ports = FakePorts::new(catalogue_of([with_sink("shop/orders/s0", address())]));
    assert_eq!(dispatch(&ports, &[retry_record(&sink_delivery())], ENDS_MS), [""; 0]);
    let posts = ports.posts();
    assert_eq!(posts[0].url.as_str(), "https://sink.example.com/in?code=7");
    let names: Vec<_> =
        posts[0].headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(names, [("content-type", "application/cloudevents+json; charset=utf-8")]);
    let document: Value = serde_json::from_slice(&posts[0].body).expect("JSON");
    assert_eq!((&document["id"], &document["knativeerrorcode"]), (&"1".into(), &400.into()));
    assert_eq!(document["errorreason"], "UndeliverableDueToHttpBadRequest");
    assert_eq!((ports.sent().len(), ports.requests()), (0, 1));
}

#[test]
fn a_dead_letter_that_its_sink_refuses_is_stored_with_the_first_reason_and_both_histories() {
    let ports =
        FakePorts::new(catalogue_of([with_sink("shop/orders/s0", address())])).with_status(404);
    assert_eq!(dispatch(&ports, &[retry_record(&sink_delivery())], ENDS_MS), [""; 0]);
    let (queue, message) = ports.sent().remove(0);
    let dead_letter = letter(&message);
    assert_eq!(
        (queue, dead_letter.reason.known()),
        (QueueName::DeadLetter, Some(Reason::UndeliverableDueToHttpBadRequest))
    );
    let returned = dead_letter.returned.clone().expect("the dead letter was returned");
    assert_eq!(returned.reason, Reason::UndeliverableDueToHttpNotFound);
    assert_eq!(returned.attempts, 1);
    assert_eq!(
        (returned.history.first().len(), dead_letter.delivery.history.first().len()),
        (1, 1)
    );
    assert_eq!(returned.address.as_deref(), Some("https://sink.example.com/in?code=[secret]"));

    let ports = FakePorts::new(subscriptions(0));
    assert_eq!(deadletter(&ports, &[dead_letter_record(&dead_letter)]), [""; 0]);
    let (key, blob) = ports.blobs().remove(0);
    let document: Value = serde_json::from_str(&blob).expect("JSON");
    assert!(key.ends_with(&format!("/{}.json", dead_letter.delivery.id)), "{key}");
    assert_eq!(
        (&document[0]["knativeerrorcode"], &document[0]["errorretry"]),
        (&404.into(), &1.into())
    );
    assert_eq!(document[0]["knativeerrordest"], "https://sink.example.com/in?code=[secret]");
    let lastmile: Value =
        serde_json::from_str(document[0]["lastmile"].as_str().expect("a text")).expect("JSON");
    assert_eq!(lastmile["sink"]["destination"], "https://sink.example.com/in");
    assert_eq!(
        (&lastmile["lasthttpstatuscode"], &lastmile["sink"]["history"][0]["status"]),
        (&400.into(), &404.into())
    );
}

#[test]
fn a_dead_letter_whose_subscription_is_gone_or_has_no_address_any_more_is_stored() {
    let gone = (FakePorts::new(subscriptions(0)), Reason::SubscriptionNotFound);
    let changed = (FakePorts::new(subscriptions(1)), Reason::UndeliverableDueToInvalidRequest);
    for (ports, reason) in [gone, changed] {
        assert_eq!(dispatch(&ports, &[retry_record(&sink_delivery())], ENDS_MS), [""; 0]);
        let (queue, message) = ports.sent().remove(0);
        let dead_letter = letter(&message);
        assert_eq!(
            (queue, dead_letter.reason.known()),
            (QueueName::DeadLetter, Some(Reason::UndeliverableDueToHttpBadRequest))
        );
        assert_eq!((dead_letter.newest_reason().known(), ports.requests()), (Some(reason), 0));
    }
}

#[test]
fn a_record_whose_sink_delivery_cannot_be_enqueued_is_redelivered() {
    let by_topic = [with_sink("shop/orders/s0", topic("shop/lost")), subscription("shop/lost/a")];
    for ports in [to_address(), ports(by_topic)] {
        let ports = ports.with_failing_queue();
        assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), ["m1"]);
        assert_eq!((ports.requests(), ports.blobs().len()), (1, 0));
    }
}

#[test]
fn the_dead_letter_delay_does_not_count_against_the_time_to_live_at_its_sink() {
    for (sink, other) in
        [(address(), None), (topic("shop/lost"), Some(subscription("shop/lost/a")))]
    {
        let mut late = with_sink("shop/orders/s0", sink);
        late.dead_letter.delay_ms = 300_000;
        let ports = ports(other.into_iter().chain([late]));
        dispatch(&ports, &[record("m1", EVENT)], ENDS_MS);
        let (queue, message) = ports.sent().remove(0);
        let published_ms = match message.attribute {
            Attribute::Publication(_) => publication(&message).published_ms,
            Attribute::Delivery(_) | Attribute::DeadLetter(_) => carried(&message).published_ms,
        };
        assert_eq!((queue, message.wait_ms), (QueueName::Retry, 300_000));
        assert_eq!(published_ms, NOW_MS + 300_000);
    }
}

#[test]
fn a_dead_letter_too_large_for_its_sink_is_stored_and_says_so() {
    let large = large();
    let ports = to_address();
    assert_eq!(dispatch(&ports, &[record("m1", &large)], ENDS_MS), [""; 0]);
    let (_, blob) = ports.blobs().remove(0);
    let document: Value = serde_json::from_str(&blob).expect("JSON");
    assert_eq!(document[0]["errorreason"], "UndeliverableDueToHttpBadRequest");
    let lastmile: Value =
        serde_json::from_str(document[0]["lastmile"].as_str().expect("a text")).expect("JSON");
    assert_eq!(lastmile["sink"]["reason"], "EventTooLargeToResend");
}

#[test]
fn a_dead_letter_too_large_to_be_published_to_its_topic_is_stored_unchanged() {
    let ports =
        ports([with_sink("shop/orders/s0", topic("shop/lost")), subscription("shop/lost/a")]);
    assert_eq!(dispatch(&ports, &[record("m1", &large())], ENDS_MS), [""; 0]);
    let (key, blob) = ports.blobs().remove(0);
    assert!(key.starts_with("letters/shop/orders/s0/"), "{key}");
    let document: Value = serde_json::from_str(&blob).expect("JSON");
    assert_eq!(
        (&document[0]["errorreason"], &document[0]["errorretry"]),
        (&"UndeliverableDueToHttpBadRequest".into(), &1.into())
    );
    assert!(blob.contains("too large for a message to its sink"));
    assert_eq!((ports.sent().len(), ports.blobs().len()), (0, 1));
}

#[test]
fn a_dead_letter_for_a_topic_is_published_there_once_and_delivered_to_each_of_its_subscriptions() {
    let all = [
        with_sink("shop/orders/s0", topic("shop/lost")),
        subscription("shop/lost/a"),
        subscription("shop/lost/b"),
    ];
    let ports = ports(all.clone());
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let [sent] = &ports.sent()[..] else { panic!("{:?}", ports.sent()) };
    assert_eq!(sent.0, QueueName::Retry);
    let document: Value = serde_json::from_str(&sent.1.body).expect("JSON");
    assert_eq!(document["errorreason"], "UndeliverableDueToHttpBadRequest");
    let there = FakePorts::new(catalogue_of(all)).with_status(503);
    assert_eq!(dispatch(&there, &[received(0, sent)], ENDS_MS), [""; 0]);
    let retried: Vec<Delivery> = there.sent().iter().map(|(_, message)| carried(message)).collect();
    let names: Vec<_> = retried.iter().map(|delivery| delivery.subscription.to_string()).collect();
    assert_eq!(names, ["shop/lost/a", "shop/lost/b"]);
    for published in retried {
        let via: Vec<_> = published.via.iter().map(ToString::to_string).collect();
        assert_eq!(
            (&published.target, via),
            (&DeliveryTarget::Destination, vec!["shop/orders".to_owned()])
        );
    }
}

#[test]
fn a_dead_letter_that_nobody_takes_any_more_when_it_is_received_is_stored() {
    let first = with_sink("shop/orders/s0", topic("shop/lost"));
    let ports = ports([first.clone(), subscription("shop/lost/a")]);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let sent = ports.sent().remove(0);
    // The only subscription of the topic has expired by now.
    let mut expired = subscription("shop/lost/a");
    expired.expires_ms = Some(1);
    let later = FakePorts::new(catalogue_of([first, expired]));
    assert_eq!(dispatch(&later, &[received(0, &sent)], ENDS_MS), [""; 0]);
    let (queue, message) = later.sent().remove(0);
    let letter = letter(&message);
    assert_eq!(queue, QueueName::DeadLetter);
    assert_eq!(letter.reason.known(), Some(Reason::SubscriptionNotFound));
    assert_eq!(letter.delivery.subscription.to_string(), "shop/lost/_");
    assert_eq!(message.body, sent.1.body, "all that is known of the first dead letter");
}

#[test]
fn a_dead_letter_that_no_subscription_of_its_topic_matches_is_stored_and_says_so() {
    let ports = ports([with_sink("shop/orders/s0", topic("shop/lost"))]);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let dead_letter = letter(&ports.sent().remove(0).1);
    assert_eq!(
        dead_letter.sink_error.as_deref(),
        Some("no subscription of topic shop/lost accepts the dead letter")
    );
    let ports = FakePorts::new(subscriptions(0));
    deadletter(&ports, &[dead_letter_record(&dead_letter)]);
    assert!(ports.blobs()[0].1.contains(
        r#"\"sinkerror\":\"no subscription of topic shop/lost accepts the dead letter\""#
    ));
}

/// A dead letter whose sink is an external queue.
fn for_external_queue() -> DeadLetter {
    let queue = Sink::Queue(QUEUE.parse().expect("a queue"));
    DeadLetter::new(
        delivery("a/b/c"),
        &with_sink("a/b/c", queue),
        Reason::TimeToLiveExceeded,
        NOW_MS,
    )
}

#[test]
fn a_dead_letter_for_an_external_queue_is_sent_with_its_id() {
    let (ports, letter) = (FakePorts::new(subscriptions(0)), for_external_queue());
    assert_eq!(deadletter(&ports, &[dead_letter_record(&letter)]), [""; 0]);
    let (queue, id, json) = ports.sink_messages().remove(0);
    assert_eq!((queue.as_str(), id, ports.blobs().len()), (QUEUE, letter.delivery.id, 0));
    let document: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&document["id"], &document["errorreason"]),
        (&"1".into(), &"TimeToLiveExceeded".into())
    );
}

#[test]
fn an_external_queue_is_retried_after_a_temporary_error_and_replaced_by_the_container_after_a_permanent_one()
 {
    let letter = for_external_queue();
    let ports = FakePorts::new(subscriptions(0))
        .with_put_error(QUEUE, PutError::Unavailable("503".to_owned()));
    assert_eq!(deadletter(&ports, &[dead_letter_record(&letter)]), [""; 0]);
    assert_eq!((ports.blobs().len(), waits(&ports)), (0, vec![(QueueName::DeadLetter, 10_000)]));
    let ports = FakePorts::new(subscriptions(0))
        .with_put_error(QUEUE, PutError::Permanent("denied".to_owned()));
    assert_eq!(deadletter(&ports, &[dead_letter_record(&letter)]), [""; 0]);
    let (key, blob) = ports.blobs().remove(0);
    assert!(
        key.starts_with("letters/a/b/c/")
            && blob.contains(&format!(r#"sinkerror\":\"{QUEUE}: denied"#)),
        "{blob}"
    );
}
