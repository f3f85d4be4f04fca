//! [`ReplayEnd`]: the result of a replayed delivery, as it is stored beside the ledger of its job.
//!
//! This module is separate from [`Replay`] because a delivery contains its [`Replay`], and a result
//! is derived from a delivery.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::{Uuid, uuid};

use super::of_delivery::{Replay, ends_folder};
use crate::delivery::{DeadLetter, Delivery, DeliveryTarget};
use crate::time::moment;

/// Version of the stored format of results.
const END_VERSION: u32 = 1;
/// UUIDv5 namespace for the names of the objects that store results.
const ENDS: Uuid = uuid!("d4a8c3f1-7e26-5b90-a1d7-63c5f0e9b824");

/// The possible outcomes of a replayed delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayOutcome {
    /// The destination accepted the event.
    Delivered,
    /// The delivery became a dead letter again.
    DeadAgain,
    /// The delivery failed, and its subscription drops dead letters.
    Dropped,
}

impl ReplayOutcome {
    /// Returns the name of the outcome in storage, logs, JSON and texts for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::DeadAgain => "dead-again",
            Self::Dropped => "dropped",
        }
    }
}

impl fmt::Display for ReplayOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The result of a replayed delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayEnd {
    /// The job, and the dead letter that was replayed.
    pub replay: Replay,
    /// The id of the delivery. If the delivery became a dead letter again, the new dead letter has
    /// the same id.
    pub delivery: Uuid,
    /// The outcome of the delivery: delivered, dead again, or dropped.
    pub outcome: ReplayOutcome,
    /// Time at which the delivery ended, in milliseconds since 1970.
    pub at_ms: u64,
    /// Container and key of the new dead letter; `None` if it is not stored in a container or its
    /// key is not known.
    pub stored: Option<(String, String)>,
}

/// The stored form of a result: one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredReplayEnd {
    v: u32,
    /// The name of the replay job.
    pub job: String,
    /// The id of the replayed dead letter.
    pub letter: Uuid,
    /// The id of the delivery, and of the new dead letter if there is one.
    pub delivery: Uuid,
    /// The outcome of the delivery: delivered, dead again, or dropped.
    pub state: ReplayOutcome,
    /// Time at which the delivery ended, in RFC 3339.
    pub at: String,
    /// The container of the new dead letter, if it is stored in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The key of the new dead letter, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl ReplayEnd {
    /// Returns the replay result that a successful delivery implies; `None` if it implies none. If
    /// the delivery itself is a replay, the result is `Delivered`. If it brought the dead letter of
    /// a replayed delivery to a sink, the result is `DeadAgain`.
    #[must_use]
    pub fn of_success(delivery: &Delivery, at_ms: u64) -> Option<Self> {
        match &delivery.target {
            DeliveryTarget::Sink(letter) if delivery.replay.is_none() => {
                Self::of_dead_letter(letter, None, at_ms)
            }
            DeliveryTarget::Destination | DeliveryTarget::Reply | DeliveryTarget::Sink(_) => {
                Self::new(delivery, ReplayOutcome::Delivered, at_ms)
            }
        }
    }

    /// Returns the result of a delivery that became this dead letter; `None` if it was not a
    /// replay. `stored` contains the container and key of the dead letter.
    #[must_use]
    pub fn of_dead_letter(
        letter: &DeadLetter,
        stored: Option<(String, String)>,
        at_ms: u64,
    ) -> Option<Self> {
        let end = Self::new(&letter.delivery, ReplayOutcome::DeadAgain, at_ms)?;
        Some(Self { stored, ..end })
    }

    /// Returns the result of a delivery with this outcome; `None` if it is not a replay.
    #[must_use]
    pub fn new(delivery: &Delivery, outcome: ReplayOutcome, at_ms: u64) -> Option<Self> {
        let replay = delivery.replay.clone()?;
        Some(Self { replay, delivery: delivery.id, outcome, at_ms, stored: None })
    }

    /// Returns the result as one line of JSON.
    fn bytes(&self) -> Vec<u8> {
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
    /// Returns true if the new dead letter is stored in a container at a known key.
    #[must_use]
    pub fn is_linked(&self) -> bool {
        self.state == ReplayOutcome::DeadAgain && self.key.is_some()
    }
}

/// Returns the key and the content of the object with these results of one job: one line of JSON
/// for each result. `prefix` is the prefix of all keys in the container.
#[must_use]
pub fn write_ends(prefix: &str, job: &str, ends: &[ReplayEnd]) -> (String, Vec<u8>) {
    let mut names: Vec<String> =
        ends.iter().map(|end| format!("{}{}", end.replay.letter, end.outcome)).collect();
    names.sort_unstable();
    let id = Uuid::new_v5(&ENDS, names.concat().as_bytes());
    let lines = ends.iter().flat_map(ReplayEnd::bytes).collect();
    // The suffix `.json` is reserved for dead letters, because bucket notifications and policies
    // match it.
    (format!("{}{id}.ndjson", ends_folder(prefix, job)), lines)
}

/// Parses the results in a stored object. Skips invalid lines and lines of a different format
/// version.
#[must_use]
pub fn read_ends(bytes: &[u8]) -> Vec<StoredReplayEnd> {
    let lines = bytes.split(|byte| *byte == b'\n');
    let read = lines.filter_map(|line| serde_json::from_slice::<StoredReplayEnd>(line).ok());
    read.filter(|end| end.v == END_VERSION).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(letter: u128, outcome: ReplayOutcome) -> ReplayEnd {
        let replay = Replay::new("j", Uuid::from_u128(letter)).unwrap();
        let stored = Some(("all/dead".to_owned(), "dead/a/b/c/2026/1/2/3/x.json".to_owned()));
        ReplayEnd { replay, delivery: Uuid::from_u128(2), outcome, at_ms: 7, stored }
    }

    #[test]
    fn an_outcome_is_stored_as_its_word() {
        for outcome in [ReplayOutcome::Delivered, ReplayOutcome::DeadAgain, ReplayOutcome::Dropped]
        {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.as_str());
        }
    }

    #[test]
    fn ends_are_lines_of_an_object_that_depends_on_them_alone_and_are_read_back() {
        let ends = [end(1, ReplayOutcome::DeadAgain), end(3, ReplayOutcome::Delivered)];
        let (key, bytes) = write_ends("/a/b/", "j", &ends);
        assert!(key.starts_with("a/b/_replays/j/ends/") && key.ends_with(".ndjson"), "{key}");
        let turned = [ends[1].clone(), ends[0].clone()];
        assert_eq!(write_ends("/a/b/", "j", &turned).0, key);
        assert_ne!(write_ends("/a/b/", "j", &ends[..1]).0, key);
        let read = read_ends(&bytes);
        let states: Vec<_> = read.iter().map(|end| (end.letter.as_u128(), end.state)).collect();
        assert_eq!(states, [(1, ReplayOutcome::DeadAgain), (3, ReplayOutcome::Delivered)]);
        assert_eq!(read[0].key.as_deref(), Some("dead/a/b/c/2026/1/2/3/x.json"));
        let newer = String::from_utf8(bytes).unwrap().replacen("\"v\":1", "\"v\":2", 1);
        assert_eq!(read_ends(newer.as_bytes()), read[1..]);
        assert_eq!(write_ends("", "j", &ends).0, key.trim_start_matches("a/b/"));
    }
}
