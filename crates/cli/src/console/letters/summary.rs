//! Counts the matching dead letters of a page, and groups them by cause.

use adapters::machine::Machine;
use deadletters::cause::{Cause, Trend};
use deadletters::letter_cache::LetterCache;
use deadletters::stats::Stats;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::ports::Clock as _;

/// The dead letters that match a filter, counted and grouped.
pub(in crate::console) struct Summary<'a> {
    pub(in crate::console) letters: Vec<&'a StoredDeadLetter>,
    pub(in crate::console) stats: Stats,
    pub(in crate::console) causes: Vec<Cause>,
}

impl<'a> Summary<'a> {
    pub(in crate::console) fn new(letters: Vec<&'a StoredDeadLetter>, cache: &LetterCache) -> Self {
        let mut stats = Stats::default();
        letters.iter().for_each(|letter| stats.add(letter));
        let mut causes = cache.states.sorted(cache.by_cause(&letters), Machine.now_ms());
        // Causes that still receive dead letters come first. An old cause may be large, but is no
        // longer urgent. The sort is stable.
        causes.sort_by_key(|cause| !cause.is_set_aside && cause.trend == Trend::Over);
        Self { letters, stats, causes }
    }
}
