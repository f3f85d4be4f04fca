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
use std::sync::Arc;

use crate::delivery::Delivery;
use crate::subscription::Subscription;
use crate::subscription::catalogue::{Catalogue, REPLIES_MAX};
use crate::subscription::name::{ALL_NAMES, TopicName};

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

/// Whether an event that goes on to a topic may come back to another, as it is, as an answer or as a dead
/// letter. Of a topic that was not read nobody knows.
fn may_lead_back(to: TopicName, back: &TopicName, catalogue: &Catalogue) -> bool {
    let (mut open, mut seen) = (vec![to], BTreeSet::new());
    while let Some(topic) = open.pop() {
        if topic == *back || !catalogue.knows(&topic) {
            return true;
        }
        let subscriptions = catalogue.topic_subscriptions(&topic);
        if seen.insert(topic) {
            let next = subscriptions.into_iter().flat_map(|of| of.subscriptions());
            open.extend(next.flat_map(|of| of.other_topics()));
        }
    }
    false
}

/// What may follow from one delivery of a published event: each subscription that takes the event and can
/// answer it has the same share, and so has each whose dead letters go to a topic, where they can be answered.
fn share_of_an_event(delivery: &Delivery, catalogue: &Catalogue, now_ms: u64) -> u32 {
    let topic = &delivery.subscription.topic;
    let budget = catalogue.topic(topic).map_or(REPLIES_MAX, |topic| topic.max_replies);
    let matching = catalogue.matching(topic, &ALL_NAMES, &delivery.event, now_ms);
    let leads_on = |subscription: &&Arc<Subscription>| {
        subscription.reply.is_some() || subscription.other_topics().next().is_some()
    };
    let leading_on = matching.filter(leads_on).count();
    // Its own subscription may have changed since, and not be among them.
    let share = budget / u32::try_from(leading_on).unwrap_or(u32::MAX).max(1);
    // Of many that can answer most do not, so none is left without.
    share.max(budget.min(1))
}

#[cfg(test)]
mod tests;
