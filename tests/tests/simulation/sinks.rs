//! The sinks of the dead letters of a world, and the deliveries that may follow from them, computed
//! a second time.
//!
//! - An address gets a dead letter by a sink delivery, which is a separate delivery of the same
//!   event.
//! - A topic gets a dead letter as a separate record, with one delivery for each subscription. The
//!   event of these deliveries is the dead letter.
//!
//! A dead letter never returns to a topic that it came from. All deliveries that may follow from a
//! delivery are therefore known from the start.

use delivery::delivery::{DELIVERY_NAMESPACE, DeliveryTarget, Origin};
use delivery::subscription::dead_letter_format::{DeadLetterFormat, Format};
use delivery::subscription::name::TopicName;
use delivery::subscription::sink::Sink;
use serde_json::Value;
use uuid::Uuid;

use super::faults::SeededRandom;
use super::ledger::{Known, id_of};
use super::publish::ElementKind;
use super::rules::{OWN_CONTAINER, Rules, TOPIC};
use super::world::Inner;

/// The topics that dead letters are published to. The second topic also gets the dead letters of
/// the first one.
pub(crate) const FIRST_SINK_TOPIC: &str = "shop/lost";
pub(crate) const SECOND_SINK_TOPIC: &str = "shop/beyond";
/// The external queue for dead letters.
pub(crate) const SINK_QUEUE: &str = "127.0.0.1:4566/000000000000/lost";

/// The target of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// To the destination.
    Event,
    /// To the reply address.
    Reply,
    /// To the sink's address.
    Sink,
}

impl Route {
    /// The target that a delivery names.
    pub(crate) fn new(target: &DeliveryTarget) -> Self {
        match target {
            DeliveryTarget::Destination => Self::Event,
            DeliveryTarget::Reply => Self::Reply,
            DeliveryTarget::Sink(_) => Self::Sink,
        }
    }
}

/// The number of the address for this route of a subscription. Each route is a separate
/// destination.
pub(crate) fn address(number: usize, route: Route) -> usize {
    let of_route = match route {
        Route::Event => 0,
        Route::Reply => 1,
        Route::Sink => 2,
    };
    3 * number + of_route
}

/// Draws a sink for the subscription of this topic and number. Dead letters that came by a topic
/// often go on to another topic.
pub(crate) fn choose(topic: &str, number: usize, random: &mut SeededRandom) -> Sink {
    let goes_on = topic != TOPIC && random.percent(40);
    match if goes_on { 7 } else { random.below(14) } {
        0 | 1 => Sink::None,
        2 | 3 => Sink::Container(OWN_CONTAINER.parse().expect("a bucket and a prefix")),
        4..=6 => {
            Sink::Address(format!("https://d{number}.example.com/in").parse().expect("an address"))
        }
        7..=9 => Sink::Topic(
            random
                .pick(&[FIRST_SINK_TOPIC, FIRST_SINK_TOPIC, SECOND_SINK_TOPIC, TOPIC])
                .parse()
                .expect("a topic"),
        ),
        10 | 11 => Sink::Queue(SINK_QUEUE.parse().expect("a queue")),
        _ => Sink::DefaultContainer,
    }
}

/// Adds subscriptions to the topics that these sinks name; sometimes none.
pub(crate) fn add_sink_subscriptions(rules: &mut Vec<Rules>, random: &mut SeededRandom) {
    for (topic, most) in [(FIRST_SINK_TOPIC, 3), (SECOND_SINK_TOPIC, 2)] {
        let is_named = |rules: &Rules| {
            matches!(
                &rules.subscription.dead_letter.sink,
                Sink::Topic(name) if name.to_string() == topic
            )
        };
        let count = if rules.iter().any(is_named) { random.below(most) } else { 0 };
        for _ in 0..count {
            rules.push(Rules::choose(topic, rules.len(), random));
        }
    }
}

/// The delivery that sends the dead letter of this one to an address.
pub(crate) fn sink_delivery_of(id: Uuid) -> Uuid {
    Uuid::new_v5(&DELIVERY_NAMESPACE, format!("{id}\nsink\n").as_bytes())
}

/// The record that publishes the dead letter of a delivery on a topic.
pub(crate) fn record_of_letter(id: Uuid) -> String {
    Uuid::new_v5(&id, b"dead letter").to_string()
}

/// Every delivery that may follow from the dead letter of this one.
pub(crate) fn after(rules: &[Rules], id: Uuid, known: &Known) -> Vec<(Uuid, Known)> {
    let number = known.subscription.filter(|_| known.route != Route::Sink);
    let Some(subscription) = number.map(|number| &rules[number].subscription) else {
        return Vec::new();
    };
    let (from, own) = (Some(id), &subscription.name.topic);
    match &subscription.dead_letter.sink {
        Sink::Address(_) => {
            // The dead letter itself carries its origin.
            let (hops, via) = (0, Vec::new());
            vec![(
                sink_delivery_of(id),
                Known { route: Route::Sink, from, hops, via, ..known.clone() },
            )]
        }
        Sink::Topic(topic) if topic != own && !known.via.contains(topic) => {
            let via: Vec<TopicName> = known.via.iter().chain([own]).cloned().collect();
            let is_bare = known.is_bare
                && subscription.dead_letter.format == DeadLetterFormat::Fixed(Format::CloudEvents);
            let to = rules
                .iter()
                .enumerate()
                .filter(|(_, rules)| rules.subscription.name.topic == *topic);
            let follow_ups = to.map(|(number, rules)| {
                let subscription = Some(number);
                let known = Known {
                    subscription,
                    route: Route::Event,
                    from,
                    via: via.clone(),
                    is_bare,
                    ..known.clone()
                };
                let origin = Origin { message: record_of_letter(id), index: 0 };
                (id_of(rules.subscription.name.clone(), origin), known)
            });
            follow_ups.collect()
        }
        Sink::Topic(_)
        | Sink::DefaultContainer
        | Sink::Container(_)
        | Sink::Queue(_)
        | Sink::None => Vec::new(),
    }
}

/// The properties of a dead letter, whatever its format; `Null` where it has none.
pub(crate) fn properties(letter: &Value) -> Value {
    let letter = letter.get(0).unwrap_or(letter);
    if let Some(properties) = letter.get("deadletterProperties") {
        return properties.clone();
    }
    let ours = letter["lastmile"].as_str().and_then(|ours| serde_json::from_str(ours).ok());
    let mut properties: Value = ours.unwrap_or_default();
    if properties.is_object() {
        properties["deliveryattempts"] = letter["deliveryattempts"].clone();
    }
    properties
}

impl Inner {
    /// True if the filter of the subscription matches. An event that is no longer a CloudEvent has
    /// no type.
    pub(crate) fn takes(&self, known: &Known) -> bool {
        let kind = self.ledger.published[known.record].1.elements[known.index].kind;
        let filtered = known.subscription.is_some_and(|number| self.rules[number].filtered);
        !filtered || known.route != Route::Event || (known.is_bare && kind == ElementKind::Wanted)
    }

    /// The deliveries whose dead letters a body holds, in order; `None` if it holds events as they
    /// were published.
    pub(crate) fn letters_in(body: &str) -> Option<Vec<Uuid>> {
        if !body.contains("deadletterid") {
            return None;
        }
        let parsed: Value = serde_json::from_str(body).ok()?;
        let elements =
            parsed.as_array().map_or_else(|| std::slice::from_ref(&parsed), Vec::as_slice);
        elements
            .iter()
            .map(|letter| properties(letter)["deadletterid"].as_str()?.parse().ok())
            .collect()
    }
}
