//! The sums of the matching dead letters.

use adapters::machine::Machine;
use deadletters::cause::{Cause, Causes};
use deadletters::stats::Stats;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::ports::Clock as _;

/// The matching dead letters, counted and grouped.
pub(super) struct Summary<'a> {
    pub(super) letters: Vec<&'a StoredDeadLetter>,
    pub(super) stats: Stats,
    pub(super) causes: Vec<Cause>,
}

impl<'a> Summary<'a> {
    pub(super) fn of(letters: Vec<&'a StoredDeadLetter>) -> Self {
        let (mut stats, mut causes) = (Stats::default(), Causes::default());
        for letter in &letters {
            stats.add(letter);
            causes.add(letter);
        }
        Self { letters, stats, causes: causes.sorted(Machine.now_ms()) }
    }
}
