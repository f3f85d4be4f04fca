//! Events that go on to another topic, because that is the destination of their subscription.
//!
//! An event is published there once, however many subscriptions take it: those are found when that
//! message is received, and divided like those of any other record. What must not be forgotten on the
//! way travels along ([`Onward`]).
//!
//! Promises: the same delivery publishes the same message, whose deliveries have the same ids. Topics that
//! lead to each other are no endless loop: a chain has [`HOPS_MAX`] topics and answers, and what may
//! come back counts against the budget of replies.

use std::sync::Arc;

use crate::delivery::reason::Reason;
use crate::delivery::{Delivery, Hold, Onward, Part, Publication, trace};
use crate::event::json::array;
use crate::event::{Input, Shape};
use crate::machine::reply::{HOPS_MAX, budget, over_budget, via};
use crate::machine::step::{End, end_without_success};
use crate::subscription::Subscription;
use crate::subscription::catalogue::Catalogue;
use crate::subscription::name::{ALL_NAMES, TopicName};

/// The publication and the body with which the event of a delivery goes on to a topic.
///
/// # Errors
/// The end of the delivery, where it cannot.
pub fn forward(
    delivery: &Delivery,
    subscription: &Subscription,
    to: &TopicName,
    catalogue: &Catalogue,
    now_ms: u64,
) -> Result<(Publication, Arc<str>), End> {
    let ends = |reason, why: String| {
        end_without_success(delivery, subscription, reason, now_ms).with_detail(why)
    };
    if catalogue.topic(to).is_none() {
        let why = format!("there is no topic {to}, the destination of its subscription");
        return Err(ends(Reason::TopicNotFound, why));
    }
    if delivery.hops >= HOPS_MAX {
        let why = format!("a chain of more than {HOPS_MAX} replies");
        return Err(ends(Reason::ReplyLoop, why));
    }
    let deliveries = catalogue.matching(to, &ALL_NAMES, &delivery.event, now_ms).count();
    let left = budget::left_after(delivery, Some(to), catalogue, deliveries, now_ms);
    let Some(replies_left) = left else {
        return Err(ends(Reason::ReplyLoop, over_budget(delivery, subscription, deliveries)));
    };
    let onward = Onward {
        from: delivery.id,
        hops: delivery.hops + 1,
        replies_left,
        via: via(delivery, delivery.via.clone(), catalogue),
    };
    Ok(publication(delivery, to, onward, now_ms))
}

/// The event of a delivery as one that is published on a topic, and read there as it was read here.
fn publication(
    delivery: &Delivery,
    to: &TopicName,
    onward: Onward,
    now_ms: u64,
) -> (Publication, Arc<str>) {
    let input = match delivery.event.shape() {
        Shape::CloudEvent => Input::CloudEvents,
        Shape::EventGrid => Input::EventGrid,
        Shape::Custom => Input::Custom,
        Shape::Opaque => Input::Opaque,
    };
    let text = delivery.event.text();
    // An array would be read as the events in it.
    let is_array = input != Input::Opaque && text.trim_start().starts_with('[');
    let body = if is_array { array(&[text]).into() } else { Arc::clone(text) };
    let publication = Publication {
        message: delivery.origin.message.clone(),
        published_ms: now_ms,
        topic: Some(to.to_string()),
        group: Some(delivery.subscription.to_string()),
        traceparent: trace::of_delivery(delivery).map(|trace| trace.parent),
        hold: Hold::default(),
        part: Some(Part { first: delivery.origin.index, input, names: ALL_NAMES.clone() }),
        dead_letters_ms: None,
        onward: Some(onward),
    };
    (publication, body)
}

#[cfg(test)]
pub(super) mod tests;
