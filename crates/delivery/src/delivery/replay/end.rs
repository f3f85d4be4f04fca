//! The end of a replayed delivery, as it is written beside the ledger of its job.
//!
//! Separate from [`Replay`], because an end is made of a delivery, and a delivery carries its [`Replay`].

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::of_delivery::Replay;
use crate::delivery::{DeadLetter, Delivery, DeliveryTarget};
use crate::time::moment;

/// The version of an end that is written.
const END_VERSION: u32 = 1;
/// How a replayed delivery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayOutcome {
    /// It was delivered.
    Delivered,
    /// It became a dead letter again.
    DeadAgain,
    /// It failed, and its subscription drops its dead letters.
    Dropped,
}

impl ReplayOutcome {
    /// Every end.
    pub const ALL: [Self; 3] = [Self::Delivered, Self::DeadAgain, Self::Dropped];

    /// The word in keys and JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::DeadAgain => "dead_again",
            Self::Dropped => "dropped",
        }
    }

    /// For people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::DeadAgain => "dead again",
            Self::Dropped => "dropped",
        }
    }
}

impl fmt::Display for ReplayOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The end of a replayed delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayEnd {
    /// What it replayed.
    pub replay: Replay,
    /// Its id; if it is dead again, that of the new dead letter.
    pub delivery: Uuid,
    /// How it ended.
    pub outcome: ReplayOutcome,
    /// When.
    pub at_ms: u64,
    /// The container and the key of the new dead letter, where it is in one and that is known.
    pub stored: Option<(String, String)>,
}

/// An end as it is stored: one line of JSON, as in a ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredReplayEnd {
    v: u32,
    /// The name of the job.
    pub job: String,
    /// The id of the dead letter that was replayed.
    pub letter: Uuid,
    /// The id of the delivery; if it is dead again, that of the new dead letter.
    pub delivery: Uuid,
    /// How it ended.
    pub state: ReplayOutcome,
    /// When, RFC 3339.
    pub at: String,
    /// The container of the new dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The key of the new dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl ReplayEnd {
    /// The end of this delivery with a success, if it is a replay. The success of a delivery to a sink is the
    /// end of the delivery whose dead letter it took there, unless it is a replay itself.
    #[must_use]
    pub fn of_success(delivery: &Delivery, at_ms: u64) -> Option<Self> {
        match &delivery.target {
            DeliveryTarget::Sink(letter) if delivery.replay.is_none() => {
                Self::of_dead_letter(letter, None, at_ms)
            }
            DeliveryTarget::Destination | DeliveryTarget::Reply | DeliveryTarget::Sink(_) => {
                Self::of(delivery, ReplayOutcome::Delivered, at_ms)
            }
        }
    }

    /// The end that this dead letter is, with the container and the key where it is, if its delivery was a
    /// replay.
    #[must_use]
    pub fn of_dead_letter(
        letter: &DeadLetter,
        stored: Option<(String, String)>,
        at_ms: u64,
    ) -> Option<Self> {
        let end = Self::of(&letter.delivery, ReplayOutcome::DeadAgain, at_ms)?;
        Some(Self { stored, ..end })
    }

    /// This end of a delivery, if it is a replay.
    #[must_use]
    pub fn of(delivery: &Delivery, outcome: ReplayOutcome, at_ms: u64) -> Option<Self> {
        let replay = delivery.replay.clone()?;
        Some(Self { replay, delivery: delivery.id, outcome, at_ms, stored: None })
    }

    /// Its key in the container with this prefix.
    #[must_use]
    pub fn key(&self, prefix: &str) -> String {
        self.replay.end_key(prefix, self.outcome)
    }

    /// Its line.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let (container, key) = self.stored.clone().unzip();
        let stored = StoredReplayEnd {
            v: END_VERSION,
            job: self.replay.job().to_owned(),
            letter: self.replay.letter,
            delivery: self.delivery,
            state: self.outcome,
            at: moment::rfc3339(self.at_ms),
            container,
            key,
        };
        let text = serde_json::to_string(&stored).expect("a plain struct serializes");
        format!("{text}\n").into_bytes()
    }
}

impl StoredReplayEnd {
    /// Whether there is a new dead letter in a container, and not only at its sink.
    #[must_use]
    pub fn is_linked(&self) -> bool {
        self.state == ReplayOutcome::DeadAgain && self.key.is_some()
    }

    /// Reads an end.
    ///
    /// # Errors
    /// When it is not an end of this version.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let end: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if end.v != END_VERSION {
            return Err(format!(
                "it has version {}, and this program reads version {END_VERSION} only",
                end.v
            ));
        }
        Ok(end)
    }
}

#[cfg(test)]
mod tests {
    use super::super::of_delivery::read_end_file;
    use super::*;

    #[test]
    fn an_end_is_one_line_with_a_key_of_job_letter_and_outcome_and_is_read_back() {
        let replay = Replay::new("j", Uuid::from_u128(1)).unwrap();
        let file = "00000000-0000-0000-0000-000000000001.dead_again.ndjson";
        let in_root = format!("_replays/j/ends/{file}");
        assert_eq!(replay.end_key("", ReplayOutcome::DeadAgain), in_root);
        assert_eq!(replay.end_key("/a/b/", ReplayOutcome::DeadAgain), format!("a/b/{in_root}"));
        assert_eq!(read_end_file(file), Some((replay.letter, ReplayOutcome::DeadAgain)));
        for other in ["x.delivered.ndjson", "00000000-0000-0000-0000-000000000001.ndjson", ""] {
            assert_eq!(read_end_file(other), None, "{other}");
        }
        let stored = Some(("all/dead".to_owned(), "dead/a/b/c/2026/1/2/3/x.json".to_owned()));
        let (outcome, delivery) = (ReplayOutcome::DeadAgain, Uuid::from_u128(2));
        let end = ReplayEnd { replay, delivery, outcome, at_ms: 7, stored };
        let bytes = end.bytes();
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(end.key(""), in_root);
        let read = StoredReplayEnd::read(&bytes).unwrap();
        assert_eq!((read.state, read.delivery), (ReplayOutcome::DeadAgain, delivery));
        assert_eq!(read.key.as_deref(), Some("dead/a/b/c/2026/1/2/3/x.json"));
        let newer = String::from_utf8(bytes).unwrap().replace("\"v\":1", "\"v\":2");
        assert!(StoredReplayEnd::read(newer.as_bytes()).unwrap_err().contains("version 2"));
    }
}
