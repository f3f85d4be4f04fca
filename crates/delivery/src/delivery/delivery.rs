//! [`Delivery`]: one event for one subscription, from its first attempt to its end. This is the
//! state that travels in messages.
//!
//! A delivery contains everything that a later invocation needs, so there is no database. Its id is
//! derived from its subscription, the published record and the index in the record's array. A
//! record that is processed twice has the same deliveries, and their dead letters have the same
//! blobs.
//!
//! The type [`DeadLetter`] is here too, because it contains its delivery, and a delivery to a sink
//! contains its dead letter. The module `deadletter` derives a dead letter from a delivery.

use uuid::Uuid;

use super::addresses::Addresses;
use super::detail::truncated_detail;
use super::failing::FailingDestination;
use super::history::{Entry, History};
use super::hold::Hold;
use super::origin::{Origin, id_of};
use super::outcome::{Exchange, Outcome};
use super::reason::Reason;
use super::replay::Replay;
use super::returned::Returned;
use super::start;
use super::store::Store;
use super::word::Word;
use crate::event::Event;
use crate::event::mapping::{Mapped, Mapping, Published};
use crate::subscription::dead_letter_format::{ErrorData, Format, Layout, Response};
use crate::subscription::name::{SubscriptionName, TopicName};
use crate::subscription::{ReplyTo, Subscription};

/// Maximum number of bytes of the last response body that are stored.
pub const RESPONSE_KEPT_BYTES: usize = 4_096;
/// Maximum number of headers of the last response that are stored.
const HEADERS_KEPT: usize = 32;
/// Maximum size of these headers, as JSON.
const HEADERS_KEPT_BYTES: usize = 4_096;

/// The kind of recipient of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DeliveryTarget {
    /// The subscription's destination, for a published event.
    #[default]
    Destination,
    /// The subscription's recipient of replies, for a reply of its destination.
    Reply,
    /// The subscription's sink, for a dead letter.
    Sink(Box<DeadLetter>),
}

impl DeliveryTarget {
    /// Returns the topic to which a delivery with this target is published; `None` if it is sent to
    /// an address.
    #[must_use]
    pub fn topic(&self, subscription: &Subscription) -> Option<TopicName> {
        match (self, &subscription.reply) {
            (Self::Destination, _) => subscription.destination.topic(),
            // A reply that could not be published when it arrived, and is replayed.
            (Self::Reply, Some(ReplyTo::Topic(topic))) => Some(topic.clone()),
            (Self::Reply | Self::Sink(_), _) => None,
        }
    }

    /// Returns the value of the log field `leg`.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Destination => "event",
            Self::Reply => "reply",
            Self::Sink(_) => "sink",
        }
    }
}

/// The permission of a delivery to share a request with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Batching {
    /// The delivery may share a request.
    #[default]
    Allowed,
    /// A batch with this delivery was refused. It gets one attempt in a request of its own, even
    /// beyond the limit of its policy.
    RetryAlone,
    /// The delivery had that attempt, and is not batched again.
    Disabled,
}

/// One event for one subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The id, a UUIDv5; see [`id_of`].
    pub id: Uuid,
    /// The event with its original bytes.
    pub event: Event,
    /// The full name of the subscription.
    pub subscription: SubscriptionName,
    /// The published record.
    pub origin: Origin,
    /// Time of publication: SentTimestamp of the record in the events queue.
    pub published_ms: u64,
    /// The start. No attempt is made before it, and the time to live counts from it. It is the
    /// publication, or a later moment that the event or the subscription states.
    pub starts_ms: u64,
    /// Number of attempts made.
    pub attempts: u32,
    /// Time at which the next attempt is due; after the end, time at which the last one was due.
    pub due_ms: u64,
    /// The recipient of the delivery.
    pub target: DeliveryTarget,
    /// Length of the chain of replies that led to this delivery.
    pub hops: u32,
    /// Remaining reply budget; `None` for published events, where the topic's limit applies.
    pub replies_left: Option<u32>,
    /// The topics whose dead letters led to this delivery, and the topic of notices if the event is
    /// a reply to a notice. Dead letters of this delivery never go to one of them.
    pub via: Vec<TopicName>,
    /// The permission to share a request with others. An unknown word counts as disabled.
    pub batching: Word<Batching>,
    /// True if an attempt was abandoned because the destination is slow to respond. This happens
    /// once: all later attempts are made in the slow lane, where no other delivery waits for them.
    pub abandoned: bool,
    /// The waits since the last attempt.
    pub hold: Hold,
    /// The attempts so far.
    pub history: History,
    /// The beginning of the last response body; `None` if the last attempt got no response or
    /// succeeded, or if the subscription stores none.
    pub last_response: Option<Vec<u8>>,
    /// The headers of the last response, without credentials.
    pub last_headers: Vec<(String, String)>,
    /// Details of the last failed attempt that its outcome does not include.
    pub last_detail: Option<String>,
    /// The last failure of the destination, if it deferred this delivery; `None` after an attempt.
    pub failing: Option<FailingDestination>,
    /// The trace of the record (W3C `traceparent`). The event may contain another one.
    pub traceparent: Option<String>,
    /// The dead letter that this delivery replays; its end is then recorded.
    pub replay: Option<Replay>,
}

/// A dead letter: the delivery, the reason for its end, and how to store it. It contains everything
/// that its blob shows, so the function that writes it needs no subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The delivery at its end.
    pub delivery: Delivery,
    /// The reason for the end.
    pub reason: Word<Reason>,
    /// Details for people that the reason does not include, such as the position in a malformed
    /// event.
    pub detail: Option<String>,
    /// Time of the decision to end the delivery.
    pub decided_ms: u64,
    /// The dead letter is not written before this time.
    pub not_before_ms: u64,
    /// The storage of the blob.
    pub store: Store,
    /// The reason why the dead letter is not stored in the subscription's sink.
    pub sink_error: Option<String>,
    /// The failed delivery to the sink, if there was one.
    pub returned: Option<Returned>,
    /// The format of the blob.
    pub format: Format,
    /// The layout of the namespace format.
    pub layout: Layout,
    /// The encoding of the last response in the Knative format.
    pub error_data: ErrorData,
    /// Time after the decision in which storing is retried if storage refuses.
    pub keep_trying_for_ms: u64,
    /// The headers of the requests, without secret ones.
    pub headers: Vec<(String, String)>,
    /// The destination without query and credentials; for a reply, the recipient of replies.
    pub destination: Option<String>,
    /// The mapped attributes of a custom event, if the format needs them.
    pub mapped: Option<Mapped>,
    /// The addresses with their queries, if the format needs them.
    pub addresses: Option<Addresses>,
}

impl Delivery {
    /// Returns the mapped attributes of the event.
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

    /// Returns a delivery before its first attempt. It is due at publication, or at the moment that
    /// its event states.
    #[must_use]
    pub fn new(
        event: Event,
        subscription: SubscriptionName,
        origin: Origin,
        published_ms: u64,
    ) -> Self {
        let starts_ms = start::of_event(&event, published_ms);
        Self {
            id: id_of(&subscription, &origin),
            event,
            subscription,
            origin,
            published_ms,
            starts_ms,
            attempts: 0,
            // Not the current time, because a record may be processed twice.
            due_ms: starts_ms,
            target: DeliveryTarget::Destination,
            hops: 0,
            replies_left: None,
            via: Vec::new(),
            batching: Batching::Allowed.into(),
            abandoned: false,
            hold: Hold::default(),
            history: History::default(),
            last_response: None,
            last_headers: Vec::new(),
            last_detail: None,
            failing: None,
            traceparent: None,
            replay: None,
        }
    }

    /// Moves the start to this long after publication, unless it is later already. Call it only
    /// before the first attempt.
    #[must_use]
    pub fn delayed(self, delay_ms: u64) -> Self {
        let starts_ms = self.starts_ms.max(self.published_ms.saturating_add(delay_ms));
        Self { starts_ms, due_ms: starts_ms, ..self }
    }

    /// Records an exchange: one more attempt and one more entry. If it failed, it stores as much of
    /// the response as the subscription states.
    pub fn record(&mut self, exchange: &Exchange, subscription: &Subscription) {
        let policy = &subscription.retry;
        self.attempts = self.attempts.saturating_add(1);
        self.hold = Hold::default();
        self.history.push(Entry::new(
            exchange.started_ms,
            exchange.outcome(policy),
            exchange.status(),
            exchange.duration_ms,
        ));
        (self.failing, self.last_detail, self.last_response) = (None, None, None);
        self.last_headers = Vec::new();
        if exchange.outcome(policy) == Outcome::Success {
            return;
        }
        self.last_detail = exchange.detail.as_deref().map(truncated_detail);
        if subscription.dead_letter.response == Response::Beginning {
            let body = exchange.answer().map(|(_, body)| body);
            self.last_response =
                body.map(|body| body[..body.len().min(RESPONSE_KEPT_BYTES)].to_vec());
            self.last_headers = kept_headers(exchange);
        }
    }
}

/// Returns the first headers of a response, up to the limits.
fn kept_headers(exchange: &Exchange) -> Vec<(String, String)> {
    let headers = exchange.content.iter().flat_map(|content| &content.headers);
    let mut bytes = 0;
    let kept = headers.take(HEADERS_KEPT).take_while(|(name, value)| {
        // Counts the JSON form, because escaping makes headers longer.
        let json = serde_json::to_string(&(name, value)).unwrap_or_default();
        bytes += json.len();
        bytes <= HEADERS_KEPT_BYTES
    });
    kept.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
