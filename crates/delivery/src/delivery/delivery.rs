//! One event for one subscription, from its first attempt to its end: the state that travels.
//!
//! A [`DeadLetter`] holds its delivery, and a delivery to a sink holds its dead letter. So both types are here; a
//! dead letter is made of a delivery in a file of its own.
//!
//! A delivery carries everything that a later invocation needs, so no database is needed. Its id is
//! a function of its subscription, the published record and its index in the record's array: a
//! record that is processed twice yields the same deliveries, and their dead letters the same blob.

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

/// The most bytes of the last answer's body that are stored.
pub const RESPONSE_KEPT_BYTES: usize = 4_096;
/// The most headers of the last answer that are stored.
const HEADERS_KEPT: usize = 32;
/// The most bytes of these headers, as JSON.
const HEADERS_KEPT_BYTES: usize = 4_096;

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
    /// The topic on which a delivery of a subscription with this target is published; `None` if it is sent to an address.
    #[must_use]
    pub fn topic(&self, subscription: &Subscription) -> Option<TopicName> {
        match (self, &subscription.reply) {
            (Self::Destination, _) => subscription.destination.topic(),
            // A reply that could not be published when it came, and is replayed.
            (Self::Reply, Some(ReplyTo::Topic(topic))) => Some(topic.clone()),
            (Self::Reply | Self::Sink(_), _) => None,
        }
    }

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
    /// Before this time no attempt is made, and from it on the time to live counts: the publication, or a later moment that the event or
    /// its subscription states.
    pub starts_ms: u64,
    /// Attempts made.
    pub attempts: u32,
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
    /// How it was held since its last attempt.
    pub hold: Hold,
    /// Its attempts so far.
    pub history: History,
    /// The beginning of the last answer's body; `None` when the last attempt got no answer or succeeded,
    /// and where the subscription stores none.
    pub last_response: Option<Vec<u8>>,
    /// The headers of the last answer, without credentials.
    pub last_headers: Vec<(String, String)>,
    /// What the outcome of the last attempt does not say, if it failed.
    pub last_detail: Option<String>,
    /// What its destination did to others while this one was put off; `None` after an attempt.
    pub failing: Option<FailingDestination>,
    /// The trace of its record (W3C `traceparent`); the event may carry another one itself.
    pub traceparent: Option<String>,
    /// The dead letter that it replays, where its end is to be recorded.
    pub replay: Option<Replay>,
}

/// A dead letter: the delivery, why it ended, and how to store it. It holds everything that its blob contains,
/// so the function that writes it needs no subscription file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The delivery as it ended.
    pub delivery: Delivery,
    /// Why it ended.
    pub reason: Word<Reason>,
    /// What the reason's name does not say, for people: for example where the event is malformed.
    pub detail: Option<String>,
    /// When that was decided.
    pub decided_ms: u64,
    /// It is not written before this time.
    pub not_before_ms: u64,
    /// Where it is stored.
    pub store: Store,
    /// Why it is not stored in its subscription's sink.
    pub sink_error: Option<String>,
    /// The failed delivery to its sink, if there was one.
    pub returned: Option<Returned>,
    /// The format of its blob.
    pub format: Format,
    /// How the namespace format is laid out.
    pub layout: Layout,
    /// How the Knative format encodes the last answer.
    pub error_data: ErrorData,
    /// When storage refuses it, retry until this long after the decision.
    pub keep_trying_for_ms: u64,
    /// The headers that were sent, never the secret ones.
    pub headers: Vec<(String, String)>,
    /// The destination without query and credentials; of a reply the address for replies.
    pub destination: Option<String>,
    /// The mapped attributes of a custom event, where the format needs them.
    pub mapped: Option<Mapped>,
    /// The addresses with their queries, where the format needs them.
    pub addresses: Option<Addresses>,
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

    /// A delivery before its first attempt, due since publication or at the moment for which its event is published.
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
            // Not now: a record may be read twice.
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

    /// Moves its start to this long after its publication, or leaves a later one. Only before its first attempt.
    #[must_use]
    pub fn delayed(self, delay_ms: u64) -> Self {
        let starts_ms = self.starts_ms.max(self.published_ms.saturating_add(delay_ms));
        Self { starts_ms, due_ms: starts_ms, ..self }
    }

    /// Records an exchange: one more attempt, one more entry, and as much of the answer to a failed one
    /// as the subscription stores.
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

/// The first headers of an answer, up to the limits.
fn kept_headers(exchange: &Exchange) -> Vec<(String, String)> {
    let headers = exchange.content.iter().flat_map(|content| &content.headers);
    let mut bytes = 0;
    let kept = headers.take(HEADERS_KEPT).take_while(|(name, value)| {
        // What is escaped counts more.
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
