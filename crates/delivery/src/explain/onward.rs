//! Explains where an event is forwarded by subscriptions whose destination is a topic.
//!
//! This module is separate from the subscriptions of one topic, because a forwarded event reaches
//! several topics. The event is the same on each, so each topic is evaluated once. The maximum
//! length of a chain of topics is that of production.

use std::collections::{BTreeSet, VecDeque};

use super::matching::{EventMatch, event_matches};
use crate::delivery::reason::Reason;
use crate::event::Event;
use crate::machine::reply::HOPS_MAX;
use crate::subscription::catalogue::Catalogue;
use crate::subscription::name::TopicName;

/// The result on one topic to which an event is forwarded.
#[derive(Debug, Clone)]
pub struct Onward {
    /// The topic to which the event is forwarded.
    pub topic: TopicName,
    /// The results of the topic's subscriptions, or the reason why the event becomes a dead letter
    /// instead.
    pub matches: Result<Vec<EventMatch>, Reason>,
}

/// Returns the topics to which these subscriptions forward an event, directly or through other
/// topics, the nearest first.
#[must_use]
pub fn onward(
    catalogue: &Catalogue,
    topic: &TopicName,
    matches: &[EventMatch],
    event: &Event,
    now_ms: u64,
) -> Vec<Onward> {
    let next = |matches: &[EventMatch], hops: u32| {
        let getting = matches.iter().filter(|event_match| event_match.matches);
        let topics = getting.filter_map(|event_match| event_match.subscription.destination.topic());
        topics.map(|topic| (topic, hops)).collect::<Vec<_>>()
    };
    let mut seen = BTreeSet::from([topic.clone()]);
    let mut open: VecDeque<(TopicName, u32)> = next(matches, 1).into();
    let mut found = Vec::new();
    while let Some((topic, hops)) = open.pop_front() {
        if !seen.insert(topic.clone()) {
            continue;
        }
        let matches = if hops > HOPS_MAX {
            Err(Reason::ReplyLoop)
        } else if catalogue.topic(&topic).is_none() {
            Err(Reason::TopicNotFound)
        } else {
            Ok(event_matches(catalogue, &topic, event, now_ms))
        };
        open.extend(next(matches.as_deref().unwrap_or_default(), hops + 1));
        found.push(Onward { topic, matches });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Input;
    use crate::subscription::Subscription;
    use crate::subscription::catalogue::Topic;
    use crate::subscription::name::SubscriptionName;
    use crate::subscription::profile::Dialect;
    use crate::subscription::topic_address::address_of;

    fn topic(number: usize) -> TopicName {
        format!("chain/t{number:02}").parse().unwrap()
    }

    /// Returns the results for the topics after the first. Each topic forwards to the next, and the
    /// last topic does not exist.
    fn reasons(topics: usize) -> Vec<Option<Reason>> {
        let mut catalogue = Catalogue::default();
        for number in 0..topics {
            catalogue.add_topic(Topic::new(topic(number)));
            let name = SubscriptionName { topic: topic(number), name: "next".to_owned() };
            let next = address_of(&topic(number + 1));
            catalogue.add_subscription(Subscription::new(name, Dialect::Knative, next));
        }
        let text = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;
        let event = Event::recall(&text.into(), Input::CloudEvents);
        let first = event_matches(&catalogue, &topic(0), &event, 1);
        let onward = onward(&catalogue, &topic(0), &first, &event, 1);
        onward.into_iter().map(|step| step.matches.err()).collect()
    }

    #[test]
    fn an_event_is_followed_as_far_as_it_goes_on() {
        assert_eq!(reasons(3), [None, None, Some(Reason::TopicNotFound)]);
        let ten = reasons(40);
        assert_eq!(ten.len(), 11);
        assert_eq!(ten.iter().filter(|reason| reason.is_none()).count(), 10);
        assert_eq!(ten.last(), Some(&Some(Reason::ReplyLoop)));
    }
}
