//! The view model of `lastmile trace`, and its JSON for tools. docs/reference/json.md#trace
//! documents each member.

use delivery::time::moment::rfc3339;
use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::operations::line_words::LineWords;

/// The deliveries and events that a search found.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Trace {
    /// The deliveries, sorted by the time of their first step.
    pub(crate) deliveries: Vec<TracedDelivery>,
    /// The events that no subscription matched.
    pub(crate) unmatched: Vec<UnmatchedEvent>,
}

impl Trace {
    /// Returns true if the search found nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.deliveries.is_empty() && self.unmatched.is_empty()
    }
}

/// A delivery: one event for one subscription, with its steps.
#[derive(Debug, Serialize)]
pub(crate) struct TracedDelivery {
    /// The delivery id, which is also the `webhook-id` of its requests.
    pub(crate) delivery_id: Uuid,
    pub(crate) subscription: String,
    pub(crate) event_id: Option<String>,
    pub(crate) source: Option<String>,
    #[serde(rename = "type")]
    pub(crate) event_type: Option<String>,
    pub(crate) trace_id: Option<String>,
    #[serde(rename = "published_at", serialize_with = "at")]
    pub(crate) published_ms: Option<u64>,
    pub(crate) end: DeliveryEnd,
    #[serde(rename = "ended_at", serialize_with = "at")]
    pub(crate) ended_ms: Option<u64>,
    /// The time when the next attempt is due; `None` if the delivery has ended, or its last log
    /// line does not report a wait.
    #[serde(rename = "continues_at", serialize_with = "at")]
    pub(crate) continues_ms: Option<u64>,
    pub(crate) attempts: u64,
    pub(crate) reason: Option<String>,
    pub(crate) detail: Option<String>,
    pub(crate) steps: Vec<Step>,
    pub(crate) dead_letter: Option<TracedLetter>,
    pub(crate) replay_of: Option<ReplaySource>,
    pub(crate) replays: Vec<TracedReplay>,
}

/// The outcome of a delivery. The log lines determine it; if they contain no outcome, the dead
/// letter does. A success takes precedence over other outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeliveryEnd {
    Delivered,
    DeadLettered,
    Dropped,
    /// The delivery is still in progress, as far as the log and the dead letters show.
    UnderWay,
}

/// A step of a delivery: an attempt, a wait, or the end.
#[derive(Debug, Serialize)]
pub(crate) struct Step {
    /// The time of the step's log line. An attempt is logged when it ends.
    #[serde(rename = "at", serialize_with = "when")]
    pub(crate) at_ms: u64,
    /// The name of the step's log line; `history` for an attempt that only the dead letter
    /// contains.
    pub(crate) line: String,
    pub(crate) attempt: Option<u64>,
    pub(crate) leg: Option<String>,
    pub(crate) outcome: Option<String>,
    /// The outcome as text, such as `connection refused (SocketError)`.
    pub(crate) text: String,
    pub(crate) status: Option<u16>,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) wait_ms: Option<u64>,
    #[serde(skip)]
    pub(crate) words: LineWords,
}

/// The dead letter that a delivery became.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct TracedLetter {
    pub(crate) container: Option<String>,
    pub(crate) key: Option<String>,
    /// The queue or address that received the dead letter; `None` if a container stores it.
    pub(crate) sink: Option<String>,
}

/// The dead letter that this delivery replays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ReplaySource {
    pub(crate) letter: Uuid,
    pub(crate) job: String,
}

/// A replay of the dead letter that a delivery became.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct TracedReplay {
    #[serde(skip)]
    pub(crate) letter: Uuid,
    pub(crate) job: String,
    pub(crate) delivery_id: Uuid,
    #[serde(rename = "sent_at", serialize_with = "at")]
    pub(crate) sent_ms: Option<u64>,
    /// The outcome of the replay: `delivered`, `dead-again` or `dropped`; `None` before it is
    /// recorded.
    pub(crate) outcome: Option<String>,
}

/// An event that no subscription matched.
#[derive(Debug, Serialize)]
pub(crate) struct UnmatchedEvent {
    #[serde(rename = "at", serialize_with = "when")]
    pub(crate) at_ms: u64,
    pub(crate) topic: String,
    pub(crate) event_id: Option<String>,
    pub(crate) source: Option<String>,
    #[serde(rename = "type")]
    pub(crate) event_type: Option<String>,
    pub(crate) trace_id: Option<String>,
}

fn at<S: Serializer>(ms: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    ms.map(rfc3339).serialize(serializer)
}

fn when<S: Serializer>(ms: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*ms))
}
