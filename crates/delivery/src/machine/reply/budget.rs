//! How many replies may follow from one published event.
//!
//! The length of a chain of replies is bounded, but not its width: two subscriptions that answer each
//! other's answers would make thousands of requests out of one event. So the deliveries that replies lead
//! to are counted. Those of the first generation, which answer the event itself, are free: without a loop
//! there are seldom others. From then on each delivery carries how many may still follow from it, and an
//! answer to it divides what remains. An event that goes on to another topic counts like an answer if the topics
//! may lead it back; if not, as many deliveries follow as the files say, and none is refused. A share
//! belongs to one branch, so nothing has to be counted together where branches run at the same time. Where more
//! subscriptions can answer an event than its budget has deliveries, each has a share of one: then the bound is
//! their number.

use std::collections::BTreeSet;

use crate::delivery::Delivery;
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
    let from = &answered.subscription.topic;
    match answered.hops {
        0 => Some(share_of_an_answer(answered, catalogue, now_ms)),
        _ if onward.is_some_and(|to| !may_lead_back(to.clone(), from, catalogue)) => {
            Some(left(answered))
        }
        _ => left(answered).checked_sub(u32::try_from(deliveries).ok()?),
    }
}

/// How many deliveries may follow from a reply. An older version sent it without the number.
pub(super) fn left(reply: &Delivery) -> u32 {
    reply.replies_left.unwrap_or(REPLIES_MAX)
}

/// Whether an event that goes on to a topic may come back to another by destinations that are topics. Of a
/// topic that was not read nobody knows.
fn may_lead_back(to: TopicName, back: &TopicName, catalogue: &Catalogue) -> bool {
    let (mut open, mut seen) = (vec![to], BTreeSet::new());
    while let Some(topic) = open.pop() {
        if topic == *back || catalogue.lacks(&topic) {
            return true;
        }
        let subscriptions = catalogue.topic_subscriptions(&topic);
        if seen.insert(topic) {
            let next = subscriptions.into_iter().flat_map(|of| of.subscriptions());
            open.extend(next.filter_map(|of| of.destination.topic()));
        }
    }
    false
}

/// What may follow from one answer to a published event: each subscription that takes the event and can
/// answer it has the same share.
fn share_of_an_answer(answered: &Delivery, catalogue: &Catalogue, now_ms: u64) -> u32 {
    let topic = &answered.subscription.topic;
    let budget = catalogue.topic(topic).map_or(REPLIES_MAX, |topic| topic.max_replies);
    let matching = catalogue.matching(topic, &ALL_NAMES, &answered.event, now_ms);
    let answering = matching
        .filter(|subscription| {
            subscription.reply.is_some() || subscription.destination.topic().is_some()
        })
        .count();
    // Its own subscription may have changed since, and not be among them.
    let share = budget / u32::try_from(answering).unwrap_or(u32::MAX).max(1);
    // Of many that can answer most do not, so none is left without.
    share.max(budget.min(1))
}

#[cfg(test)]
mod tests;
