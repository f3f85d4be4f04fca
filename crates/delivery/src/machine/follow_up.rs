//! Decides what follows the end of a delivery: further deliveries, publications, or a dead letter
//! to store.
//!
//! A reply follows a success (see [`reply`](crate::machine::reply)). A dead letter for an address
//! becomes a delivery to that address, with the retry policy of the failed delivery. A dead letter
//! for a topic is published there once, as in [`forward`].
//!
//! A dead letter that its sink cannot receive is stored in the deployment's container, so none is
//! lost. Replies to a dead letter on a topic share the reply budget of its event (see [`budget`]).
//! A topic never receives a dead letter that came from it, so no loop runs through topics. A loop
//! through an address or a queue that publishes what it receives is not detected.

use uuid::Uuid;

use crate::deadletter::blob::enriched;
use crate::delivery::{DELIVERY_NAMESPACE, DeadLetter, Delivery, DeliveryTarget, Onward, Origin};
use crate::event::{Element, Event, Input, decode_one};
use crate::machine::forward;
use crate::machine::reply::budget;
use crate::message::Message;
use crate::subscription::Subscription;
use crate::subscription::catalogue::Catalogue;
use crate::subscription::name::{ALL_NAMES, SubscriptionName, TopicName};
use crate::subscription::sink::Sink;

/// An action that the end of a delivery requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowUp {
    /// Sends a further delivery, to an address.
    Deliver(Box<Delivery>),
    /// Publishes an event to a topic, by a message on the retry queue.
    Publish(Box<Message>),
    /// Sends a dead letter to storage, in a container or a queue.
    DeadLetter(Box<DeadLetter>),
    /// Drops a dead letter, as its subscription specifies.
    Drop(Box<DeadLetter>),
}

/// Decides how a dead letter reaches its sink: as a delivery to an address, or as a publication to
/// a topic. If the sink cannot receive it, it is stored in the deployment's container with the
/// reason.
///
/// The delivery or publication is due after the dead letter's delay (five minutes in Event Grid).
#[must_use]
pub fn send_to_sink(
    letter: DeadLetter,
    subscription: &Subscription,
    catalogue: &Catalogue,
    now_ms: u64,
) -> Vec<FollowUp> {
    match &subscription.dead_letter.sink {
        Sink::Address(_) => vec![FollowUp::Deliver(Box::new(to_address(letter, now_ms)))],
        Sink::Topic(topic) => to_topic(letter, topic, catalogue, now_ms),
        Sink::DefaultContainer | Sink::Container(_) | Sink::Queue(_) => dead_letter(letter),
        Sink::None => vec![FollowUp::Drop(Box::new(letter))],
    }
}

/// Creates the delivery that sends a dead letter to the address of its sink. It contains the event
/// and the dead letter unchanged, so neither is lost if the sink fails too.
fn to_address(letter: DeadLetter, now_ms: u64) -> Delivery {
    let Delivery { id, event, subscription, origin, traceparent, .. } = letter.delivery.clone();
    let sink_delivery = Delivery {
        id: sink_delivery_id(id),
        traceparent,
        ..Delivery::new(event, subscription, origin, lifetime_start_ms(&letter, now_ms))
    };
    Delivery { target: DeliveryTarget::Sink(Box::new(letter)), ..sink_delivery }
}

fn to_topic(
    letter: DeadLetter,
    name: &TopicName,
    catalogue: &Catalogue,
    now_ms: u64,
) -> Vec<FollowUp> {
    let Delivery { subscription: SubscriptionName { topic: from, .. }, via, .. } = &letter.delivery;
    if from == name || via.contains(name) {
        return dead_letter(letter.store_in_default(format!(
            "topic {name} is the sink, but the dead letter came from it"
        )));
    }
    let input = catalogue.topic(name).map_or(Input::Auto, |topic| topic.settings.input);
    let event = match decode_one(&enriched(&letter).json.into(), input) {
        Element::Event(event) => event,
        Element::Malformed { why, .. } => {
            let why = format!("topic {name} cannot read the dead letter: {why}");
            return dead_letter(letter.store_in_default(why));
        }
    };
    if catalogue.matching(name, &ALL_NAMES, &event, now_ms).next().is_none() {
        let why = format!("no subscription of topic {name} accepts the dead letter");
        return dead_letter(letter.store_in_default(why));
    }
    let message = published(&letter, &event, name, catalogue, now_ms);
    match message.fits() {
        true => vec![FollowUp::Publish(Box::new(message))],
        false => dead_letter(letter.store_in_default("too large for a message to its sink")),
    }
}

/// Creates the message that publishes a dead letter to a topic. The published event is the original
/// event with facts about the failure.
fn published(
    letter: &DeadLetter,
    event: &Event,
    to: &TopicName,
    catalogue: &Catalogue,
    now_ms: u64,
) -> Message {
    let first = &letter.delivery;
    let mut via = first.via.clone();
    via.push(first.subscription.topic.clone());
    // A dead letter is not a reply, but receivers may reply to it. It keeps its hops, so that the
    // length of the chain is still limited.
    let replies_left = budget::left_before(first, catalogue, now_ms);
    let onward = Onward { hops: first.hops, replies_left, via, is_dead_letter: true };
    let origin = Origin::made_by(first.id, "dead letter");
    let starts_ms = lifetime_start_ms(letter, now_ms);
    let message = forward::message(first, event, origin, to, onward, starts_ms);
    Message { wait_ms: starts_ms.saturating_sub(now_ms), ..message }
}

/// Returns the start of the time to live of a delivery to a sink. It is not before the end of the
/// dead letter's delay; otherwise a short time to live would end before the first attempt.
fn lifetime_start_ms(letter: &DeadLetter, now_ms: u64) -> u64 {
    letter.not_before_ms.max(now_ms)
}

fn sink_delivery_id(first: Uuid) -> Uuid {
    Uuid::new_v5(&DELIVERY_NAMESPACE, format!("{first}\nsink\n").as_bytes())
}

fn dead_letter(letter: DeadLetter) -> Vec<FollowUp> {
    vec![FollowUp::DeadLetter(Box::new(letter))]
}
