//! [`Publication`]: a published record that waits before its deliveries are created.

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

/// Everything about a published record except its body. If the record is re-enqueued before its
/// deliveries are created, this state travels with it. So its deliveries get the same ids and age
/// as without the wait. The field names are part of version 1 of the wire format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    /// The SQS message id of the published record. For a reply or a dead letter, see
    /// [`Origin::made_by`].
    pub message: String,
    /// Time of publication in milliseconds since 1970.
    pub published_ms: u64,
    /// The value of the publisher's `topic` attribute, valid or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The message group that the publisher set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The trace of the published record (W3C `traceparent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Counts the waits of the record so far, by cause.
    #[serde(default, skip_serializing_if = "Hold::is_none")]
    pub hold: Hold,
    /// The part of the record that this message contains; `None` for the whole record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Values inherited from a delivery. Present if a delivery published the event: by forwarding
    /// it, as a reply, or as a dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onward: Option<Onward>,
}

/// The values that deliveries of an event inherit from the delivery that published it. The field
/// names are part of version 1 of the wire format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Onward {
    /// Number of replies and forwards between the original event and these deliveries.
    pub hops: u32,
    /// Remaining reply budget, shared by all deliveries of the event.
    pub replies_left: u32,
    /// The topics to which dead letters of these deliveries never go; see [`Delivery::via`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<TopicName>,
    /// True if the event is a dead letter. Then it must not be lost, even if no subscription
    /// matches it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dead_letter: bool,
}

/// A part of a published record that is too large to be processed at once: some of its elements,
/// for some subscriptions. The field names are part of version 1 of the wire format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The index of the part's first element in the published record.
    pub first: u32,
    /// The input format of the topic when the record was divided. A later change of the topic must
    /// not change the indexes of elements.
    pub input: Input,
    /// The range of names of the subscriptions for which this part is processed.
    #[serde(flatten)]
    pub names: NameRange,
}

impl Publication {
    /// Returns a delivery of the event with this index. It has no attempts yet.
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

    /// Returns the delivery of the event with this index to a subscription. It has no attempts yet
    /// and gets the whole reply budget.
    #[must_use]
    pub fn delivery_to(&self, index: u32, event: Event, to: &Subscription) -> Delivery {
        self.delivery(index, event, to.name.clone()).delayed(to.delay_ms)
    }

    /// Returns one delivery of the event with this index for each of these subscriptions. The reply
    /// budget is divided among the deliveries.
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

    /// Returns the publication with a share of its reply budget, which is divided by [`share`].
    #[must_use]
    pub fn with_share(mut self, parts: usize, place: usize) -> Self {
        if let Some(Onward { replies_left, .. }) = &mut self.onward {
            *replies_left = share(*replies_left, parts, place);
        }
        self
    }

    /// Returns a delivery that represents the whole record in a dead letter. If the publication is
    /// a part, the id of the delivery depends on everything that identifies the part.
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

/// Divides a number into `parts` shares and returns the share with index `place`. Shares differ by
/// at most one; the larger ones come first.
#[must_use]
pub fn share(number: u32, parts: usize, place: usize) -> u32 {
    let whole = usize::try_from(number).unwrap_or(usize::MAX);
    let share = whole / parts + usize::from(place < whole % parts);
    u32::try_from(share).unwrap_or(u32::MAX)
}

impl fmt::Display for Part {
    /// Prints the part for people. Example: `events from index 20, subscriptions from "b",
    /// subscriptions before "c"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "events from index {}", self.first)?;
        if !self.names.from.is_empty() {
            write!(f, ", subscriptions from {:?}", self.names.from)?;
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
        let said = "events from index 20, subscriptions from \"b\", subscriptions before \"c\"";
        assert_eq!(part.to_string(), said);
    }
}
