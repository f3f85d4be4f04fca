//! Counts of a ledger: how many dead letters are in which state, and how many deliveries ended how. Pure.
//!
//! Separate because several verbs sum up jobs whose entries they do not keep.

use std::collections::BTreeMap;

use delivery::delivery::replay::ReplayOutcome;

use super::{Ends, JobHeader, LedgerEntry, ReplayState};

/// How many dead letters of a job are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayCounts {
    /// [`ReplayState::Intent`].
    pub uncertain: u64,
    /// [`ReplayState::Sent`].
    pub sent: u64,
    /// [`ReplayState::Refused`].
    pub refused: u64,
    /// [`ReplayState::Skipped`].
    pub skipped: u64,
    /// [`ReplayState::Missing`].
    pub gone: u64,
    /// [`ReplayState::Unfit`].
    pub unfit: u64,
    /// [`ReplayState::Closed`].
    pub closed: u64,
}

impl ReplayCounts {
    /// Counts these entries.
    pub(crate) fn of<'a>(entries: impl IntoIterator<Item = &'a LedgerEntry>) -> Self {
        let mut counts = Self::default();
        for entry in entries {
            *match entry.state {
                ReplayState::Intent => &mut counts.uncertain,
                ReplayState::Sent => &mut counts.sent,
                ReplayState::Refused => &mut counts.refused,
                ReplayState::Skipped => &mut counts.skipped,
                ReplayState::Missing => &mut counts.gone,
                ReplayState::Unfit => &mut counts.unfit,
                ReplayState::Closed => &mut counts.closed,
            } += 1;
        }
        counts
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            uncertain: self.uncertain + other.uncertain,
            sent: self.sent + other.sent,
            refused: self.refused + other.refused,
            skipped: self.skipped + other.skipped,
            gone: self.gone + other.gone,
            unfit: self.unfit + other.unfit,
            closed: self.closed + other.closed,
        }
    }

    /// Dead letters that a resume does not touch again.
    #[must_use]
    pub fn finished(&self) -> u64 {
        self.sent + self.skipped + self.gone + self.unfit + self.closed
    }
}

/// The chunks with uncertain dead letters, and how many of each.
pub(crate) fn uncertain_chunks(chunks: &BTreeMap<u32, Vec<LedgerEntry>>) -> Vec<(u32, u64)> {
    let counted =
        chunks.iter().map(|(number, entries)| (*number, ReplayCounts::of(entries).uncertain));
    counted.filter(|(_, uncertain)| *uncertain > 0).collect()
}

/// How many deliveries of a job ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndCounts {
    /// [`ReplayOutcome::Delivered`].
    pub delivered: u64,
    /// [`ReplayOutcome::DeadAgain`].
    pub dead_again: u64,
    /// [`ReplayOutcome::Dropped`].
    pub dropped: u64,
    /// Those that were sent and have not ended, as far as is known.
    pub under_way: u64,
    /// Those of which no end was reported within [`UNKNOWN_AFTER_MS`].
    pub unknown: u64,
}

impl EndCounts {
    /// Counts what became of the deliveries of these entries.
    #[must_use]
    pub fn of<'a>(
        entries: impl IntoIterator<Item = &'a LedgerEntry>,
        ends: &Ends,
        now_ms: u64,
    ) -> Self {
        let mut counts = Self::default();
        for entry in entries {
            let end = ends.get(&entry.letter).map(|end| end.state);
            *match (end.or(entry.end.as_ref().map(|end| end.state)), entry.state) {
                (Some(ReplayOutcome::Delivered), _) => &mut counts.delivered,
                (Some(ReplayOutcome::DeadAgain), _) => &mut counts.dead_again,
                (Some(ReplayOutcome::Dropped), _) => &mut counts.dropped,
                (None, ReplayState::Sent) if entry.is_overdue(now_ms) => &mut counts.unknown,
                (None, ReplayState::Sent) => &mut counts.under_way,
                (
                    None,
                    ReplayState::Intent
                    | ReplayState::Refused
                    | ReplayState::Skipped
                    | ReplayState::Missing
                    | ReplayState::Unfit
                    | ReplayState::Closed,
                ) => continue,
            } += 1;
        }
        counts
    }

    /// How many have ended.
    #[must_use]
    pub fn ended(self) -> u64 {
        self.delivered + self.dead_again + self.dropped
    }
}

/// A job, summed up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSummary {
    /// What the job is.
    pub header: JobHeader,
    /// How far it is.
    pub counts: ReplayCounts,
    /// What became of its deliveries; nothing where that is not recorded.
    pub ends: EndCounts,
}

impl JobSummary {
    /// Whether every dead letter is finished.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.counts.finished() == self.header.letters as u64
    }
}

impl JobHeader {
    /// Whether it is known what became of all that was sent. What was skipped may have been sent before: then
    /// its end cannot be told from those that are counted.
    #[must_use]
    pub fn has_results(&self, counts: &ReplayCounts) -> bool {
        self.results && counts.skipped == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::entry;

    #[test]
    fn only_chunks_with_uncertain_entries_are_named() {
        let chunks = BTreeMap::from([
            (1, vec![entry(1, ReplayState::Sent)]),
            (2, vec![entry(2, ReplayState::Intent), entry(3, ReplayState::Sent)]),
        ]);
        assert_eq!(uncertain_chunks(&chunks), [(2, 1)]);
    }
}
