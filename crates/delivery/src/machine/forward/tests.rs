use super::*;
use crate::delivery::{DeadLetter, DeliveryTarget, Origin};
use crate::event::{Element, Event, envelope};
use crate::subscription::profile::Dialect;
use crate::subscription::sink::Sink;
use crate::subscription::topic_address::address_of;
use crate::wire::read_publication;

const NOW_MS: u64 = 1_795_158_190_000;
const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;

/// Returns the deliveries that dispatch creates from the message of a published event.
pub(in crate::machine) fn deliveries(message: &Message, catalogue: &Catalogue) -> Vec<Delivery> {
    let publication = read_publication(message.attribute.value()).unwrap();
    let part = publication.part.as_ref().unwrap();
    let elements = envelope::decode(&message.body, part.input);
    let [Element::Event(event)] = &elements[..] else { panic!("{elements:?}") };
    let topic = publication.topic.as_deref().unwrap().parse().unwrap();
    let matching: Vec<_> = catalogue.matching(&topic, &part.names, event, NOW_MS).collect();
    publication.deliveries(part.first, event, &matching).collect()
}

fn catalogue() -> Catalogue {
    let mut catalogue = Catalogue::default();
    for name in ["n/all/a", "n/all/b"] {
        let url = "https://example.com/".parse().unwrap();
        let subscription = Subscription::new(name.parse().unwrap(), Dialect::Knative, url);
        catalogue.add_subscription(subscription);
    }
    catalogue
}

/// Returns a catalogue in which one subscription leads back to `n/t`.
fn looping() -> Catalogue {
    let mut catalogue = catalogue();
    let back = Subscription { name: "n/all/c".parse().unwrap(), ..onward("n/t") };
    catalogue.add_subscription(back);
    catalogue.add_subscription(onward("n/all"));
    catalogue
}

/// Returns a subscription of `n/t` that forwards its events to this topic.
fn onward(to: &str) -> Subscription {
    let url = address_of(&to.parse().unwrap());
    Subscription::new("n/t/s".parse().unwrap(), Dialect::Knative, url)
}

fn delivery_of(text: &str, input: Input) -> Delivery {
    let event = Event::recall(&text.into(), input);
    Delivery::new(event, "n/t/s".parse().unwrap(), Origin { message: "m".to_owned(), index: 3 }, 7)
}

fn delivery() -> Delivery {
    delivery_of(EVENT, Input::Auto)
}

fn gone_on(delivery: &Delivery, to: &str, catalogue: &Catalogue) -> Result<Vec<Delivery>, End> {
    forward(delivery, &onward(to), &to.parse().unwrap(), catalogue, NOW_MS)
        .map(|message| deliveries(&message, catalogue))
}

fn letter(end: End) -> DeadLetter {
    let End::DeadLetter(letter) = end else { panic!("{end:?}") };
    *letter
}

#[test]
fn an_event_goes_on_to_each_matching_subscription_of_a_topic_with_its_own_id() {
    let first = delivery();
    let next = gone_on(&first, "n/all", &catalogue()).unwrap();
    let [a, b] = &next[..] else { panic!("{next:?}") };
    for (next, name) in [(a, "n/all/a"), (b, "n/all/b")] {
        assert_eq!(next.subscription.to_string(), name);
        assert_eq!((&next.event, next.hops, next.attempts), (&first.event, 1, 0));
        assert_eq!((&next.origin, next.published_ms), (&first.origin, NOW_MS));
        assert_eq!(next.target, DeliveryTarget::Destination);
    }
    assert!(a.id != b.id && a.id != first.id);
    assert_eq!(gone_on(&first, "n/all", &catalogue()).unwrap(), next);
}

#[test]
fn an_event_goes_on_to_the_byte_and_in_the_schema_it_has() {
    let grid = r#"{"id":"1","subject":"s","eventType":"t","eventTime":"2026-11-20T00:00:00Z"}"#;
    for (text, input) in [
        (EVENT, Input::CloudEvents),
        (grid, Input::EventGrid),
        (EVENT, Input::Custom),
        (r#" {"specversion": "7"} "#, Input::Custom),
        (r#"[1, {"a":  2}]"#, Input::Custom),
        (r#"[1, {"a":  2}]"#, Input::Opaque),
        ("no JSON", Input::Opaque),
    ] {
        let first = delivery_of(text, input);
        for next in gone_on(&first, "n/all", &catalogue()).unwrap() {
            assert_eq!(next.event.text(), first.event.text(), "{input:?}");
            assert_eq!(next.event.shape(), first.event.shape(), "{text}");
        }
    }
}

#[test]
fn an_event_that_has_gone_on_too_often_or_to_no_topic_is_a_dead_letter() {
    for (delivery, to, reason, detail) in [
        (
            Delivery { hops: HOPS_MAX, ..delivery() },
            "n/all",
            Reason::ReplyLoop,
            "the chain of replies is longer than 10",
        ),
        (delivery(), "n/gone", Reason::TopicNotFound, "there is no topic n/gone"),
    ] {
        let letter = letter(gone_on(&delivery, to, &catalogue()).unwrap_err());
        assert_eq!(letter.reason.known(), Some(reason));
        assert!(letter.detail.as_deref().unwrap_or_default().contains(detail), "{letter:?}");
        assert_eq!(letter.delivery.id, delivery.id);
    }
}

#[test]
fn one_that_cannot_go_on_goes_where_the_dead_letters_of_its_subscription_go() {
    let topic = "n/gone".parse().unwrap();
    let ended = |sink| {
        let mut subscription = onward("n/gone");
        subscription.dead_letter.sink = sink;
        forward(&delivery(), &subscription, &topic, &catalogue(), NOW_MS).unwrap_err()
    };
    let End::ToSink(letter) = ended(Sink::Topic("n/lost".parse().unwrap())) else { panic!() };
    assert!(letter.detail.is_some(), "{letter:?}");
    assert_eq!(ended(Sink::None), End::Drop(Reason::TopicNotFound));
}

#[test]
fn what_goes_on_is_bounded_only_where_it_may_come_back() {
    let last = Delivery { hops: 1, replies_left: Some(1), ..delivery() };
    let letter = letter(gone_on(&last, "n/all", &looping()).unwrap_err());
    assert_eq!(letter.reason.known(), Some(Reason::ReplyLoop));
    let detail = "this reply to topic n/all would cause 3 more deliveries, but maxReplies of the \
                  event's topic allows 1 more";
    assert!(letter.detail.as_deref().unwrap_or_default().contains(detail), "{letter:?}");

    let next = gone_on(&last, "n/all", &catalogue()).unwrap();
    let left: Vec<_> = next.iter().map(|next| next.replies_left).collect();
    assert_eq!(left, [Some(1), Some(0)]);
}

#[test]
fn what_goes_on_still_knows_the_topics_that_its_dead_letters_came_from() {
    let via = vec!["n/lost".parse().unwrap()];
    let first = Delivery { via: via.clone(), ..delivery() };
    let next = gone_on(&first, "n/all", &catalogue()).unwrap();
    assert_eq!(next[0].via, via);
}
