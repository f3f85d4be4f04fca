//! Sinks that are no containers: a dead letter is a further delivery, a publication, or a message
//! of somebody else's.

use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, DeliveryTarget, Store};
use delivery::machine::reply::HOPS_MAX;
use delivery::ports::{PutError, QueueName};
use delivery::subscription::dead_letter_format::{DeadLetterFormat, Format};
use delivery::subscription::sink::Sink;
use delivery::subscription::{ReplyTo, Subscription};
use serde_json::Value;

use super::reactions::{answers, replies};
use super::{
    ENDS_MS, EVENT, buried, carried, deadletter, delivery, dispatch, letter, retried, subscription,
};
use crate::desk::{Desk, NOW_MS, catalogue_of, record, subscriptions};

const QUEUE: &str = "127.0.0.1:4566/000000000000/lost";

/// A subscription whose dead letters go there, as CloudEvents.
fn sinking(name: &str, sink: Sink) -> Subscription {
    let mut subscription = subscription(name);
    subscription.dead_letter.sink = sink;
    subscription.dead_letter.format = DeadLetterFormat::Fixed(Format::Knative);
    subscription
}

fn address() -> Sink {
    Sink::Address("https://sink.example.com/in?code=7".parse().expect("an address"))
}

fn topic(name: &str) -> Sink {
    Sink::Topic(name.parse().expect("a topic"))
}

/// The destination of s0 refuses everything for good.
fn desk(subscriptions: impl IntoIterator<Item = Subscription>) -> Desk {
    Desk::new(catalogue_of(subscriptions)).meeting("s0.example.com", &[answers(400)])
}

fn to_address() -> Desk {
    desk([sinking("shop/orders/s0", address())])
}

/// The one message that was sent.
fn only(desk: &Desk) -> (QueueName, Delivery) {
    let sent = desk.sent();
    let [(queue, message)] = &sent[..] else { panic!("{sent:?}") };
    (*queue, carried(message))
}

/// What leaves when s0 has refused its event.
fn sink_delivery() -> Delivery {
    let desk = to_address();
    assert_eq!(dispatch(&desk, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let (queue, sink_delivery) = only(&desk);
    assert_eq!(
        (queue, sink_delivery.attempts, sink_delivery.published_ms),
        (QueueName::Events, 0, NOW_MS)
    );
    sink_delivery
}

#[test]
fn a_letter_to_an_address_leaves_as_a_delivery_of_its_own_with_the_event_untouched() {
    let sink_delivery = sink_delivery();
    assert_eq!(sink_delivery.event.text().as_ref(), EVENT);
    let DeliveryTarget::Sink(letter) = &sink_delivery.target else { panic!("{sink_delivery:?}") };
    assert_eq!(
        (letter.reason, letter.delivery.attempts),
        (Reason::UndeliverableDueToHttpBadRequest, 1)
    );
    assert_ne!(sink_delivery.id, letter.delivery.id);
}

#[test]
fn the_sink_is_sent_the_event_with_why_and_nothing_that_the_destination_is_sent() {
    let desk = Desk::new(catalogue_of([sinking("shop/orders/s0", address())]));
    assert_eq!(dispatch(&desk, &[retried(&sink_delivery())], ENDS_MS), [""; 0]);
    let posts = desk.posts();
    assert_eq!(posts[0].url.as_str(), "https://sink.example.com/in?code=7");
    let names: Vec<_> =
        posts[0].headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(names, [("content-type", "application/cloudevents+json; charset=utf-8")]);
    let told: Value = serde_json::from_slice(&posts[0].body).expect("JSON");
    assert_eq!((&told["id"], &told["knativeerrorcode"]), (&"1".into(), &400.into()));
    assert_eq!(told["errorreason"], "UndeliverableDueToHttpBadRequest");
    assert_eq!((desk.sent().len(), desk.requests()), (0, 1));
}

#[test]
fn a_busy_sink_is_tried_again_by_the_policy_of_its_subscription() {
    let desk = Desk::new(catalogue_of([sinking("shop/orders/s0", address())])).answering(503);
    assert_eq!(dispatch(&desk, &[retried(&sink_delivery())], ENDS_MS), [""; 0]);
    let (queue, again) = only(&desk);
    assert_eq!((queue, again.attempts), (QueueName::Retry, 1));
    assert!(matches!(again.target, DeliveryTarget::Sink(_)) && desk.sent()[0].1.wait_ms > 0);
}

#[test]
fn a_letter_that_its_sink_refuses_is_stored_with_the_first_reason_and_the_history_of_both() {
    let desk = Desk::new(catalogue_of([sinking("shop/orders/s0", address())])).answering(404);
    assert_eq!(dispatch(&desk, &[retried(&sink_delivery())], ENDS_MS), [""; 0]);
    let (queue, message) = desk.sent().remove(0);
    let back = letter(&message);
    assert_eq!(
        (queue, back.reason),
        (QueueName::DeadLetter, Reason::UndeliverableDueToHttpBadRequest)
    );
    let returned = back.returned.clone().expect("it came back");
    assert_eq!((returned.reason, returned.attempts), (Reason::UndeliverableDueToHttpNotFound, 1));
    assert_eq!((returned.history.first().len(), back.delivery.history.first().len()), (1, 1));
    assert_eq!(returned.address.as_deref(), Some("https://sink.example.com/in?code=7"));

    let desk = Desk::new(subscriptions(0));
    assert_eq!(deadletter(&desk, &[buried(&back)]), [""; 0]);
    let (key, blob) = desk.blobs().remove(0);
    let told: Value = serde_json::from_str(&blob).expect("JSON");
    assert!(key.ends_with(&format!("/{}.json", back.delivery.id)), "{key}");
    assert_eq!((&told[0]["knativeerrorcode"], &told[0]["errorretry"]), (&404.into(), &1.into()));
    assert_eq!(told[0]["knativeerrordest"], "https://sink.example.com/in?code=7");
    let ours: Value =
        serde_json::from_str(told[0]["lastmile"].as_str().expect("a text")).expect("JSON");
    assert_eq!(ours["sink"]["destination"], "https://sink.example.com/in");
    assert_eq!(
        (&ours["lasthttpstatuscode"], &ours["sink"]["history"][0]["status"]),
        (&400.into(), &404.into())
    );
}

#[test]
fn a_letter_whose_subscription_is_gone_or_has_no_address_any_more_is_stored() {
    let gone = (Desk::new(subscriptions(0)), Reason::SubscriptionNotFound);
    let changed = (Desk::new(subscriptions(1)), Reason::UndeliverableDueToInvalidRequest);
    for (desk, reason) in [gone, changed] {
        assert_eq!(dispatch(&desk, &[retried(&sink_delivery())], ENDS_MS), [""; 0]);
        let (queue, message) = desk.sent().remove(0);
        let back = letter(&message);
        assert_eq!(
            (queue, back.reason),
            (QueueName::DeadLetter, Reason::UndeliverableDueToHttpBadRequest)
        );
        assert_eq!((back.newest_reason(), desk.requests()), (reason, 0));
    }
}

#[test]
fn the_record_comes_again_when_the_queue_does_not_take_what_goes_to_a_sink() {
    let by_topic = [sinking("shop/orders/s0", topic("shop/lost")), subscription("shop/lost/a")];
    for desk in [to_address(), desk(by_topic)] {
        let desk = desk.refusing_messages();
        assert_eq!(dispatch(&desk, &[record("m1", EVENT)], ENDS_MS), ["m1"]);
        assert_eq!((desk.requests(), desk.blobs().len()), (1, 0));
    }
}

#[test]
fn a_letter_that_is_handled_twice_is_one_delivery_to_its_sink() {
    assert_eq!(sink_delivery().id, sink_delivery().id);
}

#[test]
fn a_letter_waits_for_its_time_also_on_the_way_to_a_sink() {
    let mut late = sinking("shop/orders/s0", address());
    late.dead_letter.delay_ms = 300_000;
    let desk = desk([late]);
    assert_eq!(dispatch(&desk, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let (queue, sink_delivery) = only(&desk);
    assert_eq!(
        (queue, sink_delivery.due_ms, desk.sent()[0].1.wait_ms),
        (QueueName::Retry, NOW_MS + 300_000, 300_000)
    );
}

#[test]
fn the_wait_of_a_letter_is_no_part_of_the_time_to_live_at_its_sink() {
    for (sink, other) in
        [(address(), None), (topic("shop/lost"), Some(subscription("shop/lost/a")))]
    {
        let mut late = sinking("shop/orders/s0", sink);
        late.dead_letter.delay_ms = 300_000;
        let desk = desk(other.into_iter().chain([late]));
        dispatch(&desk, &[record("m1", EVENT)], ENDS_MS);
        let (_, next) = only(&desk);
        assert_eq!((next.due_ms, next.published_ms), (NOW_MS + 300_000, NOW_MS + 300_000));
    }
}

#[test]
fn a_letter_too_large_to_travel_to_its_sink_is_stored_and_says_so() {
    let large = super::large();
    let desk = to_address();
    assert_eq!(dispatch(&desk, &[record("m1", &large)], ENDS_MS), [""; 0]);
    let (_, blob) = desk.blobs().remove(0);
    let told: Value = serde_json::from_str(&blob).expect("JSON");
    assert_eq!(told[0]["errorreason"], "UndeliverableDueToHttpBadRequest");
    let ours: Value =
        serde_json::from_str(told[0]["lastmile"].as_str().expect("a text")).expect("JSON");
    assert_eq!(ours["sink"]["reason"], "EventTooLargeToResend");
}

#[test]
fn a_letter_too_large_to_be_published_to_its_topic_is_kept_as_the_letter_it_is() {
    let desk = desk([sinking("shop/orders/s0", topic("shop/lost")), subscription("shop/lost/a")]);
    assert_eq!(dispatch(&desk, &[record("m1", &super::large())], ENDS_MS), [""; 0]);
    let (key, blob) = desk.blobs().remove(0);
    assert!(key.starts_with("letters/shop/orders/s0/"), "{key}");
    let told: Value = serde_json::from_str(&blob).expect("JSON");
    assert_eq!(
        (&told[0]["errorreason"], &told[0]["errorretry"]),
        (&"UndeliverableDueToHttpBadRequest".into(), &1.into())
    );
    assert!(blob.contains("too large to travel to its sink"));
    assert_eq!((desk.sent().len(), desk.blobs().len()), (0, 1));
}

#[test]
fn a_letter_to_a_topic_is_published_to_each_of_its_subscriptions() {
    let all = [
        sinking("shop/orders/s0", topic("shop/lost")),
        subscription("shop/lost/a"),
        subscription("shop/lost/b"),
    ];
    let desk = desk(all);
    assert_eq!(dispatch(&desk, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let sent = desk.sent();
    let names: Vec<_> =
        sent.iter().map(|(_, message)| carried(message).subscription.to_string()).collect();
    assert_eq!(names, ["shop/lost/a", "shop/lost/b"]);
    for (queue, message) in &sent {
        let published = carried(message);
        assert_eq!(
            (*queue, &published.target, published.attempts),
            (QueueName::Events, &DeliveryTarget::Destination, 0)
        );
        assert_eq!(
            published.via.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["shop/orders"]
        );
        let told: Value = serde_json::from_str(&message.body).expect("JSON");
        assert_eq!(told["errorreason"], "UndeliverableDueToHttpBadRequest");
    }
}

#[test]
fn a_chain_of_topics_that_leads_back_ends_in_the_container() {
    let all = [
        sinking("shop/orders/s0", topic("shop/lost")),
        sinking("shop/lost/s0", topic("shop/orders")),
    ];
    let desk = desk(all);
    dispatch(&desk, &[record("m1", EVENT)], ENDS_MS);
    let (_, message) = desk.sent().remove(0);
    let mut second = retried(&carried(&message));
    second.body = message.body;
    assert_eq!(dispatch(&desk, &[second], ENDS_MS), [""; 0]);
    let (queue, message) = desk.sent().remove(1);
    let back = letter(&message);
    assert_eq!((queue, &back.store), (QueueName::DeadLetter, &Store::DefaultContainer));
    assert_eq!(back.sink_error.as_deref(), Some("topic shop/orders is where it came from"));
}

#[test]
fn a_letter_that_no_subscription_of_its_topic_takes_is_stored_and_says_so() {
    let desk = desk([sinking("shop/orders/s0", topic("shop/lost"))]);
    assert_eq!(dispatch(&desk, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    let back = letter(&desk.sent().remove(0).1);
    assert_eq!(back.sink_error.as_deref(), Some("no subscription of topic shop/lost takes it"));
    let desk = Desk::new(subscriptions(0));
    deadletter(&desk, &[buried(&back)]);
    assert!(
        desk.blobs()[0]
            .1
            .contains(r#"\"sinkerror\":\"no subscription of topic shop/lost takes it\""#)
    );
}

#[test]
fn a_reply_that_nobody_can_deliver_is_kept_and_says_why_it_is_not_at_its_sink() {
    for sink in [address(), topic("shop/lost")] {
        let mut answering = sinking("shop/orders/s0", sink);
        answering.reply =
            Some(ReplyTo::Address("https://replies.example.com/".parse().expect("an address")));
        let desk =
            Desk::new(catalogue_of([answering])).meeting("s0.example.com", &[replies(EVENT)]);
        let far = Delivery { hops: HOPS_MAX, ..delivery("shop/orders/s0") };
        assert_eq!(dispatch(&desk, &[retried(&far)], ENDS_MS), [""; 0]);
        let (queue, message) = desk.sent().remove(0);
        let kept = letter(&message);
        assert_eq!(
            (queue, kept.reason, kept.store),
            (QueueName::DeadLetter, Reason::ReplyLoop, Store::DefaultContainer)
        );
        assert_eq!(
            kept.sink_error.as_deref(),
            Some("a reply that cannot be delivered is not sent to a sink")
        );
    }
}

/// A letter that wants to go to a queue of somebody else's.
fn for_a_queue() -> DeadLetter {
    let queue = Sink::Queue(QUEUE.parse().expect("a queue"));
    DeadLetter::new(delivery("a/b/c"), &sinking("a/b/c", queue), Reason::TimeToLiveExceeded, NOW_MS)
}

#[test]
fn a_letter_to_a_queue_of_others_is_handed_over_with_its_id() {
    let (desk, letter) = (Desk::new(subscriptions(0)), for_a_queue());
    assert_eq!(deadletter(&desk, &[buried(&letter)]), [""; 0]);
    let (queue, id, json) = desk.handed_over().remove(0);
    assert_eq!((queue.as_str(), id, desk.blobs().len()), (QUEUE, letter.delivery.id, 0));
    let told: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&told["id"], &told["errorreason"]), (&"1".into(), &"TimeToLiveExceeded".into()));
}

#[test]
fn a_queue_that_refuses_for_now_is_tried_again_and_one_that_refuses_for_good_is_replaced_by_the_container()
 {
    let letter = for_a_queue();
    let desk =
        Desk::new(subscriptions(0)).refusing_blobs(QUEUE, PutError::Refused("503".to_owned()));
    assert_eq!(deadletter(&desk, &[buried(&letter)]), ["m1"]);
    assert_eq!(
        (desk.blobs().len(), desk.hidden()),
        (0, vec![("dead-letter".to_owned(), "m1".to_owned(), 10)])
    );
    let desk = Desk::new(subscriptions(0))
        .refusing_blobs(QUEUE, PutError::NoSuchContainer("denied".to_owned()));
    assert_eq!(deadletter(&desk, &[buried(&letter)]), [""; 0]);
    let (key, blob) = desk.blobs().remove(0);
    assert!(
        key.starts_with("letters/a/b/c/")
            && blob.contains(&format!(r#"sinkerror\":\"{QUEUE}: denied"#)),
        "{blob}"
    );
}

#[test]
fn one_letter_to_a_queue_that_refuses_holds_up_no_other() {
    let desk =
        Desk::new(subscriptions(0)).refusing_blobs(QUEUE, PutError::Refused("503".to_owned()));
    let other =
        DeadLetter::without_subscription(delivery("a/b/d"), Reason::TimeToLiveExceeded, NOW_MS);
    let mut second = buried(&other);
    second.message = "m2".to_owned();
    assert_eq!(deadletter(&desk, &[buried(&for_a_queue()), second]), ["m1"]);
    assert_eq!(desk.blobs().len(), 1);
}
