//! Limits the number of replies that may follow from one published event.
//!
//! A limit on the length of a chain of replies does not limit its width: two subscriptions that
//! reply to each other's replies could turn one event into thousands of requests. Therefore the
//! deliveries that follow from replies are counted.
//!
//! - Deliveries of direct replies to the published event do not count: only later replies can form
//!   a loop.
//! - All later deliveries carry their remaining budget. A reply divides the budget of its delivery.
//! - A forwarded event counts like a reply if it may come back to the topic that forwarded it.
//!   Otherwise it is never refused, because the number of subscriptions limits its deliveries.
//! - The budget never stops a dead letter for a topic. Events that follow from the dead letter
//!   share the rest of its delivery's budget.
//!
//! A share belongs to one branch, so concurrent branches need no common counter. If the budget is
//! smaller than the number of subscriptions that can reply, each subscription has a share of one.
//! The limit is then the number of these subscriptions.

use std::collections::BTreeSet;

use crate::delivery::Delivery;
use crate::subscription::catalogue::Catalogue;
use crate::subscription::name::{ALL_NAMES, SubscriptionName, TopicName};
use crate::subscription::topic_settings::REPLIES_MAX;
use crate::subscription::{ReplyTo, Subscription};

/// Maximum number of replies and forwards between a published event and a delivery.
pub const HOPS_MAX: u32 = 10;

/// Returns the reply budget that remains for all deliveries of one reply, or of an event that is
/// forwarded to the topic `onward`. `deliveries` is the number of these deliveries. Returns `None`
/// if they count against the budget and exceed it.
pub(in crate::machine) fn left_after(
    answered: &Delivery,
    onward: Option<&TopicName>,
    catalogue: &Catalogue,
    deliveries: usize,
    now_ms: u64,
) -> Option<u32> {
    let (left, from) = (left_before(answered, catalogue, now_ms), &answered.subscription.topic);
    match answered.hops {
        0 => Some(left),
        _ if onward.is_some_and(|to| !may_lead_back(to.clone(), from, catalogue)) => Some(left),
        _ => left.checked_sub(u32::try_from(deliveries).ok()?),
    }
}

/// Returns the reply budget of a delivery. A delivery of a published event has a share of the
/// topic's `maxReplies`. A delivery that follows from a dead letter of that event has a part of
/// that share.
pub(in crate::machine) fn left_before(
    delivery: &Delivery,
    catalogue: &Catalogue,
    now_ms: u64,
) -> u32 {
    match (delivery.hops, delivery.replies_left) {
        (0, None) => share_of_an_event(delivery, catalogue, now_ms),
        _ => left(delivery),
    }
}

/// Returns the remaining reply budget of a reply, or the default if the reply states none.
pub(super) fn left(reply: &Delivery) -> u32 {
    reply.replies_left.unwrap_or(REPLIES_MAX)
}

/// Returns the topics that must not get dead letters of events that follow from a delivery. They
/// are `topics`, and the topic of notices if the event came from there: a dead letter about a
/// notice would cause another notice, and another reply.
pub(in crate::machine) fn via(
    delivery: &Delivery,
    mut topics: Vec<TopicName>,
    catalogue: &Catalogue,
) -> Vec<TopicName> {
    let SubscriptionName { topic: from, .. } = &delivery.subscription;
    let notices = catalogue.topic_of_notices();
    let notices = notices.filter(|topic| from == *topic || delivery.via.contains(topic));
    topics.extend(notices.filter(|topic| !topics.contains(topic)).cloned());
    topics
}

/// Returns the reason, for people, why a publication exceeds the reply budget.
pub(in crate::machine) fn over_budget(
    delivery: &Delivery,
    subscription: &Subscription,
    deliveries: usize,
) -> String {
    let left = left(delivery);
    let to = match (&subscription.destination.topic(), &subscription.reply) {
        (Some(topic), _) | (None, Some(ReplyTo::Topic(topic))) => format!("topic {topic}"),
        (None, Some(ReplyTo::Address(_)) | None) => "the reply address".to_owned(),
    };
    format!(
        "one event caused too many replies: this reply to {to} would cause {deliveries} more \
         deliveries, but maxReplies of the event's topic allows {left} more"
    )
}

/// Returns the topics that must be read to determine whether a forwarded event would come back to
/// the topic of its subscription (a loop). An unread topic counts as a loop, so without reading them,
/// events that a long chain of topics forwards would become dead letters.
#[must_use]
pub fn unread_topics(
    delivery: &Delivery,
    subscription: &Subscription,
    catalogue: &Catalogue,
) -> Vec<TopicName> {
    let to = subscription.destination.topic().filter(|_| delivery.hops > 0);
    let reached = to.map(|to| reachable(to, catalogue)).unwrap_or_default();
    if reached.contains(&subscription.name.topic) {
        return Vec::new();
    }
    reached.into_iter().filter(|topic| !catalogue.knows(topic)).collect()
}

/// True if an event that is forwarded to the topic `to` may come back to the topic `back`. An
/// unread topic may lead to any topic.
fn may_lead_back(to: TopicName, back: &TopicName, catalogue: &Catalogue) -> bool {
    let leads_back = |topic: &TopicName| topic == back || !catalogue.knows(topic);
    reachable(to, catalogue).iter().any(leads_back)
}

/// Returns this topic, and all topics that its events can reach by forwarding, as a reply, or as a
/// dead letter.
fn reachable(topic: TopicName, catalogue: &Catalogue) -> BTreeSet<TopicName> {
    let (mut open, mut reached) = (vec![topic], BTreeSet::new());
    while let Some(topic) = open.pop() {
        let subscriptions = catalogue.topic_subscriptions(&topic);
        if reached.insert(topic) {
            let next = subscriptions.into_iter().flat_map(|entry| entry.subscriptions());
            open.extend(next.flat_map(|subscription| subscription.other_topics()));
        }
    }
    reached
}

/// Returns the reply budget of one delivery of a published event. The budget of the topic is
/// divided equally among the matching subscriptions that can cause replies. They can cause replies
/// by their response, by forwarding, or by a dead letter on a topic with replies.
fn share_of_an_event(delivery: &Delivery, catalogue: &Catalogue, now_ms: u64) -> u32 {
    let topic = &delivery.subscription.topic;
    let budget = catalogue.topic(topic).map_or(REPLIES_MAX, |topic| topic.settings.max_replies);
    let matching = catalogue.matching(topic, &ALL_NAMES, &delivery.event, now_ms);
    let leading_on = matching.filter(|subscription| leads_on(subscription, catalogue)).count();
    // The count may be 0, because the delivery's own subscription may have changed after the
    // delivery was created.
    let share = budget / u32::try_from(leading_on).unwrap_or(u32::MAX).max(1);
    // A share is at least one, because most subscriptions that can reply do not.
    share.max(budget.min(1))
}

/// True if replies may follow from a delivery to this subscription: from its response, from an
/// event that it forwards, or from its dead letter. A topic for dead letters counts only if it is
/// unread, or if one of its subscriptions replies or sends events to other topics.
fn leads_on(subscription: &Subscription, catalogue: &Catalogue) -> bool {
    let may_answer =
        |other: &Subscription| other.reply.is_some() || other.other_topics().next().is_some();
    let is_answered = |topic: TopicName| {
        let mut subscriptions = catalogue
            .topic_subscriptions(&topic)
            .into_iter()
            .flat_map(|entry| entry.subscriptions());
        !catalogue.knows(&topic) || subscriptions.any(|other| may_answer(other))
    };
    subscription.reply.is_some()
        || subscription.destination.topic().is_some()
        || subscription.other_topics().any(is_answered)
}

#[cfg(test)]
mod tests;
