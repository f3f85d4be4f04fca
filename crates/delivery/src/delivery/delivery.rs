//! One event for one subscription, from its first attempt to its end: the state that travels.
//!
//! A delivery carries everything that a later invocation needs, so no database is needed. Its id is
//! a function of its subscription, the published record and its index in the record's array: a
//! record that is processed twice yields the same deliveries, and their dead letters the same blob.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha1::{Digest as _, Sha1};
use uuid::{Builder, Uuid, uuid};

use crate::delivery::outcome::{Exchange, Outcome};
use crate::delivery::replay::Replay;
use crate::delivery::{DeadLetter, Hold, Word};
use crate::event::Event;
use crate::event::mapping::{Mapped, Mapping, Published};
use crate::subscription::Subscription;
use crate::subscription::dead_letter_format::Response;
use crate::subscription::name::{SubscriptionName, TopicName};

/// The namespace of all ids of deliveries (UUIDv5).
pub const DELIVERY_NAMESPACE: Uuid = uuid!("6f1c2a9e-5d0b-5c6e-9a53-1f0c6c8d7b42");

/// How many of the first attempts a history keeps.
pub const HISTORY_FIRST: usize = 5;
/// How many of the last attempts a history keeps.
pub const HISTORY_LAST: usize = 20;
/// The most bytes of the last answer's body that are stored.
pub const RESPONSE_KEPT_BYTES: usize = 1_024;

/// The published record and the event's index in it.
///
/// Its fields are those of version 1 of the wire format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "struct OriginV1")]
pub struct Origin {
    /// The SQS message id of the published record.
    pub message: String,
    /// The event's index in the record's array; 0 for a single event.
    pub index: u32,
}

/// One entry of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Start of the request.
    pub at_ms: u64,
    /// What happened. A word that is not known counts as a failed attempt.
    pub outcome: Word<Outcome>,
    /// The status, where there was an answer.
    pub status: Option<u16>,
    /// How long the exchange took.
    pub duration_ms: u64,
    /// What a newer version wrote besides. Kept, because what happened does not change.
    pub more: BTreeMap<String, Value>,
}

impl Entry {
    /// An entry with nothing besides.
    #[must_use]
    pub fn new(at_ms: u64, outcome: Outcome, status: Option<u16>, duration_ms: u64) -> Self {
        Self { at_ms, outcome: outcome.into(), status, duration_ms, more: BTreeMap::new() }
    }
}

/// The attempts of a delivery: the first few and the last few, and how many between were left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    first: Vec<Entry>,
    omitted: u32,
    last: VecDeque<Entry>,
}

impl History {
    /// A history from its stored entries, as read from a message.
    #[must_use]
    pub fn restore(entries: Vec<Entry>, omitted: u32) -> Self {
        let mut history = Self::default();
        for entry in entries {
            history.push(entry);
        }
        // Added: `push` has counted what does not fit, too.
        history.omitted = history.omitted.saturating_add(omitted);
        history
    }

    /// Adds the newest entry.
    pub fn push(&mut self, entry: Entry) {
        if self.first.len() < HISTORY_FIRST {
            self.first.push(entry);
            return;
        }
        self.last.push_back(entry);
        if self.last.len() > HISTORY_LAST {
            self.last.pop_front();
            self.omitted = self.omitted.saturating_add(1);
        }
    }

    /// The first attempts.
    #[must_use]
    pub fn first(&self) -> &[Entry] {
        &self.first
    }

    /// How many entries between the first and the last were left out.
    #[must_use]
    pub fn omitted(&self) -> u32 {
        self.omitted
    }

    /// The last attempts, after those left out.
    pub fn last(&self) -> impl Iterator<Item = &Entry> {
        self.last.iter()
    }

    /// The newest entry.
    #[must_use]
    pub fn newest(&self) -> Option<&Entry> {
        self.last.back().or_else(|| self.first.last())
    }

    /// The newest attempt; entries of probation are not attempts.
    #[must_use]
    pub fn newest_attempt(&self) -> Option<&Entry> {
        let newest_first = self.last.iter().rev().chain(self.first.iter().rev());
        newest_first.into_iter().find(|entry| entry.outcome != Outcome::Probation)
    }
}

/// The target of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DeliveryTarget {
    /// A published event, to the subscription's destination.
    #[default]
    Destination,
    /// A subscriber's reply, to the subscription's reply address.
    Reply,
    /// A dead letter, to the subscription's sink.
    Sink(Box<DeadLetter>),
}

impl DeliveryTarget {
    /// The value of the log field `leg`.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Destination => "event",
            Self::Reply => "reply",
            Self::Sink(_) => "sink",
        }
    }
}

/// Whether a delivery may share a request with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Batching {
    /// Allowed.
    #[default]
    Allowed,
    /// A batch with it was refused: it gets one attempt in a request of its own, whatever its
    /// policy's limit is.
    RetryAlone,
    /// It had that attempt, and is not batched again.
    Disabled,
}

/// One event for one subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its id, a UUIDv5.
    pub id: Uuid,
    /// The event, untouched.
    pub event: Event,
    /// Its subscription.
    pub subscription: SubscriptionName,
    /// The published record.
    pub origin: Origin,
    /// When the record was published: its SentTimestamp in the events queue.
    pub published_ms: u64,
    /// Attempts made.
    pub attempts: u32,
    /// Start of the first attempt.
    pub first_ms: Option<u64>,
    /// When the next attempt is due; at the end, when the last one was.
    pub due_ms: u64,
    /// Its target.
    pub target: DeliveryTarget,
    /// The length of the chain of replies that led to it.
    pub hops: u32,
    /// How many deliveries may still follow from it by replies; `None` for a published event, whose topic
    /// says it.
    pub replies_left: Option<u32>,
    /// The topics whose dead letters led to it, and that of notices if one of its events was answered
    /// with it; dead letters never return to one of them.
    pub via: Vec<TopicName>,
    /// Whether it may share a request with others; not if the word is not known.
    pub batching: Word<Batching>,
    /// Whether an attempt of it was abandoned because its destination was slow to answer. That happens
    /// once: all later attempts are made where nobody else waits for them.
    pub abandoned: bool,
    /// How long it was held by us: its subscription was paused, or its destination disabled. That does not
    /// count towards its time to live.
    pub held_ms: u64,
    /// How it was held since its last attempt.
    pub hold: Hold,
    /// Its attempts so far.
    pub history: History,
    /// The beginning of the last answer's body; `None` when the last attempt got no answer or succeeded,
    /// and where the subscription stores none.
    pub last_response: Option<Vec<u8>>,
    /// The trace of its record (W3C `traceparent`); the event may carry another one itself.
    pub traceparent: Option<String>,
    /// The dead letter that it replays, where its end is to be recorded.
    pub replay: Option<Replay>,
}

impl Delivery {
    /// The mapped attributes of its event.
    #[must_use]
    pub fn mapped(&self, mapping: &Mapping) -> Mapped {
        let Self { event, origin, subscription, published_ms, .. } = self;
        let published = Published {
            message: &origin.message,
            index: origin.index,
            topic: &subscription.topic,
            published_ms: *published_ms,
        };
        Mapped::of(event, mapping, published)
    }

    /// A delivery before its first attempt, due since publication.
    #[must_use]
    pub fn new(
        event: Event,
        subscription: SubscriptionName,
        origin: Origin,
        published_ms: u64,
    ) -> Self {
        Self {
            id: id_of(&subscription, &origin),
            event,
            subscription,
            origin,
            published_ms,
            attempts: 0,
            first_ms: None,
            // Not now: the key of a dead letter depends on it, and a record may be read twice.
            due_ms: published_ms,
            target: DeliveryTarget::Destination,
            hops: 0,
            replies_left: None,
            via: Vec::new(),
            batching: Batching::Allowed.into(),
            abandoned: false,
            held_ms: 0,
            hold: Hold::default(),
            history: History::default(),
            last_response: None,
            traceparent: None,
            replay: None,
        }
    }

    /// Defers it until this time, because its destination is on probation. This is not an attempt;
    /// repeated deferrals leave one entry.
    pub fn defer(&mut self, now_ms: u64, until_ms: u64) {
        self.due_ms = until_ms;
        self.hold.slots = 0;
        // In a long outage they would push the attempts out of the history.
        if self.history.newest().is_none_or(|entry| entry.outcome != Outcome::Probation) {
            self.history.push(Entry::new(now_ms, Outcome::Probation, None, 0));
        }
    }

    /// Holds it for so long: it is due as before, and will be as old as now. This is not an attempt.
    pub fn hold_for(&mut self, wait_ms: u64) {
        self.held_ms = self.held_ms.saturating_add(wait_ms);
        // It comes too late for the slot that it had.
        self.hold.slots = 0;
    }

    /// Lets it wait for its slot of its destination's rate. This is not an attempt.
    pub fn wait_for_slot(&mut self, slot_ms: u64) {
        self.due_ms = slot_ms;
        self.hold.slots = self.hold.slots.saturating_add(1);
    }

    /// Lets it wait until a permit of its destination will be free: then it is its turn. This is not an
    /// attempt.
    pub fn wait_for_permit(&mut self, until_ms: u64) {
        self.due_ms = until_ms;
        self.hold.permits = self.hold.permits.saturating_add(1);
    }

    /// Records an exchange: one more attempt, one more entry, and as much of the answer to a failed one
    /// as the subscription stores.
    pub fn record(&mut self, exchange: &Exchange, subscription: &Subscription) {
        let policy = &subscription.retry;
        self.attempts = self.attempts.saturating_add(1);
        self.hold = Hold::default();
        // Never replaced: the moments of a schedule count from the first attempt.
        self.first_ms.get_or_insert(exchange.started_ms);
        self.history.push(Entry::new(
            exchange.started_ms,
            exchange.outcome(policy),
            exchange.status(),
            exchange.duration_ms,
        ));
        let body = exchange.answer().map(|(_, body)| body);
        let kept = body.filter(|_| {
            exchange.outcome(policy) != Outcome::Success
                && subscription.dead_letter.response == Response::Beginning
        });
        self.last_response = kept.map(|body| body[..body.len().min(RESPONSE_KEPT_BYTES)].to_vec());
    }
}

/// The id of a delivery: UUIDv5 of subscription, published record and index, separated by line
/// feeds (which no name contains).
#[must_use]
pub fn id_of(subscription: &SubscriptionName, origin: &Origin) -> Uuid {
    // Not formatted, and not by `Uuid::new_v5`, which computes the same without the processor's
    // instructions for it: this runs for every event.
    let SubscriptionName { topic: TopicName { namespace, topic }, name } = subscription;
    let index = origin.index.to_string();
    let parts = [namespace, "/", topic, "/", name, "\n", &origin.message, "\n", &index];
    let of_namespace = Sha1::new_with_prefix(DELIVERY_NAMESPACE);
    let hash = parts.into_iter().fold(of_namespace, Sha1::chain_update).finalize();
    let first = std::array::from_fn(|index| hash[index]);
    Builder::from_sha1_bytes(first).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_a_name_based_uuid() {
        let subscription: SubscriptionName = "shop/orders/billing".parse().unwrap();
        for (message, index, text) in [
            ("m1", 0, "shop/orders/billing\nm1\n0".to_owned()),
            (
                &"m".repeat(200),
                u32::MAX,
                format!("shop/orders/billing\n{}\n{}", "m".repeat(200), u32::MAX),
            ),
        ] {
            let origin = Origin { message: message.to_owned(), index };
            let expected = Uuid::new_v5(&DELIVERY_NAMESPACE, text.as_bytes());
            assert_eq!(id_of(&subscription, &origin), expected);
        }
    }

    fn entry(at_ms: u64) -> Entry {
        Entry::new(at_ms, Outcome::Busy, Some(503), 1)
    }

    #[test]
    fn a_history_keeps_its_first_and_last_entries_and_counts_the_rest() {
        let mut history = History::default();
        for at_ms in 0..1_000 {
            history.push(entry(at_ms));
        }
        assert_eq!(
            history.first().iter().map(|entry| entry.at_ms).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4]
        );
        assert_eq!(history.omitted(), 975);
        assert_eq!(
            history.last().map(|entry| entry.at_ms).collect::<Vec<_>>(),
            (980..1_000).collect::<Vec<_>>()
        );
        let kept: Vec<Entry> = history.first().iter().chain(history.last()).cloned().collect();
        assert_eq!(History::restore(kept, history.omitted()), history);
    }

    #[test]
    fn the_id_depends_on_subscription_record_and_place_alone() {
        let event = Event::recall(&"{}".into(), crate::event::Input::Auto);
        let delivery = |name: &str, message: &str, index| {
            let origin = Origin { message: message.to_owned(), index };
            Delivery::new(event.clone(), name.parse().unwrap(), origin, 7).id
        };
        let one = delivery("a/b/c", "m", 0);
        assert_eq!(one, delivery("a/b/c", "m", 0));
        assert_eq!(one.get_version_num(), 5);
        for other in
            [delivery("a/b/d", "m", 0), delivery("a/b/c", "n", 0), delivery("a/b/c", "m", 1)]
        {
            assert_ne!(one, other);
        }
    }
}
