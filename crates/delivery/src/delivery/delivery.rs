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

/// Maximum number of bytes of a failed attempt's response body that a delivery stores.
pub const RESPONSE_KEPT_BYTES: usize = 4_096;
/// Maximum number of response headers that a delivery stores.
const HEADERS_KEPT: usize = 32;
/// Maximum size in bytes of the stored response headers, as JSON.
const HEADERS_KEPT_BYTES: usize = 4_096;

/// The type of recipient to which a delivery is sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DeliveryTarget {
    /// The subscription's destination, for a published event.
    #[default]
    Destination,
    /// The subscription's reply address or topic, for a reply of the destination.
    Reply,
    /// The subscription's sink, for a dead letter of the subscription.
    Sink(Box<DeadLetter>),
}

impl DeliveryTarget {
    /// Returns the topic to which a delivery with this target is published; `None` if the target is
    /// an address.
    #[must_use]
    pub fn topic(&self, subscription: &Subscription) -> Option<TopicName> {
        match (self, &subscription.reply) {
            (Self::Destination, _) => subscription.destination.topic(),
            // This is a reply that could not be published when it arrived, and is replayed now.
            (Self::Reply, Some(ReplyTo::Topic(topic))) => Some(topic.clone()),
            (Self::Reply | Self::Sink(_), _) => None,
        }
    }

    /// Returns the value of the log field `leg` for this target.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Destination => "event",
            Self::Reply => "reply",
            Self::Sink(_) => "sink",
        }
    }
}

/// Permission for a delivery to share a request with other deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Batching {
    /// The delivery may share a request with others.
    #[default]
    Allowed,
    /// A batch that contained the delivery was refused. The delivery gets one attempt in a request
    /// of its own, even beyond the attempt limit of its policy.
    RetryAlone,
    /// The delivery already had an attempt of its own after a refused batch. It is not batched
    /// again.
    Disabled,
}

/// One event for one subscription, with everything that a later attempt needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The id of the delivery, which is a UUIDv5; see [`id_of`].
    pub id: Uuid,
    /// The published event with its original bytes.
    pub event: Event,
    /// The full name of the subscription for which the event is delivered.
    pub subscription: SubscriptionName,
    /// The published record that contains the event, and the index of the event in it.
    pub origin: Origin,
    /// Time of publication: SentTimestamp of the record in the events queue.
    pub published_ms: u64,
    /// The start of the delivery in milliseconds since 1970. No attempt is made before the start,
    /// and the time to live counts from it. It is the time of publication, or a later time that the
    /// event or the subscription states.
    pub starts_ms: u64,
    /// Number of attempts that were made.
    pub attempts: u32,
    /// Time at which the next attempt is due. After the end of the delivery, it is the time at
    /// which the last attempt was due.
    pub due_ms: u64,
    /// The recipient of the requests: the destination, the reply address or the sink.
    pub target: DeliveryTarget,
    /// Number of replies and forwards between the original event and this delivery.
    pub hops: u32,
    /// Remaining reply budget; `None` for published events, where the topic's limit applies.
    pub replies_left: Option<u32>,
    /// The topics whose dead letters led to this delivery, and the topic of notices if the event is
    /// a reply to a notice. Dead letters of this delivery are never published to any of these
    /// topics.
    pub via: Vec<TopicName>,
    /// The permission to share a request with other deliveries. An unknown value counts as
    /// disabled.
    pub batching: Word<Batching>,
    /// True if an attempt was abandoned because the destination is slow to respond. At most one
    /// attempt of a delivery is abandoned. All later attempts are made in the slow lane, where no
    /// other delivery waits for them.
    pub abandoned: bool,
    /// Counts the waits since the last attempt, by cause.
    pub hold: Hold,
    /// The attempts so far: the first and the last ones.
    pub history: History,
    /// The beginning of the last response body; `None` if the last attempt got no response or
    /// succeeded, or if the subscription stores none.
    pub last_response: Option<Vec<u8>>,
    /// The headers of the last response, without credentials. Empty if the last attempt got no
    /// response or succeeded, or if the subscription stores none.
    pub last_headers: Vec<(String, String)>,
    /// Human-readable details about the last failed attempt, beyond its outcome.
    pub last_detail: Option<String>,
    /// The last failure of the destination, if it caused a deferral of this delivery; `None` after
    /// an attempt.
    pub failing: Option<FailingDestination>,
    /// The trace of the record (W3C `traceparent`). The event itself may belong to a different
    /// trace.
    pub traceparent: Option<String>,
    /// The dead letter that this delivery replays. If it is present, the result of the delivery is
    /// recorded for the replay job.
    pub replay: Option<Replay>,
}

/// A failed delivery, the reason for its failure, and how to store both. It contains everything
/// that its blob shows, so the function that writes the blob needs no subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The delivery after its last attempt.
    pub delivery: Delivery,
    /// The reason why the delivery failed.
    pub reason: Word<Reason>,
    /// Human-readable details that the reason does not include, such as the position in a malformed
    /// event.
    pub detail: Option<String>,
    /// Time of the decision to end the delivery, in milliseconds since 1970.
    pub decided_ms: u64,
    /// Earliest time at which the dead letter may be written, in milliseconds since 1970.
    pub not_before_ms: u64,
    /// The container or queue in which the dead letter is stored.
    pub store: Store,
    /// The reason why the dead letter is not stored in the subscription's sink.
    pub sink_error: Option<String>,
    /// The failed delivery to the sink; `None` if the dead letter was not sent to a sink.
    pub returned: Option<Returned>,
    /// The format in which the blob shows the dead letter.
    pub format: Format,
    /// The layout of the blob, if its format is the namespace format.
    pub layout: Layout,
    /// The encoding of the last response in the Knative format.
    pub error_data: ErrorData,
    /// Time after `decided_ms` during which a failed write of the dead letter is retried.
    pub keep_trying_for_ms: u64,
    /// The headers of the delivery's requests. Secret headers are omitted.
    pub headers: Vec<(String, String)>,
    /// The URL of the destination without query and credentials. For a reply, it is the URL of the
    /// reply address.
    pub destination: Option<String>,
    /// The mapped attributes of a custom event, if the format needs them.
    pub mapped: Option<Mapped>,
    /// The addresses of the subscriber and of the failed request, including their queries. `None`
    /// if the format does not need them.
    pub addresses: Option<Addresses>,
}

impl Delivery {
    /// Applies the mapping of a topic to the event.
    #[must_use]
    pub fn mapped(&self, mapping: &Mapping) -> Mapped {
        let Self { event, origin, subscription, published_ms, .. } = self;
        let published = Published {
            message: &origin.message,
            index: origin.index,
            topic: &subscription.topic,
            published_ms: *published_ms,
        };
        Mapped::new(event, mapping, published)
    }

    /// Returns a delivery that has not been attempted yet. It is due at its publication, or at the
    /// later time in the event's `deliverat`.
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
            // The current time must not be used, because it would differ if the record is processed
            // twice.
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

    /// Delays the start until `delay_ms` after publication, unless the start is later already. Call
    /// this function only before the first attempt.
    #[must_use]
    pub fn delayed(self, delay_ms: u64) -> Self {
        let starts_ms = self.starts_ms.max(self.published_ms.saturating_add(delay_ms));
        Self { starts_ms, due_ms: starts_ms, ..self }
    }

    /// Records an exchange as one more attempt and one more history entry. After a failure, it
    /// stores as much of the response as the subscription allows.
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

/// Returns the first headers of a response, as many as fit into the limits.
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
        let id = delivery("a/b/c", "m", 0);
        assert_eq!(id, delivery("a/b/c", "m", 0));
        assert_eq!(id.get_version_num(), 5);
        for other in
            [delivery("a/b/d", "m", 0), delivery("a/b/c", "n", 0), delivery("a/b/c", "m", 1)]
        {
            assert_ne!(id, other);
        }
    }
}
