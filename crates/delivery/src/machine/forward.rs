//! Publishes to a topic the events that follow from a delivery: a forwarded event, a reply, or a
//! dead letter.
//!
//! Such an event is published once, by one message on the retry queue, however many subscriptions
//! match. Dispatch matches it when the message is received, and divides it like any other record.
//! One message for each of thousands of subscriptions could use up the invocation, and the record
//! would begin again.
//! [`Onward`] carries the hops, the reply budget and the visited topics.
//!
//! A repeated delivery publishes the same message again. The deliveries of both messages have the
//! same ids. A forwarded event keeps its origin. Topics that lead to each other do not loop
//! forever: a chain has at most [`HOPS_MAX`] topics and replies, and an event that may come back
//! counts against the reply budget.

use std::sync::Arc;

use crate::delivery::reason::Reason;
use crate::delivery::{Delivery, Hold, Onward, Origin, Part, Publication, trace};
use crate::event::json::array;
use crate::event::{Event, Input, Shape};
use crate::machine::reply::budget::{self, HOPS_MAX, over_budget, via};
use crate::machine::step::{End, end_without_success};
use crate::message::Message;
use crate::subscription::Subscription;
use crate::subscription::catalogue::Catalogue;
use crate::subscription::name::{ALL_NAMES, TopicName};

/// The reason why an event is not published, and a detail for people.
pub(super) type Refused = (Reason, String);

/// Creates the message that forwards the event of a delivery to a topic.
///
/// # Errors
/// The end of the delivery, if the event cannot be forwarded.
pub fn forward(
    delivery: &Delivery,
    subscription: &Subscription,
    to: &TopicName,
    catalogue: &Catalogue,
    now_ms: u64,
) -> Result<Message, End> {
    let from = Source { delivery, subscription, catalogue, now_ms };
    let left = from.left_after(&delivery.event, to, true);
    let message = left.and_then(|left| {
        let via = via(delivery, delivery.via.clone(), catalogue);
        from.publish(&delivery.event, delivery.origin.clone(), to, left, via)
    });
    message.map_err(|(reason, why)| {
        end_without_success(delivery, subscription, reason, now_ms).with_detail(why)
    })
}

/// The delivery from which a publication follows. The published event is the event of the delivery,
/// or a reply to it.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) delivery: &'a Delivery,
    pub(super) subscription: &'a Subscription,
    pub(super) catalogue: &'a Catalogue,
    pub(super) now_ms: u64,
}

impl Source<'_> {
    /// Returns the reply budget that remains after the publication. Fails if the topic is missing,
    /// the chain is too long, or the budget is used up.
    pub(super) fn left_after(
        &self,
        event: &Event,
        to: &TopicName,
        is_same_event: bool,
    ) -> Result<u32, Refused> {
        let Self { delivery, subscription, catalogue, now_ms } = *self;
        if catalogue.topic(to).is_none() {
            let why = format!(
                "there is no topic {to}, to which the subscription sends events or replies"
            );
            return Err((Reason::TopicNotFound, why));
        }
        if delivery.hops >= HOPS_MAX {
            return Err((
                Reason::ReplyLoop,
                format!("the chain of replies is longer than {HOPS_MAX}"),
            ));
        }
        let deliveries = catalogue.matching(to, &ALL_NAMES, event, now_ms).count();
        let onward = is_same_event.then_some(to);
        let left = budget::left_after(delivery, onward, catalogue, deliveries, now_ms);
        left.ok_or_else(|| (Reason::ReplyLoop, over_budget(delivery, subscription, deliveries)))
    }

    /// Creates the message that publishes the event. Fails if the message would be too large.
    pub(super) fn publish(
        &self,
        event: &Event,
        origin: Origin,
        to: &TopicName,
        replies_left: u32,
        via: Vec<TopicName>,
    ) -> Result<Message, Refused> {
        let hops = self.delivery.hops + 1;
        let onward = Onward { hops, replies_left, via, is_dead_letter: false };
        let message = message(self.delivery, event, origin, to, onward, self.now_ms);
        let too_large = || {
            let why = format!("the event and its state are too large for a message to topic {to}");
            (Reason::EventTooLargeToResend, why)
        };
        message.fits().then_some(message).ok_or_else(too_large)
    }
}

/// Creates the message that publishes an event to a topic. The schema of the event stays the same,
/// whatever the input of the topic is.
pub(super) fn message(
    delivery: &Delivery,
    event: &Event,
    origin: Origin,
    to: &TopicName,
    onward: Onward,
    published_ms: u64,
) -> Message {
    let input = match event.shape() {
        Shape::CloudEvent => Input::CloudEvents,
        Shape::EventGrid => Input::EventGrid,
        Shape::Custom => Input::Custom,
        Shape::Opaque => Input::Opaque,
    };
    let text = event.text();
    // The event is wrapped in an array, because an array would otherwise be read as several events.
    let is_array = input != Input::Opaque && text.trim_start().starts_with('[');
    let body = if is_array { array(&[text]).into() } else { Arc::clone(text) };
    let Origin { message, index } = origin;
    let publication = Publication {
        message,
        published_ms,
        topic: Some(to.to_string()),
        group: Some(delivery.subscription.to_string()),
        traceparent: trace::of_delivery(delivery).map(|trace| trace.parent),
        hold: Hold::default(),
        part: Some(Part { first: index, input, names: ALL_NAMES.clone() }),
        onward: Some(onward),
    };
    Message::of_publication(publication, body)
}

#[cfg(test)]
pub(super) mod tests;
