//! How many replies may follow from one published event.
//!
//! The length of a chain of replies is bounded, but not its width: two subscriptions that answer each
//! other's answers would make thousands of requests out of one event. So the deliveries that replies lead
//! to are counted. Those of the first generation, which answer the event itself, are free: without a loop
//! there are seldom others. From then on each delivery carries how many may still follow from it, and an
//! answer to it divides what remains. An event that goes on to another topic counts like an answer if the topics
//! may lead it back; if not, as many deliveries follow as the files say, and none is refused. A dead letter that
//! goes to a topic is no answer and is never refused, but what it leads to there shares what its delivery had
//! left. A share belongs to one branch, so nothing has to be counted together where branches run at the same
//! time. Where more subscriptions can answer an event, or send its dead letters to a topic, than its budget has
//! deliveries, each has a share of one: then the bound is their number.

use std::collections::BTreeSet;

use crate::delivery::Delivery;
use crate::subscription::catalogue::Catalogue;
use crate::subscription::name::{ALL_NAMES, SubscriptionName, TopicName};
use crate::subscription::topic_settings::REPLIES_MAX;
use crate::subscription::{ReplyTo, Subscription};

/// The longest chain of replies.
pub const HOPS_MAX: u32 = 10;

/// What may still follow from all of the deliveries together that one answer leads to, or an event that goes on
/// to this topic; `None` if there may not be so many.
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

/// How many deliveries may follow from a delivery. One of a published event has the share that its topic says;
/// each that a dead letter of such an event led to has a share of that.
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

/// How many deliveries may follow from a reply. An older version sent it without the number.
pub(super) fn left(reply: &Delivery) -> u32 {
    reply.replies_left.unwrap_or(REPLIES_MAX)
}

/// The topics to which no dead letter goes of what follows from a delivery: these, and the topic of notices if
/// one led here. Nobody is told of its dead letters, because that would be another notice, and another reply.
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

/// Why nothing follows from a delivery, for people.
pub(in crate::machine) fn over_budget(
    delivery: &Delivery,
    subscription: &Subscription,
    deliveries: usize,
) -> String {
    let left = left(delivery);
    let to = match (&subscription.destination.topic(), &subscription.reply) {
        (Some(topic), _) | (None, Some(ReplyTo::Topic(topic))) => format!("topic {topic}"),
        (None, Some(ReplyTo::Address(_)) | None) => "its address".to_owned(),
    };
    format!(
        "too many replies follow from one event: this one to {to} would lead to {deliveries} more \
         deliveries where {left} are left (maxReplies of the event's topic)"
    )
}

/// The topics to read before it can be said whether an event that goes on may come back: none, if nobody asks.
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

/// Whether an event that goes on to a topic may come back to another. Of a topic that was not read nobody knows.
fn may_lead_back(to: TopicName, back: &TopicName, catalogue: &Catalogue) -> bool {
    let leads_back = |topic: &TopicName| topic == back || !catalogue.knows(topic);
    reachable(to, catalogue).iter().any(leads_back)
}

/// This topic, and where an event of it may come: as it is, as an answer or as a dead letter.
fn reachable(topic: TopicName, catalogue: &Catalogue) -> BTreeSet<TopicName> {
    let (mut open, mut reached) = (vec![topic], BTreeSet::new());
    while let Some(topic) = open.pop() {
        let subscriptions = catalogue.topic_subscriptions(&topic);
        if reached.insert(topic) {
            let next = subscriptions.into_iter().flat_map(|of| of.subscriptions());
            open.extend(next.flat_map(|of| of.other_topics()));
        }
    }
    reached
}

/// What may follow from one delivery of a published event: each subscription that takes the event and can
/// answer it has the same share, and so has each whose dead letters go to a topic where they can be answered.
fn share_of_an_event(delivery: &Delivery, catalogue: &Catalogue, now_ms: u64) -> u32 {
    let topic = &delivery.subscription.topic;
    let budget = catalogue.topic(topic).map_or(REPLIES_MAX, |topic| topic.settings.max_replies);
    let matching = catalogue.matching(topic, &ALL_NAMES, &delivery.event, now_ms);
    let leading_on = matching.filter(|subscription| leads_on(subscription, catalogue)).count();
    // Its own subscription may have changed since, and not be among them.
    let share = budget / u32::try_from(leading_on).unwrap_or(u32::MAX).max(1);
    // Of many that can answer most do not, so none is left without.
    share.max(budget.min(1))
}

/// Whether replies may follow from a delivery to this subscription: to its answer, to an event that it sends on, or
/// to its dead letter. Most topics of dead letters have nobody who answers.
fn leads_on(subscription: &Subscription, catalogue: &Catalogue) -> bool {
    let may_answer = |of: &Subscription| of.reply.is_some() || of.other_topics().next().is_some();
    let is_answered = |topic: TopicName| {
        let mut subscriptions =
            catalogue.topic_subscriptions(&topic).into_iter().flat_map(|of| of.subscriptions());
        !catalogue.knows(&topic) || subscriptions.any(|of| may_answer(of))
    };
    subscription.reply.is_some()
        || subscription.destination.topic().is_some()
        || subscription.other_topics().any(is_answered)
}

#[cfg(test)]
mod tests;
