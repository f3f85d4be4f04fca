//! The replay of a dead letter, and the known result of its delivery. Pure.
//!
//! Separate from the counts, because the state of a dead letter depends on one replay only.

use std::collections::HashMap;

use delivery::delivery::replay::{ReplayOutcome, StoredReplayEnd};
use delivery::subscription::profile::LIFETIME_MAX_MS;
use delivery::time::duration::DAY_MS;
use delivery::time::moment;
use uuid::Uuid;

use super::{JobHeader, KnownEnd, LedgerEntry, ReplayState, SUBSCRIPTION};
use crate::recorded::recorded_ms;

/// The results of the deliveries of a job, by dead letter.
pub type ReplayEnds = HashMap<Uuid, StoredReplayEnd>;

/// Maximum time until the result of a delivery is reported. The delivery takes at most 14 days, the
/// delivery of its dead letter to a sink another 14 days, retries of writes to storage three days,
/// and the report one day.
pub const UNKNOWN_AFTER_MS: u64 = 2 * LIFETIME_MAX_MS + 4 * DAY_MS;

/// The known progress of a replayed delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayEndState {
    /// The job does not record results.
    NotRecorded,
    /// The delivery has no result yet, but may still get one.
    UnderWay,
    /// No result was reported in time. The delivery may have succeeded or failed.
    Unknown,
    /// The delivery has ended with this result.
    Ended(KnownEnd),
}

/// The replay of one dead letter by one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayRecord {
    /// The name of the job.
    pub job: String,
    /// The entry of the dead letter in the ledger of the job.
    pub entry: LedgerEntry,
    /// The source of the delivery's result.
    pub ending: Ending,
}

/// The source of the results of a job's deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Reports of the functions, which are stored beside the ledger.
    Recorded,
    /// The response of the topic or URL: a delivery has ended as soon as its target accepts it.
    Accepted,
    /// No source: nothing reports the results of the job.
    Untold,
}

impl Ending {
    /// Determines the source of a job's results from the header of the job.
    #[must_use]
    pub(crate) fn from_header(header: &JobHeader) -> Self {
        match header.to == SUBSCRIPTION {
            _ if header.results => Self::Recorded,
            true => Self::Untold,
            false => Self::Accepted,
        }
    }
}

impl ReplayRecord {
    /// True if the job was interrupted while sending, so the dead letter may or may not have been
    /// sent.
    #[must_use]
    pub fn is_uncertain(&self) -> bool {
        self.entry.state == ReplayState::Intent
    }

    /// Returns the known progress of the delivery at `now_ms`.
    #[must_use]
    pub(crate) fn end_state(&self, now_ms: u64) -> ReplayEndState {
        match (&self.entry.end, self.ending) {
            (Some(end), _) => ReplayEndState::Ended(end.clone()),
            (None, Ending::Recorded) if !self.is_uncertain() => {
                if self.entry.is_overdue(now_ms) {
                    ReplayEndState::Unknown
                } else {
                    ReplayEndState::UnderWay
                }
            }
            (None, _) => ReplayEndState::NotRecorded,
        }
    }
}

impl LedgerEntry {
    /// True if the dead letter was sent, and no result can be expected any more.
    #[must_use]
    pub fn is_end_unknown(&self, now_ms: u64) -> bool {
        self.state == ReplayState::Sent && self.is_overdue(now_ms)
    }

    /// True if a delivery that was sent at the time of this entry must have ended by `now_ms`.
    pub(crate) fn is_overdue(&self, now_ms: u64) -> bool {
        let sent_ms = moment::parse(&self.at);
        sent_ms.is_some_and(|sent_ms| now_ms.saturating_sub(sent_ms) > UNKNOWN_AFTER_MS)
    }
}

/// Adds a record to `known` if it determines the state of its dead letter. A successful delivery
/// takes precedence; otherwise the newest replay counts. Replays that were certainly not sent are
/// ignored.
pub(crate) fn keep_latest(known: &mut HashMap<Uuid, ReplayRecord>, record: ReplayRecord) {
    let was_sent = matches!(record.entry.state, ReplayState::Sent | ReplayState::Intent);
    if !was_sent && record.entry.end.is_none() {
        return;
    }
    let is_delivered = |end: &KnownEnd| end.state == ReplayOutcome::Delivered;
    let rank = |candidate: &ReplayRecord| {
        let is_delivered = candidate.entry.end.as_ref().is_some_and(is_delivered);
        (is_delivered, recorded_ms(&candidate.entry.at), !candidate.is_uncertain())
    };
    match known.get(&record.entry.letter) {
        Some(other) if rank(other) >= rank(&record) => {}
        Some(_) | None => _ = known.insert(record.entry.letter, record),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::EndCounts;
    use crate::samples::entry;

    fn record(job: &str, entry: LedgerEntry) -> ReplayRecord {
        ReplayRecord { job: job.to_owned(), entry, ending: Ending::Recorded }
    }

    #[test]
    fn an_end_that_was_not_reported_in_the_longest_life_of_a_delivery_is_unknown_and_not_under_way()
    {
        let end = KnownEnd { state: ReplayOutcome::Delivered, at: moment::rfc3339(7) };
        let ended = LedgerEntry { end: Some(end.clone()), ..entry(2, ReplayState::Sent) };
        let entries = [entry(1, ReplayState::Sent), ended, entry(3, ReplayState::Refused)];
        let state = |at: usize, now_ms| record("j", entries[at].clone()).end_state(now_ms);
        let at = |now_ms| {
            let EndCounts { delivered, under_way, unknown, .. } =
                EndCounts::count(&entries, &ReplayEnds::new(), now_ms);
            ((delivered, under_way, unknown), state(0, now_ms))
        };
        // The entries were sent in millisecond 7.
        assert_eq!(at(7 + UNKNOWN_AFTER_MS), ((1, 1, 0), ReplayEndState::UnderWay));
        assert_eq!(at(8 + UNKNOWN_AFTER_MS), ((1, 0, 1), ReplayEndState::Unknown));
        // A result that arrives later still counts.
        assert_eq!(state(1, u64::MAX), ReplayEndState::Ended(end));
    }

    #[test]
    fn of_entries_of_one_time_the_sent_one_counts_and_a_delivered_one_always() {
        let mut known = HashMap::new();
        for (job, state) in [
            ("a", ReplayState::Intent),
            ("b", ReplayState::Sent),
            ("c", ReplayState::Intent),
            ("d", ReplayState::Refused),
        ] {
            keep_latest(&mut known, record(job, entry(1, state)));
        }
        assert_eq!(known[&Uuid::from_u128(1)].job, "b");
        let later =
            |end| LedgerEntry { at: moment::rfc3339(8), end, ..entry(1, ReplayState::Intent) };
        keep_latest(&mut known, record("e", later(None)));
        assert_eq!(known[&Uuid::from_u128(1)].job, "e");
        let state = ReplayOutcome::Delivered;
        let end = Some(KnownEnd { state, at: moment::rfc3339(7) });
        keep_latest(&mut known, record("f", LedgerEntry { end, ..entry(1, ReplayState::Skipped) }));
        assert_eq!(known[&Uuid::from_u128(1)].job, "f");
        keep_latest(&mut known, record("g", later(None)));
        assert_eq!(known[&Uuid::from_u128(1)].job, "f");
    }
}
