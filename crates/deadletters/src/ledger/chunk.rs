//! Computes the ledger entries of a chunk when it is started or resumed. Pure.
//!
//! Separate because these rules decide whether a resumed job sends a dead letter again.

use std::collections::HashSet;

use delivery::time::moment;
use uuid::Uuid;

use super::{LedgerEntry, PlannedReplay, ReplayState, delivery_id};

/// Number of dead letters in a chunk: the maximum number of messages in one call of SQS.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html>
pub(crate) const CHUNK: usize = 10;

impl ReplayState {
    /// True if a resumed job leaves an entry with this state unchanged.
    fn is_final(self) -> bool {
        match self {
            Self::Sent | Self::Skipped | Self::Missing | Self::Unfit | Self::Closed => true,
            Self::Intent | Self::Refused => false,
        }
    }
}

/// Returns the entries of a chunk. The dead letters of entries with `intent` must be sent now.
pub(crate) fn start_chunk(
    job: &str,
    planned: &[PlannedReplay],
    before: Option<&[LedgerEntry]>,
    closed: &HashSet<Uuid>,
    skip_uncertain: bool,
    now_ms: u64,
) -> Vec<LedgerEntry> {
    let at = moment::rfc3339(now_ms);
    let entry = |planned: &PlannedReplay| {
        let letter = planned.letter();
        let existing = before.into_iter().flatten().find(|entry| entry.letter == letter);
        let new = |state| LedgerEntry {
            letter,
            delivery: delivery_id(job, letter),
            state,
            at: at.clone(),
            problem: None,
            end: None,
        };
        match existing {
            Some(entry) if entry.state.is_final() => entry.clone(),
            // A recorded result proves that the dead letter was sent.
            Some(entry) if entry.end.is_some() => {
                LedgerEntry { state: ReplayState::Sent, end: None, ..entry.clone() }
            }
            _ if closed.contains(&letter) => new(ReplayState::Closed),
            Some(LedgerEntry { state: ReplayState::Intent, .. }) if skip_uncertain => {
                new(ReplayState::Skipped)
            }
            Some(_) | None => new(ReplayState::Intent),
        }
    };
    planned.iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use delivery::delivery::replay::ReplayOutcome;

    use super::*;
    use crate::ledger::KnownEnd;
    use crate::samples::{entry, planned};

    #[test]
    fn finished_entries_are_kept_and_uncertain_ones_are_sent_again_unless_skipped() {
        let plan: Vec<PlannedReplay> = (1..=7).map(planned).collect();
        let states = [
            ReplayState::Intent,
            ReplayState::Sent,
            ReplayState::Refused,
            ReplayState::Skipped,
            ReplayState::Missing,
            ReplayState::Unfit,
        ];
        let before: Vec<LedgerEntry> =
            (1..).zip(states).map(|(number, state)| entry(number, state)).collect();
        let states = |skip| {
            start_chunk("j", &plan, Some(&before), &HashSet::new(), skip, 9)
                .iter()
                .map(|entry| entry.state)
                .collect::<Vec<_>>()
        };
        use ReplayState::{Intent, Missing, Sent, Skipped, Unfit};
        assert_eq!(states(false), [Intent, Sent, Intent, Skipped, Missing, Unfit, Intent]);
        assert_eq!(states(true), [Skipped, Sent, Intent, Skipped, Missing, Unfit, Intent]);
        let none = HashSet::new();
        let new = start_chunk("j", &plan, None, &none, true, 9);
        assert!(new.iter().all(|entry| entry.state == Intent));
        // Dead letters that others have closed are not sent. An entry in state `Sent` does not
        // change.
        let closed = HashSet::from([1, 2, 7].map(Uuid::from_u128));
        let states: Vec<_> = start_chunk("j", &plan, Some(&before), &closed, false, 9)
            .iter()
            .map(|entry| entry.state)
            .collect();
        use ReplayState::Closed;
        assert_eq!(states, [Closed, Sent, Intent, Skipped, Missing, Unfit, Closed]);
        // A recorded result proves that an uncertain dead letter was sent, so it is not sent again.
        let end = Some(KnownEnd { state: ReplayOutcome::Delivered, at: moment::rfc3339(8) });
        let ended = [LedgerEntry { end, ..entry(1, ReplayState::Intent) }];
        for skip in [false, true] {
            let started = start_chunk("j", &plan[..1], Some(&ended), &closed, skip, 9);
            assert_eq!(started, [entry(1, ReplayState::Sent)], "{skip}");
        }
    }
}
