//! The ledger of a replay: what is to be sent, and what was sent. Pure: texts and decisions, no
//! storage.
//!
//! These files are in `_replays/<job>/`, beside the dead letters:
//!
//! - `plan.ndjson` has a header, then every dead letter in the order of sending;
//! - `<n>.ndjson`, one for each chunk of ten, is written before sending (`intent`) and again after it;
//! - `done.ndjson` has the header and all entries. It is written once every dead letter is finished, and again
//!   with the ends once every delivery has ended.
//!
//! A chunk with entries that still say `intent` is uncertain: it may have been sent. A resume names it and
//! sends it again, unless `--skip-uncertain` is given. The delivery id is a function of job and
//! dead letter, so a receiver can recognize a repeat.
//!
//! Version 1 of these texts stays readable for ever.

mod chunk;
mod counts;
mod records;
mod texts;

use delivery::deadletter::stored::id_of_key;
pub use delivery::delivery::replay::is_job_name;
use delivery::delivery::replay::{ReplayOutcome, StoredReplayEnd};
use serde::{Deserialize, Serialize};
use uuid::{Uuid, uuid};

pub(crate) use self::chunk::{CHUNK, start_chunk};
pub(crate) use self::counts::uncertain_chunks;
pub use self::counts::{EndCounts, JobSummary, ReplayCounts};
pub(crate) use self::records::keep_latest;
pub use self::records::{Ending, Ends, ReplayEndState, ReplayRecord, UNKNOWN_AFTER_MS};
pub(crate) use self::texts::{
    VERSION, read_done, read_entries, read_plan, write_done, write_entries, write_plan,
};
use crate::rate::Rate;

/// The namespace of the ids of replayed deliveries (UUIDv5).
const REPLAY_NAMESPACE: Uuid = uuid!("0c1d7b52-5b5e-5a0f-8f52-6f2f0b6d4c11");
/// The target of a job that sends each dead letter to its own subscription.
pub(crate) const SUBSCRIPTION: &str = "subscription";

/// What a job is: the first line of its plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobHeader {
    pub(crate) v: u32,
    /// The name of the job.
    pub job: String,
    /// When it was started, RFC 3339.
    pub at: String,
    /// Where its dead letters are sent: `subscription`, `topic NS/TOPIC`, a URL, or what of a URL may be stored.
    pub to: String,
    /// The queue, if they are sent through one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// How many dead letters there are.
    pub letters: usize,
    /// Whether the ends of its deliveries are recorded beside it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub results: bool,
    /// The most that it sends in a time; a resume may give another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The person who started it, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// A note of that person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A dead letter that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlannedReplay {
    pub(crate) key: String,
}

impl PlannedReplay {
    /// The id of the dead letter.
    pub(crate) fn letter(&self) -> Uuid {
        id_of_key(&self.key)
    }
}

/// How far the replay of a dead letter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayState {
    /// About to be sent; after a crash it is uncertain whether it was.
    Intent,
    /// Accepted.
    Sent,
    /// Not accepted; a resume tries again.
    Refused,
    /// Uncertain, and left so on request.
    Skipped,
    /// Its blob no longer exists, or can no longer be read.
    #[serde(rename = "gone")]
    Missing,
    /// It cannot be sent to this target at all.
    Unfit,
    /// Another job has sent it, or a person has dismissed it, since this job began.
    Closed,
}

/// The state of a dead letter in a chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// The id of the dead letter.
    pub letter: Uuid,
    /// The id of its new delivery.
    pub delivery: Uuid,
    /// How far it is.
    pub state: ReplayState,
    /// When the state was entered, RFC 3339.
    pub at: String,
    /// Why it was not sent, or why that is uncertain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The end of its delivery, if that is known. No chunk has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<KnownEnd>,
}

/// The known end of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownEnd {
    /// The kind of end.
    pub state: ReplayOutcome,
    /// When, RFC 3339.
    pub at: String,
}

impl From<&StoredReplayEnd> for KnownEnd {
    fn from(end: &StoredReplayEnd) -> Self {
        Self { state: end.state, at: end.at.clone() }
    }
}

/// The id of the delivery that a job makes of a dead letter.
#[must_use]
pub fn delivery_id(job: &str, letter: Uuid) -> Uuid {
    // No job name contains a line end, so no two pairs give one text.
    Uuid::new_v5(&REPLAY_NAMESPACE, format!("{job}\n{letter}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_delivery_is_a_function_of_job_and_dead_letter() {
        let letter = Uuid::from_u128(1);
        assert_eq!(delivery_id("j", letter), delivery_id("j", letter));
        assert_eq!(delivery_id("j", letter).get_version_num(), 5);
        assert_ne!(delivery_id("j", letter), delivery_id("k", letter));
        assert_ne!(delivery_id("j", letter), letter);
    }
}
