//! A published record that waits before it is divided into deliveries.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::delivery::Delivery;
use super::hold::Hold;
use super::origin::Origin;
use crate::event::{Event, Input};
use crate::subscription::Subscription;
use crate::subscription::name::{NameRange, SubscriptionName, TopicName};

/// Everything of a published record but its body. It travels with the body when the record is
/// re-enqueued before it was read, so that its deliveries have the ids and the age that they would
/// have had at once. Its fields are those of version 1 of the wire format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    /// The SQS message id it was published with. For a reply or a dead letter, see [`Origin::made_by`].
    pub message: String,
    /// When it was published.
    pub published_ms: u64,
    /// The topic that its publisher named, valid or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Its publisher's message group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The trace that published it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// How it was held.
    #[serde(default, skip_serializing_if = "Hold::is_none")]
    pub hold: Hold,
    /// Which part of the record it is; none, if all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Set if a delivery published the event: by forwarding it, as a reply, or as a dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onward: Option<Onward>,
}

/// Deliveries of an event inherit this from the delivery that led to it. Its fields are those of version 1 of the wire
/// format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Onward {
    /// Number of answers and topics that led to them.
    pub hops: u32,
    /// Number of deliveries that may follow from all of them together by answers.
    pub replies_left: u32,
    /// The topics to which none of their dead letters goes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<TopicName>,
    /// The event is a dead letter: it must not end unseen, even if no subscription takes it any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dead_letter: bool,
}

/// A part of a published record that was too large to be handled at once: some of its elements, for
/// some subscriptions. Its fields are those of version 1 of the wire format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The index that its first element has in the published record.
    pub first: u32,
    /// How its elements are read. It stays as it was when the record was divided, or a changed file
    /// would change their indexes.
    pub input: Input,
    /// The subscriptions it is for.
    #[serde(flatten)]
    pub names: NameRange,
}

impl Publication {
    /// A delivery of its event with this index, before its first attempt.
    #[must_use]
    pub fn delivery(&self, index: u32, event: Event, subscription: SubscriptionName) -> Delivery {
        let origin = Origin { message: self.message.clone(), index };
        let new = Delivery::new(event, subscription, origin, self.published_ms);
        let new = Delivery { traceparent: self.traceparent.clone(), ..new };
        match &self.onward {
            Some(Onward { hops, replies_left, via, .. }) => {
                Delivery { hops: *hops, replies_left: Some(*replies_left), via: via.clone(), ..new }
            }
            None => new,
        }
    }

    /// The delivery of its event with this index to a subscription, before its first attempt and with all that may follow.
    #[must_use]
    pub fn delivery_to(&self, index: u32, event: Event, to: &Subscription) -> Delivery {
        self.delivery(index, event, to.name.clone()).delayed(to.delay_ms)
    }

    /// The deliveries of its event with this index to these subscriptions, before their first attempts. Each has
    /// its share of what may follow.
    pub fn deliveries(
        &self,
        index: u32,
        event: &Event,
        to: &[&Arc<Subscription>],
    ) -> impl Iterator<Item = Delivery> {
        to.iter().enumerate().map(move |(place, subscription)| {
            let new = self.delivery_to(index, event.clone(), subscription);
            let left = new.replies_left.map(|left| share(left, to.len(), place));
            Delivery { replies_left: left, ..new }
        })
    }

    /// The same publication for one of several parts, of which each has its share of what may follow.
    #[must_use]
    pub fn with_share(mut self, parts: usize, place: usize) -> Self {
        if let Some(Onward { replies_left, .. }) = &mut self.onward {
            *replies_left = share(*replies_left, parts, place);
        }
        self
    }

    /// A delivery that stands for all of it, whatever it contains. That of a part has an id of its own,
    /// which depends on all that the part is.
    #[must_use]
    pub fn whole(&self, event: Event, subscription: SubscriptionName) -> Delivery {
        let Some(Part { first, names, .. }) = &self.part else {
            return self.delivery(0, event, subscription);
        };
        let delivery = self.delivery(*first, event, subscription);
        let before = names.before.as_deref().unwrap_or_default();
        let part = [&names.from, before, delivery.event.text()].join("\n");
        Delivery { id: Uuid::new_v5(&delivery.id, part.as_bytes()), ..delivery }
    }
}

/// The share that one of several parts has of a number. They differ by one at most; the larger ones come first.
#[must_use]
pub fn share(number: u32, parts: usize, place: usize) -> u32 {
    let whole = usize::try_from(number).unwrap_or(usize::MAX);
    let share = whole / parts + usize::from(place < whole % parts);
    u32::try_from(share).unwrap_or(u32::MAX)
}

impl fmt::Display for Part {
    /// For people: `elements from 20 on, subscriptions from "b" on, subscriptions before "c"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "elements from {} on", self.first)?;
        if !self.names.from.is_empty() {
            write!(f, ", subscriptions from {:?} on", self.names.from)?;
        }
        match &self.names.before {
            Some(before) => write!(f, ", subscriptions before {before:?}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn what_stands_for_a_part_differs_from_what_stands_for_any_other_part() {
        let publication = |part| Publication {
            message: "m1".to_owned(),
            published_ms: 1,
            topic: None,
            group: None,
            traceparent: None,
            hold: Hold::default(),
            part,
            onward: None,
        };
        let part = |first, from: &str, before: Option<&str>| {
            let names = NameRange { from: from.to_owned(), before: before.map(ToOwned::to_owned) };
            Some(Part { first, input: Input::Auto, names })
        };
        let parts = [
            (None, "[1,2]"),
            (part(0, "", None), "[1,2]"),
            (part(0, "", None), "[1]"),
            (part(1, "", None), "[1]"),
            (part(0, "", Some("b")), "[1]"),
            (part(0, "b", Some("c")), "[1]"),
            (part(0, "b", None), "[1]"),
        ];
        let ids: BTreeSet<Uuid> = parts
            .iter()
            .map(|(part, body)| {
                let event = Event::recall(&(*body).into(), Input::Auto);
                let name = "n/t/_unprocessed".parse().expect("a name");
                publication(part.clone()).whole(event, name).id
            })
            .collect();
        assert_eq!(ids.len(), parts.len());
    }

    #[test]
    fn a_part_says_what_it_is() {
        let names = NameRange { from: "b".to_owned(), before: Some("c".to_owned()) };
        let part = Part { first: 20, input: Input::Auto, names };
        let said = "elements from 20 on, subscriptions from \"b\" on, subscriptions before \"c\"";
        assert_eq!(part.to_string(), said);
    }
}
