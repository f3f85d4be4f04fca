//! Dead letters as JSON, for tools.

use deadletters::filter::decided_ms;
use deadletters::ledger::{ReplayRecord, ReplayState};
use delivery::deadletter::stored::{StoredAttempt, StoredDeadLetter, StoredSink};
use delivery::time::moment::rfc3339;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use uuid::Uuid;

/// A dead letter as `list` shows it.
#[derive(Debug, Serialize)]
pub(super) struct ListedJson<'a> {
    id: Uuid,
    key: &'a str,
    namespace: &'a str,
    topic: &'a str,
    subscription: &'a str,
    reason: &'a str,
    outcome: Option<&'a str>,
    status: Option<u16>,
    attempts: u32,
    decided_at: Option<String>,
    destination: Option<&'a str>,
    event_id: Option<&'a str>,
    #[serde(rename = "type")]
    event_type: Option<&'a str>,
    source: Option<&'a str>,
    /// The job that replayed it; not one that is uncertain.
    replayed: Option<&'a str>,
}

impl<'a> ListedJson<'a> {
    pub(super) fn new(letter: &'a StoredDeadLetter, replayed: Option<&'a ReplayRecord>) -> Self {
        Self {
            id: letter.id,
            key: &letter.key,
            namespace: &letter.subscription.topic.namespace,
            topic: &letter.subscription.topic.topic,
            subscription: &letter.subscription.name,
            reason: &letter.reason,
            outcome: letter.outcome.as_deref(),
            status: letter.status,
            attempts: letter.attempts,
            decided_at: decided_ms(letter).map(rfc3339),
            destination: letter.destination.as_deref(),
            event_id: letter.event_id.as_deref(),
            event_type: letter.event_type.as_deref(),
            source: letter.source.as_deref(),
            replayed: replayed
                .filter(|record| record.entry.state == ReplayState::Sent)
                .map(|record| record.job.as_str()),
        }
    }
}

/// A complete dead letter.
#[derive(Debug, Serialize)]
pub(super) struct DeadLetterJson<'a> {
    #[serde(flatten)]
    listed: ListedJson<'a>,
    published_at: Option<String>,
    last_attempt_at: Option<String>,
    history: &'a [StoredAttempt],
    omitted: u32,
    last_response: Option<&'a str>,
    detail: Option<&'a str>,
    sink_error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sink: Option<&'a StoredSink>,
    traceparent: Option<&'a str>,
    headers: &'a [(String, String)],
    event: Box<RawValue>,
}

impl<'a> DeadLetterJson<'a> {
    pub(super) fn new(letter: &'a StoredDeadLetter, replayed: Option<&'a ReplayRecord>) -> Self {
        Self {
            listed: ListedJson::new(letter, replayed),
            published_at: letter.published_ms.map(rfc3339),
            last_attempt_at: letter.last_attempt_ms.map(rfc3339),
            history: &letter.history,
            omitted: letter.omitted,
            last_response: letter.last_response.as_deref(),
            detail: letter.detail.as_deref(),
            sink_error: letter.sink_error.as_deref(),
            sink: letter.sink.as_ref(),
            traceparent: letter.traceparent.as_deref(),
            headers: &letter.headers,
            event: event(&letter.event),
        }
    }
}

/// The event as JSON on one line, byte for byte: JSON strings contain no line ends, so those of an
/// event are white space between its parts. What is not JSON is a string.
fn event(text: &str) -> Box<RawValue> {
    let json = RawValue::from_string(text.replace(['\n', '\r'], " "));
    json.unwrap_or_else(|_| to_raw_value(text).expect("a string is always JSON"))
}
