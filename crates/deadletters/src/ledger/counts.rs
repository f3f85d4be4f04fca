//! Counts the entries of a ledger: dead letters by state, and deliveries by result. Pure.
//!
//! Separate because several commands sum up jobs without keeping their entries.

use std::collections::BTreeMap;

use delivery::delivery::replay::ReplayOutcome;

use super::{JobHeader, LedgerEntry, ReplayEnds, ReplayState};

/// Numbers of dead letters in a job, by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayCounts {
    /// Number of dead letters in state [`ReplayState::Intent`].
    pub uncertain: u64,
    /// Number of dead letters in state [`ReplayState::Sent`].
    pub sent: u64,
    /// Number of dead letters in state [`ReplayState::Refused`].
    pub refused: u64,
    /// Number of dead letters in state [`ReplayState::Skipped`].
    pub skipped: u64,
    /// Number of dead letters in state [`ReplayState::Missing`].
    pub gone: u64,
    /// Number of dead letters in state [`ReplayState::Unfit`].
    pub unfit: u64,
    /// Number of dead letters in state [`ReplayState::Closed`].
    pub closed: u64,
}

impl ReplayCounts {
    /// Counts ledger entries by state.
    pub(crate) fn count<'a>(entries: impl IntoIterator<Item = &'a LedgerEntry>) -> Self {
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

    /// Returns the sum of these counts and `other`.
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

    /// Returns the number of dead letters that a resumed job leaves unchanged.
    #[must_use]
    pub fn finished(&self) -> u64 {
        self.sent + self.skipped + self.gone + self.unfit + self.closed
    }
}

/// Returns the numbers of the chunks that contain uncertain dead letters, each with the count of
/// these dead letters.
pub(crate) fn uncertain_chunks(chunks: &BTreeMap<u32, Vec<LedgerEntry>>) -> Vec<(u32, u64)> {
    let counted =
        chunks.iter().map(|(number, entries)| (*number, ReplayCounts::count(entries).uncertain));
    counted.filter(|(_, uncertain)| *uncertain > 0).collect()
}

/// Numbers of deliveries of a job, by result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndCounts {
    /// Number of deliveries with [`ReplayOutcome::Delivered`].
    pub delivered: u64,
    /// Number of deliveries with [`ReplayOutcome::DeadAgain`].
    pub dead_again: u64,
    /// Number of deliveries with [`ReplayOutcome::Dropped`].
    pub dropped: u64,
    /// Number of deliveries that were sent and have no result yet.
    pub under_way: u64,
    /// Number of deliveries without a result for longer than
    /// [`UNKNOWN_AFTER_MS`](crate::ledger::UNKNOWN_AFTER_MS).
    pub unknown: u64,
}

impl EndCounts {
    /// Counts the deliveries of these entries by result.
    #[must_use]
    pub fn count<'a>(
        entries: impl IntoIterator<Item = &'a LedgerEntry>,
        ends: &ReplayEnds,
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

    /// Returns the number of deliveries that have ended.
    #[must_use]
    pub fn ended(self) -> u64 {
        self.delivered + self.dead_again + self.dropped
    }
}

/// A replay job with its counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSummary {
    /// The header of the job.
    pub header: JobHeader,
    /// The numbers of dead letters by state.
    pub counts: ReplayCounts,
    /// The numbers of deliveries by result; all zero if the job does not record results.
    pub ends: EndCounts,
}

impl JobSummary {
    /// True if no dead letter of the job is left to send.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.counts.finished() == self.header.letters as u64
    }
}

impl JobHeader {
    /// True if the job records results and has skipped no dead letter. A skipped dead letter may
    /// have been sent earlier; the result of that delivery would then be counted too.
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
