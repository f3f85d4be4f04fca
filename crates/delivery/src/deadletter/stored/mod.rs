//! Reads dead letters back from the keys and bytes of their blobs.
//!
//! Separate from [`crate::deadletter`], which writes, because the reader accepts more than is
//! written: every format and both layouts, the spellings of other versions (`deadLetterProperties`,
//! `brokerProperties`), blobs without our own fields, objects and arrays of them.
//!
//! Promises: `read(key(letter), bytes(letter))` returns the dead letter's id, reason, attempts and
//! event, which is the published text to the byte. Of a blob that an older version or somebody else wrote, it
//! has the published members in their own spelling.
//!
//! Does not validate the event: a malformed one is read like any other, and what a blob does not
//! contain is `None`.

mod again;
mod element;
mod properties;

use percent_encoding::percent_decode_str;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use uuid::Uuid;

pub use self::again::{FailedAt, Failure};
use self::element::Element;
use crate::deadletter::LASTMILE;
use crate::delivery::Addresses;
use crate::delivery::replay::Replay;
use crate::event::mapping::Mapped;
use crate::event::{Members, Shape};
use crate::subscription::dead_letter_format::{Format, Layout};
use crate::subscription::name::{SubscriptionName, TopicName};
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
    /// Its `deadletterid`, else the GUID of the key.
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
    /// Start of the last attempt.
    pub last_attempt_ms: Option<u64>,
    /// Where it was to go.
    pub destination: Option<String>,
    /// The last answer's body: text, or `base64:` and the encoded bytes.
    pub last_response: Option<String>,
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

/// Every dead letter of a blob. `prefix` is the container's.
///
/// # Errors
/// What is wrong with the key or the bytes, when they are not those of a dead letter's blob.
pub fn read(key: &str, prefix: &str, bytes: &[u8]) -> Result<Vec<StoredDeadLetter>, String> {
    let key_parts = KeyParts::read(key, prefix)?;
    let text = std::str::from_utf8(bytes).map_err(|error| format!("{key}: not text: {error}"))?;
    let elements = elements(text).map_err(|error| format!("{key}: not JSON: {error}"))?;
    elements
        .into_iter()
        .map(|element| of_element(element, &key_parts).map_err(|why| format!("{key}: {why}")))
        .collect()
}

fn of_element(text: &str, key_parts: &KeyParts<'_>) -> Result<StoredDeadLetter, String> {
    let members = Members::parse(text).map_err(|error| error.to_string())?;
    let own = members.text(LASTMILE).unwrap_or_default();
    Element::of(&members, &own)?.letter(key_parts)
}

/// The event of one dead letter of a blob.
pub(super) fn event_of(text: &str) -> Result<String, String> {
    let members = Members::parse(text).map_err(|error| error.to_string())?;
    let own = members.text(LASTMILE).unwrap_or_default();
    Ok(Element::of(&members, &own)?.event())
}

/// The dead letters of a blob: an array of them, or one.
fn elements(text: &str) -> Result<Vec<&str>, serde_json::Error> {
    if text.trim_start().starts_with('[') {
        let elements: Vec<&RawValue> = serde_json::from_str(text)?;
        return Ok(elements.into_iter().map(RawValue::get).collect());
    }
    serde_json::from_str::<&RawValue>(text).map(|one| vec![one.get()])
}

/// The parts of a key.
struct KeyParts<'a> {
    key: &'a str,
    subscription: SubscriptionName,
    /// The GUID of the blob; with a single dead letter, its id.
    guid: Option<Uuid>,
}

impl<'a> KeyParts<'a> {
    /// Reads `<prefix>/<namespace>/<topic>/<subscription>/<yyyy>/<M>/<d>/<H>/<guid>.json`.
    fn read(key: &'a str, prefix: &str) -> Result<Self, String> {
        let invalid = |why: &str| format!("{key}: not the key of a dead letter: {why}");
        let prefix = prefix.trim_matches('/');
        let slash = if prefix.is_empty() { "" } else { "/" };
        let path = key.strip_prefix(prefix).and_then(|path| path.strip_prefix(slash));
        let path = path.ok_or_else(|| invalid(&format!("it does not begin with {prefix}/")))?;
        let segments: Vec<&str> = path.split('/').collect();
        let [namespace, topic, name, _, _, _, _, file] = segments[..] else {
            return Err(invalid(
                "namespace/topic/subscription/year/month/day/hour/guid.json is expected",
            ));
        };
        let decoded = |segment: &str| {
            let text = percent_decode_str(segment).decode_utf8();
            text.map(std::borrow::Cow::into_owned).map_err(|_| invalid("a name in it is not UTF-8"))
        };
        let topic = TopicName { namespace: decoded(namespace)?, topic: decoded(topic)? };
        // Not required: the letters may hold their ids themselves.
        let guid = file.strip_suffix(".json").and_then(|guid| guid.parse().ok());
        Ok(Self { key, subscription: SubscriptionName { topic, name: decoded(name)? }, guid })
    }
}

#[cfg(test)]
mod tests;
