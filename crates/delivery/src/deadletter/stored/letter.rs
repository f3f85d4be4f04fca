//! A stored dead letter: its fields, whatever the format of its blob.
//!
//! This module is separate because two modules use the type: [`super::properties`] creates it from
//! a blob, and [`super::again`] creates the next delivery from it.

use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::delivery::replay::Replay;
use crate::delivery::{Addresses, FailingDestination};
use crate::event::Shape;
use crate::event::mapping::Mapped;
use crate::subscription::dead_letter_format::{Format, Layout};
use crate::subscription::name::SubscriptionName;
use crate::time::moment::rfc3339;

/// The failed delivery of a stored dead letter to its sink. Commands print it as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredSink {
    /// Address of the sink, as the blob contains it.
    pub destination: Option<String>,
    /// The reason why the delivery to the sink failed: its name if the blob contains it, otherwise
    /// its text.
    pub reason: String,
    /// Human-readable details beyond the name of the reason.
    pub detail: Option<String>,
    /// Number of attempts at the sink.
    pub attempts: u32,
    /// The recorded attempts at the sink, oldest first.
    pub history: Vec<StoredAttempt>,
    /// Number of attempts that the history omits.
    pub omitted: u32,
    /// Body of the sink's last response: text, or `base64:` and the encoded bytes.
    pub last_response: Option<String>,
}

/// A dead letter as it was found in storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDeadLetter {
    /// The GUID in the key: the id of the delivery. The `deadletterid` in the blob is not read,
    /// because a blob can contain any value.
    pub id: Uuid,
    /// Key of the blob, including the prefix of the container.
    pub key: String,
    /// The subscription, decoded from the key. The name may be a placeholder such as `_malformed`.
    pub subscription: SubscriptionName,
    /// The reason why the delivery failed: its name if the blob contains it, otherwise its text.
    pub reason: String,
    /// Name of the last attempt's outcome, for example `Busy`; `None` without an attempt.
    pub outcome: Option<String>,
    /// HTTP status of the last attempt; `None` without a response.
    pub status: Option<u16>,
    /// Number of attempts, excluding attempts at the sink.
    pub attempts: u32,
    /// Time of publication in milliseconds since 1970.
    pub published_ms: Option<u64>,
    /// Time in milliseconds since 1970 at which the delivery became a dead letter.
    pub decided_ms: Option<u64>,
    /// Start of the last attempt in milliseconds since 1970.
    pub last_attempt_ms: Option<u64>,
    /// Address of the destination, as the blob contains it.
    pub destination: Option<String>,
    /// Body of the destination's last response: text, or `base64:` and the encoded bytes.
    pub last_response: Option<String>,
    /// Headers of the destination's last response.
    pub last_headers: Vec<(String, String)>,
    /// Last failure of the destination, found by other deliveries while this delivery was deferred.
    pub failing: Option<FailingDestination>,
    /// The recorded attempts, oldest first.
    pub history: Vec<StoredAttempt>,
    /// Number of attempts that the history omits.
    pub omitted: u32,
    /// Human-readable details beyond the name of the reason.
    pub detail: Option<String>,
    /// The reason why the dead letter is not in the container of its subscription.
    pub sink_error: Option<String>,
    /// The failed delivery to the sink; `None` if the dead letter was not sent to a sink.
    pub sink: Option<StoredSink>,
    /// Trace of the delivery (W3C `traceparent`).
    pub traceparent: Option<String>,
    /// The replay that created the failed delivery; `None` if it was not a replay.
    pub replay: Option<Replay>,
    /// True if the dead letter is about a reply of the destination.
    pub is_reply: bool,
    /// Format in which the blob was written.
    pub format: Format,
    /// Layout of the blob in the namespace format.
    pub layout: Layout,
    /// Mapped attributes of a custom event; `None` if the blob does not contain them.
    pub mapped: Option<Mapped>,
    /// Addresses of the delivery, including their queries; `None` if the format is not Knative's.
    pub addresses: Option<Addresses>,
    /// Headers of the requests, if the format contains them.
    pub headers: Vec<(String, String)>,
    /// Schema of the event; `None` if the text of the event alone determines it.
    pub shape: Option<Shape>,
    /// Text of the published event. It is not validated.
    pub event: String,
    /// The value of the event's `id`; `None` if the event has none.
    pub event_id: Option<String>,
    /// The value of the event's `type` or `eventType`; `None` if the event has none.
    pub event_type: Option<String>,
    /// The value of the event's `source`, or of `topic` in the Event Grid schema; `None` if the
    /// event has none.
    pub source: Option<String>,
}

/// One attempt of a stored history. Commands print it as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredAttempt {
    /// Start of the request in milliseconds since 1970; printed in RFC 3339.
    #[serde(rename = "at", serialize_with = "as_rfc3339")]
    pub at_ms: u64,
    /// Name of the attempt's outcome, for example `Busy`.
    pub outcome: String,
    /// HTTP status; `None` without a response.
    pub status: Option<u16>,
    /// Duration of the attempt in milliseconds.
    pub duration_ms: u64,
}

fn as_rfc3339<S: Serializer>(at_ms: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*at_ms))
}
