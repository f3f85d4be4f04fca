//! [`History`]: the first and the last attempts of a delivery.
//!
//! This module is separate because the failed delivery of a dead letter to its sink has a history
//! too.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use super::outcome::Outcome;
use super::word::Word;

/// Number of first attempts that a history keeps.
pub const HISTORY_FIRST: usize = 5;
/// Number of last attempts that a history keeps.
pub const HISTORY_LAST: usize = 20;

/// One entry of a history: an attempt, or consecutive deferrals on probation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Start of the request, or of the first deferral, in milliseconds since 1970.
    pub at_ms: u64,
    /// The outcome of the attempt. An unknown value counts as a failed attempt.
    pub outcome: Word<Outcome>,
    /// The HTTP status of the response; `None` without a response.
    pub status: Option<u16>,
    /// Duration of the attempt in milliseconds.
    pub duration_ms: u64,
    /// Fields that only a newer version of the program defines. They are written again unchanged.
    pub more: BTreeMap<String, Value>,
}

impl Entry {
    /// Returns an entry without unknown fields.
    #[must_use]
    pub fn new(at_ms: u64, outcome: Outcome, status: Option<u16>, duration_ms: u64) -> Self {
        Self { at_ms, outcome: outcome.into(), status, duration_ms, more: BTreeMap::new() }
    }
}

/// The first and the last attempts of a delivery, and the number of attempts omitted between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    first: Vec<Entry>,
    omitted: u32,
    last: VecDeque<Entry>,
}

impl History {
    /// Restores a history from the entries in a message. `omitted` is the number of entries that
    /// were omitted before the message was sent.
    #[must_use]
    pub fn restore(entries: Vec<Entry>, omitted: u32) -> Self {
        let mut history = Self::default();
        for entry in entries {
            history.push(entry);
        }
        // `push` has also counted the entries that exceed the limits.
        history.omitted = history.omitted.saturating_add(omitted);
        history
    }

    /// Adds an entry as the newest. If the history is full, the oldest of the last entries is
    /// omitted.
    pub fn push(&mut self, entry: Entry) {
        if self.first.len() < HISTORY_FIRST {
            self.first.push(entry);
            return;
        }
        self.last.push_back(entry);
        if self.last.len() > HISTORY_LAST {
            self.last.pop_front();
            self.omitted = self.omitted.saturating_add(1);
        }
    }

    /// Returns the first entries, oldest first.
    #[must_use]
    pub fn first(&self) -> &[Entry] {
        &self.first
    }

    /// Returns the number of entries that were omitted between the first and the last.
    #[must_use]
    pub fn omitted(&self) -> u32 {
        self.omitted
    }

    /// Returns the last entries, after the omitted ones.
    pub fn last(&self) -> impl Iterator<Item = &Entry> {
        self.last.iter()
    }

    /// Returns the first attempt. Schedules with fixed times count from this attempt. It is never
    /// omitted, because at most one entry of probation precedes it.
    #[must_use]
    pub fn first_attempt(&self) -> Option<&Entry> {
        self.first.iter().find(|entry| entry.outcome != Outcome::Probation)
    }

    /// Returns the newest entry, which may be a deferral.
    #[must_use]
    pub fn newest(&self) -> Option<&Entry> {
        self.last.back().or_else(|| self.first.last())
    }

    /// Returns the newest attempt. Entries of probation are not attempts.
    #[must_use]
    pub fn newest_attempt(&self) -> Option<&Entry> {
        let newest_first = self.last.iter().rev().chain(self.first.iter().rev());
        newest_first.into_iter().find(|entry| entry.outcome != Outcome::Probation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at_ms: u64) -> Entry {
        Entry::new(at_ms, Outcome::Busy, Some(503), 1)
    }

    #[test]
    fn a_history_keeps_its_first_and_last_entries_and_counts_the_rest() {
        let mut history = History::default();
        for at_ms in 0..1_000 {
            history.push(entry(at_ms));
        }
        assert_eq!(
            history.first().iter().map(|entry| entry.at_ms).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4]
        );
        assert_eq!(history.omitted(), 975);
        assert_eq!(
            history.last().map(|entry| entry.at_ms).collect::<Vec<_>>(),
            (980..1_000).collect::<Vec<_>>()
        );
        let kept: Vec<Entry> = history.first().iter().chain(history.last()).cloned().collect();
        assert_eq!(History::restore(kept, history.omitted()), history);
    }

    #[test]
    fn the_first_attempt_stays_known_and_a_deferral_is_none() {
        let mut history = History::default();
        history.push(Entry::new(1, Outcome::Probation, None, 0));
        assert_eq!(history.first_attempt(), None);
        for at_ms in 2..1_000 {
            history.push(entry(at_ms));
        }
        assert_eq!(history.first_attempt().map(|entry| entry.at_ms), Some(2));
    }
}
