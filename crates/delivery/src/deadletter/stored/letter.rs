//! A stored dead letter: its fields, whatever the format of its blob.
//!
//! Separate because two sides need it: [`super::properties`] fills it from a blob, and
//! [`super::again`] creates the next delivery from it.

use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::delivery::replay::Replay;
use crate::delivery::{Addresses, FailingDestination};
use crate::event::Shape;
use crate::event::mapping::Mapped;
use crate::subscription::dead_letter_format::{Format, Layout};
use crate::subscription::name::SubscriptionName;
use crate::time::moment::rfc3339;

/// The failed delivery of a stored dead letter to its sink. Its JSON is part of the output of
/// tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredSink {
    /// Address of the sink.
    pub destination: Option<String>,
    /// The reason of the failure: its name if the blob has it, else its text.
    pub reason: String,
    /// Details beyond the name of the reason.
    pub detail: Option<String>,
    /// Number of attempts.
    pub attempts: u32,
    /// The recorded attempts, oldest first.
    pub history: Vec<StoredAttempt>,
    /// Number of attempts that the history omits.
    pub omitted: u32,
    /// Body of the last response: text, or `base64:` and the encoded bytes.
    pub last_response: Option<String>,
}

/// A dead letter as it was found in storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDeadLetter {
    /// The GUID in the key: the id of the delivery. The `deadletterid` in the blob is not read,
    /// because a blob can contain any value.
    pub id: Uuid,
    /// Key of the blob, including the prefix.
    pub key: String,
    /// The subscription, decoded from the key. The name may be a placeholder such as `_malformed`.
    pub subscription: SubscriptionName,
    /// The reason: its name if the blob has it, else its text.
    pub reason: String,
    /// Outcome of the last attempt; `None` without an attempt.
    pub outcome: Option<String>,
    /// Status of the last attempt, if there was a response.
    pub status: Option<u16>,
    /// Number of attempts.
    pub attempts: u32,
    /// Publication in milliseconds since 1970.
    pub published_ms: Option<u64>,
    /// Time in milliseconds at which the delivery became a dead letter.
    pub decided_ms: Option<u64>,
    /// Start of the last attempt in milliseconds.
    pub last_attempt_ms: Option<u64>,
    /// Address of the destination.
    pub destination: Option<String>,
    /// Body of the last response: text, or `base64:` and the encoded bytes.
    pub last_response: Option<String>,
    /// Headers of the last response.
    pub last_headers: Vec<(String, String)>,
    /// Last failure of the destination at other deliveries, while this one was deferred.
    pub failing: Option<FailingDestination>,
    /// The recorded attempts, oldest first.
    pub history: Vec<StoredAttempt>,
    /// Number of attempts that the history omits.
    pub omitted: u32,
    /// Details beyond the name of the reason.
    pub detail: Option<String>,
    /// The reason why it is not in the container of its subscription.
    pub sink_error: Option<String>,
    /// The failed delivery to the sink, if there was one.
    pub sink: Option<StoredSink>,
    /// Trace of the delivery.
    pub traceparent: Option<String>,
    /// The replay that created the delivery.
    pub replay: Option<Replay>,
    /// True if it is about a reply.
    pub is_reply: bool,
    /// Format of the blob.
    pub format: Format,
    /// Layout in the namespace format.
    pub layout: Layout,
    /// Mapped attributes of a custom event, if the blob shows them.
    pub mapped: Option<Mapped>,
    /// Addresses with their queries, if the format has them.
    pub addresses: Option<Addresses>,
    /// Sent headers, if the format has them.
    pub headers: Vec<(String, String)>,
    /// Schema of the event, if its text alone would be read in another schema.
    pub shape: Option<Shape>,
    /// The published event.
    pub event: String,
    /// The id that the event states, if it has one.
    pub event_id: Option<String>,
    /// The type that the event states, if it has one.
    pub event_type: Option<String>,
    /// Source of the event, or its Event Grid topic.
    pub source: Option<String>,
}

/// One attempt of a stored history. Its JSON is part of the output of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredAttempt {
    /// Start of the request in milliseconds; RFC 3339 in JSON.
    #[serde(rename = "at", serialize_with = "as_rfc3339")]
    pub at_ms: u64,
    /// Outcome of the attempt.
    pub outcome: String,
    /// Status of the response, if there was one.
    pub status: Option<u16>,
    /// Duration of the exchange.
    pub duration_ms: u64,
}

fn as_rfc3339<S: Serializer>(at_ms: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*at_ms))
}
