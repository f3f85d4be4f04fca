//! Letters as JSON that tools read.

use clap::ValueEnum;
use delivery::deadletter::stored::{StoredAttempt, StoredDeadLetter};
use delivery::time::moment::rfc3339;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::letters::filter::decided_ms;
use crate::letters::ledger::{Replayed, State};

/// How something is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// For people
    Table,
    /// For tools
    Json,
}

/// A line of `list`.
#[derive(Debug, Serialize)]
pub(super) struct Listed<'a> {
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
    /// The job that sent it again; one of which nobody knows whether it did does not count.
    replayed: Option<&'a str>,
}

impl<'a> Listed<'a> {
    pub(super) fn new(letter: &'a StoredDeadLetter, replayed: Option<&'a Replayed>) -> Self {
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
            replayed: replayed.filter(|of| of.line.state == State::Sent).map(|of| of.job.as_str()),
        }
    }
}

/// A whole letter.
#[derive(Debug, Serialize)]
pub(super) struct Whole<'a> {
    #[serde(flatten)]
    listed: Listed<'a>,
    published_at: Option<String>,
    last_attempt_at: Option<String>,
    history: Vec<Attempt<'a>>,
    omitted: u32,
    last_response: Option<&'a str>,
    detail: Option<&'a str>,
    sink_error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sink: Option<AtSink<'a>>,
    traceparent: Option<&'a str>,
    headers: &'a [(String, String)],
    event: Event<'a>,
}

/// A sink that did not take the letter.
#[derive(Debug, Serialize)]
struct AtSink<'a> {
    destination: Option<&'a str>,
    reason: &'a str,
    detail: Option<&'a str>,
    attempts: u32,
    history: Vec<Attempt<'a>>,
    omitted: u32,
    last_response: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct Attempt<'a> {
    at: String,
    outcome: &'a str,
    status: Option<u16>,
    duration_ms: u64,
}

/// The event as JSON in its own spelling, or as text.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Event<'a> {
    Json(Box<RawValue>),
    Text(&'a str),
}

impl<'a> Whole<'a> {
    pub(super) fn new(letter: &'a StoredDeadLetter, replayed: Option<&'a Replayed>) -> Self {
        let attempt = |of: &'a StoredAttempt| Attempt {
            at: rfc3339(of.at_ms),
            outcome: &of.outcome,
            status: of.status,
            duration_ms: of.duration_ms,
        };
        Self {
            listed: Listed::new(letter, replayed),
            published_at: letter.published_ms.map(rfc3339),
            last_attempt_at: letter.last_attempt_ms.map(rfc3339),
            history: letter.history.iter().map(attempt).collect(),
            omitted: letter.omitted,
            last_response: letter.last_response.as_deref(),
            detail: letter.detail.as_deref(),
            sink_error: letter.sink_error.as_deref(),
            sink: letter.sink.as_ref().map(|sink| AtSink {
                destination: sink.destination.as_deref(),
                reason: &sink.reason,
                detail: sink.detail.as_deref(),
                attempts: sink.attempts,
                history: sink.history.iter().map(attempt).collect(),
                omitted: sink.omitted,
                last_response: sink.last_response.as_deref(),
            }),
            traceparent: letter.traceparent.as_deref(),
            headers: &letter.headers,
            event: event(&letter.event),
        }
    }
}

/// JSON strings hold no line ends, so those of an event stand between its parts: as spaces it is
/// one line.
fn event(text: &str) -> Event<'_> {
    let one_line = text.replace(['\n', '\r'], " ");
    RawValue::from_string(one_line).map_or(Event::Text(text), Event::Json)
}
