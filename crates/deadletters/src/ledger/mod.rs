//! The ledger of a replay: the plan, and a record of every dead letter that was sent. Pure: texts
//! and decisions, no storage.
//!
//! The files are in `_replays/<job>/`, beside the dead letters:
//!
//! - `plan.ndjson` has a header, then every dead letter in the order of sending;
//! - `<n>.ndjson`, one for each chunk of ten, is written before the chunk is sent (`intent`), and
//!   again afterwards;
//! - `done.ndjson` has the header and all entries. It is written when every dead letter is
//!   finished, and again with the results when every delivery has ended.
//!
//! A chunk with entries in state `intent` is uncertain: it may have been sent. A resumed job prints
//! such chunks and sends them again, unless `--skip-uncertain` is given. The delivery id is a
//! function of job and dead letter, so a receiver can recognize a duplicate.
//!
//! Version 1 of these texts stays readable forever.

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
pub use self::records::{Ending, ReplayEndState, ReplayEnds, ReplayRecord, UNKNOWN_AFTER_MS};
pub(crate) use self::texts::{
    VERSION, read_done, read_entries, read_plan, write_done, write_entries, write_plan,
};
use crate::rate::Rate;

/// The UUIDv5 namespace of the ids of replayed deliveries.
const REPLAY_NAMESPACE: Uuid = uuid!("0c1d7b52-5b5e-5a0f-8f52-6f2f0b6d4c11");
/// The value of [`JobHeader::to`] for a job that sends each dead letter to its own subscription.
pub(crate) const SUBSCRIPTION: &str = "subscription";

/// The header of a job: the first line of its plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobHeader {
    pub(crate) v: u32,
    /// The name of the job.
    pub job: String,
    /// The start time of the job, in RFC 3339.
    pub at: String,
    /// The target: `subscription`, `topic NS/TOPIC`, or a URL. A URL with user info or a query is
    /// stored without them, after the word `shortened`.
    pub to: String,
    /// The URL of the queue to which the job sends; `None` if it sends to a URL directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The number of dead letters in the plan.
    pub letters: usize,
    /// True if the results of the job's deliveries are recorded beside the ledger.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub results: bool,
    /// The maximum rate. A resumed job may use a different rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The name of the person who started the job, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// A note by the person who started the job, from `--note` or the console.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A dead letter in the plan of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlannedReplay {
    pub(crate) key: String,
}

impl PlannedReplay {
    /// Returns the id of the dead letter, which its key contains.
    pub(crate) fn letter(&self) -> Uuid {
        id_of_key(&self.key)
    }
}

/// The progress of the replay of one dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayState {
    /// The dead letter is about to be sent. After a crash it may or may not have been sent.
    Intent,
    /// The target has accepted the dead letter.
    Sent,
    /// The target has not accepted the dead letter. A resumed job tries again.
    Refused,
    /// The dead letter was uncertain, and was skipped on request.
    Skipped,
    /// The blob no longer exists, or is unreadable.
    #[serde(rename = "gone")]
    Missing,
    /// The target can never accept this dead letter.
    Unfit,
    /// Since this job began, another job has sent the dead letter, or a person has dismissed it.
    Closed,
}

/// The entry of one dead letter in a chunk of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// The id of the dead letter.
    pub letter: Uuid,
    /// The id of the new delivery, which replays the dead letter.
    pub delivery: Uuid,
    /// The progress of replaying the dead letter.
    pub state: ReplayState,
    /// The time of the last change of state, in RFC 3339.
    pub at: String,
    /// The reason why the dead letter was not sent, or why the state is uncertain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The result of the delivery, if known. Chunk files never contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<KnownEnd>,
}

/// The result of a delivery, with its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownEnd {
    /// The result, such as delivered.
    pub state: ReplayOutcome,
    /// The time of the result, in RFC 3339.
    pub at: String,
}

impl From<&StoredReplayEnd> for KnownEnd {
    fn from(end: &StoredReplayEnd) -> Self {
        Self { state: end.state, at: end.at.clone() }
    }
}

/// Returns the id of the delivery that a job creates for a dead letter.
#[must_use]
pub fn delivery_id(job: &str, letter: Uuid) -> Uuid {
    // A job name never contains a line break, so no two pairs give the same text.
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
