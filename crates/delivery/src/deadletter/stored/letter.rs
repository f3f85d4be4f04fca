//! A dead letter as it was found in storage: its fields, whatever the format of its blob.
//!
//! Separate because two sides need it. [`super::properties`] fills it from a blob, and [`super::again`] makes the
//! next delivery of it.

use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::delivery::replay::Replay;
use crate::delivery::{Addresses, FailingDestination};
use crate::event::Shape;
use crate::event::mapping::Mapped;
use crate::subscription::dead_letter_format::{Format, Layout};
use crate::subscription::name::SubscriptionName;
use crate::time::moment::rfc3339;

/// The failed delivery of a stored dead letter to its sink. Its JSON is the tools' one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredSink {
    /// Where it was to go.
    pub destination: Option<String>,
    /// Why it failed: the name of the reason where the blob has it, else its text.
    pub reason: String,
    /// What the reason's name does not say.
    pub detail: Option<String>,
    /// Attempts made.
    pub attempts: u32,
    /// Its attempts, oldest first, without those left out.
    pub history: Vec<StoredAttempt>,
    /// How many attempts were left out of the history.
    pub omitted: u32,
    /// The last answer's body: text, or `base64:` and the encoded bytes.
    pub last_response: Option<String>,
}

/// A dead letter as it was found in storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDeadLetter {
    /// The GUID of its key: the id of its delivery. The `deadletterid` in its blob is not read, since a blob can say anything.
    pub id: Uuid,
    /// The key of its blob, prefix included.
    pub key: String,
    /// Its subscription: the key's segments, decoded. The name may be a placeholder such as
    /// `_malformed`.
    pub subscription: SubscriptionName,
    /// Why it ended: the name of the reason where the blob has it, else its text.
    pub reason: String,
    /// The outcome of the last attempt; `None` without one.
    pub outcome: Option<String>,
    /// The status of the last attempt, where there was an answer.
    pub status: Option<u16>,
    /// Attempts made.
    pub attempts: u32,
    /// When it was published.
    pub published_ms: Option<u64>,
    /// When it was decided that the event becomes a dead letter.
    pub decided_ms: Option<u64>,
    /// Start of the last attempt.
    pub last_attempt_ms: Option<u64>,
    /// Where it was to go.
    pub destination: Option<String>,
    /// The last answer's body: text, or `base64:` and the encoded bytes.
    pub last_response: Option<String>,
    /// The headers of the last answer.
    pub last_headers: Vec<(String, String)>,
    /// What its destination did to others while it was put off.
    pub failing: Option<FailingDestination>,
    /// Its attempts, oldest first, without those left out.
    pub history: Vec<StoredAttempt>,
    /// How many attempts were left out of the history.
    pub omitted: u32,
    /// What the reason's name does not say.
    pub detail: Option<String>,
    /// Why it is not in the container of its subscription.
    pub sink_error: Option<String>,
    /// The failed delivery to its sink.
    pub sink: Option<StoredSink>,
    /// The trace it belongs to.
    pub traceparent: Option<String>,
    /// What it was a replay of.
    pub replay: Option<Replay>,
    /// Whether it is about a reply of its subscription's subscriber.
    pub is_reply: bool,
    /// The format of its blob.
    pub format: Format,
    /// The layout of the namespace format.
    pub layout: Layout,
    /// The mapped attributes of a custom event, where the blob shows them.
    pub mapped: Option<Mapped>,
    /// The addresses with their queries, where the format shows them.
    pub addresses: Option<Addresses>,
    /// The headers that were sent, where the format keeps them.
    pub headers: Vec<(String, String)>,
    /// The schema of the event, where its text alone would be read as one of another.
    pub shape: Option<Shape>,
    /// The event as published.
    pub event: String,
    /// The event's id.
    pub event_id: Option<String>,
    /// The event's type.
    pub event_type: Option<String>,
    /// The event's source, or its Event Grid topic.
    pub source: Option<String>,
}

/// One attempt of a stored history. Its JSON is the tools' one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredAttempt {
    /// Start of the request.
    #[serde(rename = "at", serialize_with = "as_rfc3339")]
    pub at_ms: u64,
    /// What happened.
    pub outcome: String,
    /// The status, where there was an answer.
    pub status: Option<u16>,
    /// How long the exchange took.
    pub duration_ms: u64,
}

fn as_rfc3339<S: Serializer>(at_ms: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*at_ms))
}
