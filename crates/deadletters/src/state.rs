//! The state of a dead letter. Pure.
//!
//! Blobs never change. Job ledgers and dismissals record the actions of people and replays. The
//! newest record decides the state; without a record the dead letter is open.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use delivery::delivery::replay::ReplayOutcome;
use serde::Serialize;
use uuid::Uuid;

use crate::cause::{Cause, CauseId, Causes};
use crate::dismissal::{Dismissal, Dismissals};
use crate::ledger::{Ending, ReplayRecord};
use crate::recorded::recorded_ms;
use crate::replayed::{Replayed, UnreadableLedger};

/// The state of a dead letter, from the newest record about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LetterState {
    /// A person has to act.
    Open,
    /// A replay has sent the dead letter, or may have sent it, and no result is known yet.
    Replaying,
    /// A replay has delivered the event.
    Delivered,
    /// The replay failed and became a new dead letter, which replaces this one.
    DeadAgain,
    /// A person decided that no action is needed.
    Dismissed,
}

impl LetterState {
    /// All states, in the order in which lists show them.
    pub const ALL: [Self; 5] =
        [Self::Open, Self::Replaying, Self::Delivered, Self::DeadAgain, Self::Dismissed];

    /// Returns the name of the state in options and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Replaying => "replaying",
            Self::Delivered => ReplayOutcome::Delivered.as_str(),
            Self::DeadAgain => ReplayOutcome::DeadAgain.as_str(),
            Self::Dismissed => "dismissed",
        }
    }
}

impl fmt::Display for LetterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A selection of states in a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedState {
    /// Dead letters in any state.
    All,
    /// Only dead letters in this state.
    Only(LetterState),
}

impl WantedState {
    /// True if the selection includes this state.
    #[must_use]
    pub fn is_of(self, state: LetterState) -> bool {
        match self {
            Self::All => true,
            Self::Only(wanted) => wanted == state,
        }
    }
}

impl FromStr for WantedState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        let state = LetterState::ALL.into_iter().find(|state| state.as_str() == text);
        state.map(Self::Only).ok_or_else(|| {
            let states = LetterState::ALL.map(LetterState::as_str).join(", ");
            format!("\"{text}\" is not a state: expected {states}, or all")
        })
    }
}

/// The states of the dead letters of a container, as far as its ledgers are readable.
#[derive(Debug, Clone, Default)]
pub struct LetterStates {
    replayed: Replayed,
    dismissals: Dismissals,
    now_ms: u64,
}

impl LetterStates {
    /// Creates the states at the time `now_ms`.
    #[must_use]
    pub fn new(replayed: Replayed, dismissals: Dismissals, now_ms: u64) -> Self {
        Self { replayed, dismissals, now_ms }
    }

    /// Returns the state of a dead letter.
    #[must_use]
    pub fn state(&self, letter: Uuid) -> LetterState {
        let replayed = self.replayed.get(&letter);
        let dismissal = self.dismissal_of(letter);
        let is_newer =
            |record: &ReplayRecord, at: &str| recorded_ms(&record.entry.at) > recorded_ms(at);
        match (replayed, dismissal) {
            (None, None) => LetterState::Open,
            (Some(record), None) => of_replay(record, self.now_ms),
            (Some(record), Some(dismissal)) if is_newer(record, &dismissal.at) => {
                of_replay(record, self.now_ms)
            }
            (_, Some(_)) => LetterState::Dismissed,
        }
    }

    /// True if another job has sent the dead letter, or a person has dismissed it, after the time
    /// `at`.
    pub(crate) fn is_closed_since(&self, letter: Uuid, job: &str, at: &str) -> bool {
        let is_newer = |other: &str| recorded_ms(other) > recorded_ms(at);
        let by_job = self.replay_of(letter).is_some_and(|record| {
            let state = of_replay(record, self.now_ms);
            record.job != job && is_newer(&record.entry.at) && state != LetterState::Open
        });
        by_job || self.dismissal_of(letter).is_some_and(|dismissal| is_newer(&dismissal.at))
    }

    /// Returns the unfinished job whose plan contains the dead letter.
    #[must_use]
    pub fn planned_by(&self, letter: Uuid) -> Option<&str> {
        self.replayed.planned.get(&letter).map(String::as_str)
    }

    /// Returns the newest replay of a dead letter.
    #[must_use]
    pub fn replay_of(&self, letter: Uuid) -> Option<&ReplayRecord> {
        self.replayed.get(&letter)
    }

    /// Returns the dismissal of a dead letter, unless it was withdrawn.
    #[must_use]
    pub fn dismissal_of(&self, letter: Uuid) -> Option<&Dismissal> {
        self.dismissals.get(letter).filter(|dismissal| !dismissal.is_taken_back)
    }

    /// Returns the time of the newest dismissal of a dead letter with this cause.
    #[must_use]
    pub fn cause_dismissed_ms(&self, cause: CauseId) -> Option<u64> {
        self.dismissals.cause_ms(cause)
    }

    /// Returns the causes as [`Causes::sorted`] does, and marks a cause as reopened if it has a
    /// dead letter newer than its dismissal.
    #[must_use]
    pub fn sorted(&self, causes: Causes, end_ms: u64) -> Vec<Cause> {
        let mut causes = causes.sorted(end_ms);
        for cause in &mut causes {
            let dismissed_ms = self.cause_dismissed_ms(cause.id);
            cause.is_reopened = dismissed_ms.is_some_and(|at_ms| cause.last_ms > Some(at_ms));
        }
        causes
    }

    /// Returns the keys of unreadable dismissals, which may name further dead letters.
    #[must_use]
    pub fn unreadable_dismissals(&self) -> &[String] {
        &self.dismissals.unreadable
    }

    /// Returns the unreadable ledgers. Dead letters of their jobs may count as open although they
    /// were replayed.
    #[must_use]
    pub fn unreadable(&self) -> &[UnreadableLedger] {
        &self.replayed.unreadable
    }

    /// Counts the dead letters of each state except open.
    #[must_use]
    pub fn known_counts(&self) -> Vec<(LetterState, u64)> {
        let known: HashSet<Uuid> =
            self.replayed.records.keys().copied().chain(self.dismissals.letters()).collect();
        let mut counts = self.counts(known);
        counts.retain(|(state, _)| *state != LetterState::Open);
        counts
    }

    /// Counts these dead letters by state, in the order of the states.
    #[must_use]
    pub fn counts(&self, letters: impl IntoIterator<Item = Uuid>) -> Vec<(LetterState, u64)> {
        let mut counts: HashMap<LetterState, u64> = HashMap::new();
        letters.into_iter().for_each(|letter| *counts.entry(self.state(letter)).or_default() += 1);
        let count = |state| Some((state, counts.get(&state).copied()?));
        LetterState::ALL.into_iter().filter_map(count).collect()
    }
}

/// Returns the state that a replay gives its dead letter.
fn of_replay(record: &ReplayRecord, now_ms: u64) -> LetterState {
    match (record.entry.end.as_ref().map(|end| end.state), record.ending) {
        (Some(ReplayOutcome::Delivered), _) => LetterState::Delivered,
        (Some(ReplayOutcome::DeadAgain), _) => LetterState::DeadAgain,
        // A dropped event left no new dead letter, so this one stays open.
        (Some(ReplayOutcome::Dropped), _) => LetterState::Open,
        (None, Ending::Accepted) if !record.is_uncertain() => LetterState::Delivered,
        (None, _) if record.entry.is_overdue(now_ms) => LetterState::Open,
        (None, _) => LetterState::Replaying,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use delivery::time::moment;

    use super::*;
    use crate::filter::Filter;
    use crate::ledger::{KnownEnd, LedgerEntry, ReplayState, UNKNOWN_AFTER_MS};

    const LETTER: Uuid = Uuid::from_u128(1);

    fn at(second: u8) -> String {
        format!("2026-11-20T07:00:0{second}.0000000Z")
    }

    fn states(delivered_at: Option<u8>, dismissals: Vec<Dismissal>) -> LetterStates {
        let record = delivered_at.map(|second| ReplayRecord {
            job: "j".to_owned(),
            entry: LedgerEntry {
                letter: LETTER,
                delivery: Uuid::from_u128(9),
                state: ReplayState::Sent,
                at: at(second),
                problem: None,
                end: Some(KnownEnd { state: ReplayOutcome::Delivered, at: at(second) }),
            },
            ending: Ending::Recorded,
        });
        let records = record.map(|record| (LETTER, record)).into_iter().collect();
        let replayed = Replayed { records, ..Replayed::default() };
        LetterStates::new(replayed, Dismissals::new(dismissals), 0)
    }

    #[test]
    fn the_newest_of_replay_and_dismissal_says_the_state() {
        let dismissed =
            |second| Dismissal::new(vec![LETTER], [], at(second), None, "known").unwrap();
        let back = |second| Dismissal::taken_back(vec![LETTER], at(second), None);
        for (delivered_at, dismissals, state) in [
            (None, vec![], LetterState::Open),
            (Some(1), vec![], LetterState::Delivered),
            (None, vec![dismissed(1)], LetterState::Dismissed),
            (None, vec![dismissed(1), back(2)], LetterState::Open),
            (Some(1), vec![dismissed(2)], LetterState::Dismissed),
            (Some(2), vec![dismissed(1)], LetterState::Delivered),
            (Some(1), vec![dismissed(2), back(3)], LetterState::Delivered),
        ] {
            let states = states(delivered_at, dismissals.clone());
            assert_eq!(states.state(LETTER), state, "{delivered_at:?} {dismissals:?}");
            assert_eq!(states.state(Uuid::from_u128(2)), LetterState::Open);
        }
    }

    #[test]
    fn the_end_of_a_replay_is_the_state_of_its_dead_letter() {
        use LetterState::{DeadAgain, Delivered, Open, Replaying};
        use ReplayState::{Intent, Sent};
        let late = 8 + UNKNOWN_AFTER_MS;
        for (ending, state, end, now_ms, of_letter) in [
            (Ending::Recorded, Sent, Some(ReplayOutcome::Delivered), 8, Delivered),
            (Ending::Recorded, Sent, Some(ReplayOutcome::DeadAgain), 8, DeadAgain),
            (Ending::Recorded, Sent, Some(ReplayOutcome::Dropped), 8, Open),
            (Ending::Recorded, Sent, None, 8, Replaying),
            (Ending::Recorded, Sent, None, late, Open),
            (Ending::Recorded, Intent, None, 8, Replaying),
            (Ending::Recorded, Intent, Some(ReplayOutcome::Delivered), 8, Delivered),
            (Ending::Accepted, Sent, None, late, Delivered),
            (Ending::Accepted, Intent, None, 8, Replaying),
            (Ending::Untold, Sent, None, 8, Replaying),
            (Ending::Untold, Sent, None, late, Open),
        ] {
            let end = end.map(|state| KnownEnd { state, at: moment::rfc3339(7) });
            let (letter, delivery, at) = (LETTER, Uuid::from_u128(9), moment::rfc3339(7));
            let entry = LedgerEntry { letter, delivery, state, at, problem: None, end };
            let record = ReplayRecord { job: "j".to_owned(), entry, ending };
            assert_eq!(of_replay(&record, now_ms), of_letter, "{record:?} {now_ms}");
        }
    }

    #[test]
    fn a_state_is_read_by_its_word_and_an_unknown_one_names_all() {
        for state in LetterState::ALL {
            assert_eq!(state.as_str().parse(), Ok(WantedState::Only(state)));
        }
        assert_eq!("all".parse(), Ok(WantedState::All));
        let unknown = "closed".parse::<WantedState>().unwrap_err();
        assert!(unknown.contains("open, replaying, delivered, dead-again, dismissed, or all"));
    }

    #[test]
    fn a_blob_is_skipped_where_its_key_tells_a_state_that_is_not_wanted() {
        let key = |id: Uuid| format!("a/b/c/2026/11/20/7/{id}.json");
        let filter = |wanted: &str| Filter {
            wanted_states: vec![wanted.parse().unwrap()],
            states: Arc::new(states(Some(1), Vec::new())),
            ..Filter::default()
        };
        let other = Uuid::from_u128(2);
        for (wanted, known, unknown) in
            [("open", false, true), ("delivered", true, false), ("all", true, true)]
        {
            assert_eq!(filter(wanted).has_wanted_key(&key(LETTER)), known, "{wanted}");
            assert_eq!(filter(wanted).has_wanted_key(&key(other)), unknown, "{wanted}");
        }
        assert!(!filter("open").is_of_any_state() && filter("all").is_of_any_state());
        assert!(Filter::default().is_of_any_state());
    }
}
