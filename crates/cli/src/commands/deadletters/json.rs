//! Formats dead letters as JSON, for tools.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use deadletters::SameEvent;
use deadletters::dismissed::Dismissal;
use deadletters::facts::decided_ms;
use deadletters::replay::ends::ReplayEndState;
use deadletters::state::{LetterState, LetterStates};
use delivery::deadletter::stored::{FailedAt, StoredAttempt, StoredDeadLetter, StoredSink};
use delivery::delivery::FailingDestination;
use delivery::delivery::replay::{Replay, ReplayOutcome};
use delivery::event::portable::portable;
use delivery::time::moment::rfc3339;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use uuid::Uuid;

/// A dead letter in the output of `list`.
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
    state: LetterState,
    /// The job that replayed the dead letter; `None` if it was not replayed, or if this is
    /// uncertain.
    replayed: Option<&'a str>,
}

impl<'a> ListedJson<'a> {
    pub(super) fn new(letter: &'a StoredDeadLetter, states: &'a LetterStates) -> Self {
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
            state: states.state(letter.id),
            replayed: states
                .replay_of(letter.id)
                .filter(|record| !record.is_uncertain())
                .map(|record| record.job.as_str()),
        }
    }
}

/// Data about a dead letter that its blob does not contain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links<'a> {
    /// The state of each dead letter in the container.
    pub(super) states: &'a LetterStates,
    /// The outcome of the dead letter's replay.
    pub(super) end: Option<&'a ReplayEndState>,
    /// Other dead letters of the same event; `None` if they were not searched for.
    pub(super) same_event: Option<&'a SameEvent>,
}

impl<'a> Links<'a> {
    /// Creates links that contain only the states.
    pub(super) fn with_states(states: &'a LetterStates) -> Self {
        Self { states, end: None, same_event: None }
    }
}

/// A complete dead letter, in the output of `show` and `list --full`.
#[derive(Debug, Serialize)]
pub(super) struct DeadLetterJson<'a> {
    #[serde(flatten)]
    listed: ListedJson<'a>,
    /// The address that failed last: the destination, the reply address or the sink.
    failed: FailedAt,
    published_at: Option<String>,
    last_attempt_at: Option<String>,
    history: &'a [StoredAttempt],
    omitted: u32,
    last_response: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    last_response_headers: &'a [(String, String)],
    #[serde(skip_serializing_if = "Option::is_none")]
    destination_state: Option<DestinationStateJson<'a>>,
    detail: Option<&'a str>,
    sink_error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sink: Option<&'a StoredSink>,
    traceparent: Option<&'a str>,
    headers: &'a [(String, String)],
    #[serde(skip_serializing_if = "Option::is_none")]
    replay_of: Option<ReplayOfJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay_end: Option<ReplayEndJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dismissed: Option<DismissedJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    same_event: Vec<SameEventJson<'a>>,
    event: Box<RawValue>,
    /// The exact bytes of the event in Base64, if `event` cannot represent them.
    #[serde(skip_serializing_if = "Option::is_none")]
    event_base64: Option<String>,
}

/// The last failure of the destination, which happened in another delivery.
#[derive(Debug, Serialize)]
struct DestinationStateJson<'a> {
    since: String,
    outcome: &'a str,
    status: Option<u16>,
    detail: Option<&'a str>,
}

impl<'a> DestinationStateJson<'a> {
    fn new(destination: &'a FailingDestination) -> Self {
        let FailingDestination { since_ms, outcome, status, detail } = destination;
        Self { since: rfc3339(*since_ms), outcome, status: *status, detail: detail.as_deref() }
    }
}

/// The earlier dead letter whose failed replay created this one.
#[derive(Debug, Serialize)]
struct ReplayOfJson<'a> {
    letter: Uuid,
    job: &'a str,
}

/// The outcome of a dead letter's replay, if it is recorded.
#[derive(Debug, Default, Serialize)]
struct ReplayEndJson<'a> {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter: Option<Uuid>,
}

impl<'a> ReplayEndJson<'a> {
    fn new(end: &'a ReplayEndState, delivery: Uuid) -> Option<Self> {
        let end = match end {
            ReplayEndState::NotRecorded => return None,
            ReplayEndState::UnderWay => {
                return Some(Self { state: "under_way", ..Self::default() });
            }
            ReplayEndState::Unknown => return Some(Self { state: "unknown", ..Self::default() }),
            ReplayEndState::Ended(end) => end,
        };
        // If a replay fails, the new dead letter has the id of the replay's delivery.
        let dead_letter = (end.state == ReplayOutcome::DeadAgain).then_some(delivery);
        Some(Self { state: end.state.as_str(), at: Some(&end.at), dead_letter })
    }
}

/// Another dead letter of the same event.
#[derive(Debug, Serialize)]
struct SameEventJson<'a> {
    id: Uuid,
    subscription: String,
    reason: &'a str,
}

/// The dismissal of a dead letter: its time, its author and the note.
#[derive(Debug, Serialize)]
struct DismissedJson<'a> {
    at: &'a str,
    by: Option<&'a str>,
    note: &'a str,
}

impl<'a> DeadLetterJson<'a> {
    pub(super) fn new(letter: &'a StoredDeadLetter, links: &Links<'a>) -> Self {
        let replay_of =
            |replay: &'a Replay| ReplayOfJson { letter: replay.letter, job: replay.job() };
        let dismissed = |dismissal: &'a Dismissal| DismissedJson {
            at: &dismissal.at,
            by: dismissal.by.as_deref(),
            note: &dismissal.note,
        };
        let (event, event_base64) = event(&letter.event);
        let of_event = links.same_event.into_iter().flat_map(|group| &group.letters);
        let same_event = |other: &'a StoredDeadLetter| SameEventJson {
            id: other.id,
            subscription: other.subscription.to_string(),
            reason: &other.reason,
        };
        Self {
            listed: ListedJson::new(letter, links.states),
            failed: letter.failure().at,
            published_at: letter.published_ms.map(rfc3339),
            last_attempt_at: letter.last_attempt_ms.map(rfc3339),
            history: &letter.history,
            omitted: letter.omitted,
            last_response: letter.last_response.as_deref(),
            last_response_headers: &letter.last_headers,
            destination_state: letter.failing.as_ref().map(DestinationStateJson::new),
            detail: letter.detail.as_deref(),
            sink_error: letter.sink_error.as_deref(),
            sink: letter.sink.as_ref(),
            traceparent: letter.traceparent.as_deref(),
            headers: &letter.headers,
            replay_of: letter.replay.as_ref().map(replay_of),
            replay_end: links
                .end
                .zip(links.states.replay_of(letter.id))
                .and_then(|(end, record)| ReplayEndJson::new(end, record.entry.delivery)),
            dismissed: links.states.dismissal_of(letter.id).map(dismissed),
            same_event: of_event.map(same_event).collect(),
            event,
            event_base64,
        }
    }
}

/// Formats the event as JSON on one line, and returns its exact bytes in Base64 if necessary. JSON
/// strings contain no line ends, so line ends of the event are white space and become spaces. Many
/// JSON readers reject unpaired surrogates. Therefore, this function replaces unpaired surrogates,
/// and adds the exact bytes. An event that is not JSON, or is nested too deeply, becomes a string.
fn event(text: &str) -> (Box<RawValue>, Option<String>) {
    let json = |json: &str| RawValue::from_string(json.replace(['\n', '\r'], " ")).ok();
    let portable = portable(text);
    let base64 = matches!(portable, Some(Cow::Owned(_))).then(|| STANDARD.encode(text));
    let shown = portable.and_then(|portable| json(&portable));
    let as_text = || to_raw_value(text).expect("every string can be written as JSON");
    (shown.unwrap_or_else(as_text), base64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_json_that_every_reader_can_read() {
        for (text, shown, base64) in [
            ("{\"a\":\n1}", "{\"a\": 1}", None),
            (r#"["\ud83d\ude00"]"#, r#"["\ud83d\ude00"]"#, None),
            (r#"["\ud83d"]"#, r#"["\ufffd"]"#, Some("WyJcdWQ4M2QiXQ==")),
            ("<xml/>", "\"<xml/>\"", None),
        ] {
            let (json, bytes) = event(text);
            assert_eq!((json.get(), bytes.as_deref()), (shown, base64), "{text}");
        }
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert_eq!(event(&deep).0.get(), format!("\"{deep}\""));
    }
}
