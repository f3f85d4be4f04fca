//! The key and the bytes of a dead letter's blob: pure functions of the letter.
//!
//! Because the key depends on nothing but what the message carries, a message handled twice writes one blob. The
//! event's own text stands in the blob as it was published.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::value::RawValue;

use crate::deadletter::{Format, Layout, Letter, Reason};
use crate::delivery::{Delivery, Entry, History};
use crate::event::Shape;
use crate::moment;
use crate::subscription::{SubscriptionName, TopicName};
use crate::trace;

/// In the subscription's place for records that are no events.
pub const MALFORMED: &str = "_malformed";
/// In the subscription's place for events of a topic that no document names.
pub const UNKNOWN_TOPIC: &str = "_unknown";
/// In the subscription's place for messages that arrived by native redrive and name no subscription.
pub const UNPROCESSED: &str = "_unprocessed";
/// Stands for a name nobody knows.
pub const NAMELESS: &str = "_";

/// Kept as they are in a segment: `[A-Za-z0-9._-]`.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-');

/// One segment of a key: percent-encoded outside `[A-Za-z0-9._-]`; `.` and `..` never stand alone.
#[must_use]
pub fn segment(text: &str) -> Cow<'_, str> {
    match text {
        "" => NAMELESS.into(),
        "." => "%2E".into(),
        ".." => "%2E%2E".into(),
        text => utf8_percent_encode(text, SEGMENT).into(),
    }
}

/// The topic that stands for one nobody named.
#[must_use]
pub fn nameless_topic() -> TopicName {
    TopicName { namespace: NAMELESS.to_owned(), topic: NAMELESS.to_owned() }
}

/// The key of a letter: `<namespace>/<topic>/<subscription>/<yyyy>/<M>/<d>/<H>/<guid>.json`, behind `prefix` if any.
///
/// The hour is that of the moment the last attempt was due (before any attempt: of publication), in UTC.
#[must_use]
pub fn key(letter: &Letter, prefix: &str) -> String {
    let Delivery { id, subscription: SubscriptionName { topic, name }, due_ms, .. } = &letter.delivery;
    let path = [&topic.namespace, &topic.topic, name].map(|part| segment(part)).join("/");
    let prefix = prefix.trim_matches('/');
    let slash = if prefix.is_empty() { "" } else { "/" };
    format!("{prefix}{slash}{path}/{}/{id}.json", moment::hour_folder(*due_ms))
}

/// The bytes of a letter's blob. `sink_error` says why it is not in the container it was meant for.
#[must_use]
pub fn bytes(letter: &Letter, sink_error: Option<&str>) -> Vec<u8> {
    match (letter.format, letter.layout) {
        (Format::Namespace, Layout::Nested) => {
            serde_json::to_vec(&Namespace { letter, sink_error }).expect("strings, numbers and checked JSON serialize")
        }
    }
}

/// Event Grid namespaces, "dead lettering for event subscriptions to namespace topics".
struct Namespace<'a> {
    letter: &'a Letter,
    sink_error: Option<&'a str>,
}

impl Serialize for Namespace<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match event_json(self.letter) {
            Some(raw) => map.serialize_entry("event", raw)?,
            None => map.serialize_entry("event", self.letter.delivery.event.text().as_ref())?,
        }
        if !self.letter.headers.is_empty() {
            map.serialize_entry("customDeliveryProperties", &Pairs(&self.letter.headers))?;
        }
        map.serialize_entry("deadletterProperties", &Properties { letter: self.letter, sink_error: self.sink_error })?;
        map.end()
    }
}

/// The event as JSON in its own spelling; `None` for text that is none, and for what was refused as malformed.
fn event_json(letter: &Letter) -> Option<&RawValue> {
    let event = &letter.delivery.event;
    if event.shape() == Shape::Opaque || letter.reason == Reason::MalformedEvent {
        return None;
    }
    serde_json::from_str(event.text()).ok()
}

struct Pairs<'a>(&'a [(String, String)]);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

struct Properties<'a> {
    letter: &'a Letter,
    sink_error: Option<&'a str>,
}

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Letter { delivery, reason, detail, destination, .. } = self.letter;
        let newest = delivery.history.newest_attempt();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("deadletterreason", &reason.sentence())?;
        map.serialize_entry("deliveryattempts", &delivery.attempts)?;
        if let Some(attempt) = newest {
            map.serialize_entry("deliveryresult", attempt.outcome.as_str())?;
        }
        map.serialize_entry("publishutc", &moment::rfc3339(delivery.published_ms))?;
        if let Some(attempt) = newest {
            map.serialize_entry("deliveryattemptutc", &moment::rfc3339(attempt.at_ms))?;
        }
        map.serialize_entry("deadletterid", &delivery.id)?;
        map.serialize_entry("deadletterreasoncode", &reason.to_string())?;
        map.serialize_entry("subscription", &delivery.subscription.to_string())?;
        if let Some(status) = newest.and_then(|attempt| attempt.status) {
            map.serialize_entry("lasthttpstatuscode", &status)?;
        }
        if let Some(destination) = destination {
            map.serialize_entry("destination", destination)?;
        }
        if let Some(response) = &delivery.last_response {
            match std::str::from_utf8(whole_characters(response)) {
                Ok(text) => map.serialize_entry("lastresponse", text)?,
                Err(_) => map.serialize_entry("lastresponse_base64", &STANDARD.encode(response))?,
            }
        }
        map.serialize_entry("history", &Attempts(&delivery.history))?;
        if let Some(trace) = trace::of_delivery(delivery) {
            map.serialize_entry("traceparent", &trace.parent)?;
        }
        if let Some(detail) = detail {
            map.serialize_entry("deadletterdetail", detail)?;
        }
        if let Some(sink_error) = self.sink_error {
            map.serialize_entry("sinkerror", sink_error)?;
        }
        map.end()
    }
}

/// The bytes without a last character that the limit cut in two.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

struct Attempts<'a>(&'a History);

impl Serialize for Attempts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for entry in self.0.first() {
            list.serialize_element(&Attempt(entry))?;
        }
        if self.0.omitted() > 0 {
            list.serialize_element(&serde_json::json!({ "omitted": self.0.omitted() }))?;
        }
        for entry in self.0.last() {
            list.serialize_element(&Attempt(entry))?;
        }
        list.end()
    }
}

struct Attempt<'a>(&'a Entry);

impl Serialize for Attempt<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Entry { at_ms, outcome, status, duration_ms } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("at", &moment::rfc3339(*at_ms))?;
        map.serialize_entry("outcome", outcome.as_str())?;
        if let Some(status) = status {
            map.serialize_entry("status", status)?;
        }
        map.serialize_entry("durationms", duration_ms)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_cannot_leave_its_place() {
        for (text, written) in [
            ("orders", "orders"),
            ("A-b_c.9", "A-b_c.9"),
            ("", "_"),
            (".", "%2E"),
            ("..", "%2E%2E"),
            ("...", "..."),
            ("a/b", "a%2Fb"),
            ("a b%", "a%20b%25"),
            ("ö", "%C3%B6"),
        ] {
            assert_eq!(segment(text), written);
        }
    }

    #[test]
    fn a_response_cut_within_a_character_is_still_text() {
        assert_eq!(whole_characters("aö".as_bytes()), "aö".as_bytes());
        assert_eq!(whole_characters(&"aö".as_bytes()[..2]), b"a");
        assert_eq!(whole_characters(b"a\xffb"), b"a\xffb");
    }
}
