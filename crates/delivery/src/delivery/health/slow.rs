//! Detects slow destinations. Their deliveries are attempted in a queue of their own, so that no
//! other destination waits for their responses.
//!
//! A destination becomes slow if a response takes longer than its `slowAfter`. It also becomes slow
//! if an attempt is abandoned because the invocation waits for nothing else. It stays slow until it
//! has responded in time for ten minutes. At most one attempt is abandoned in that time; all others
//! get their full timeout. Processes share slowness through [`shared`](super::shared).

use super::Finding;
use super::shared::Spell;
use crate::time::duration::MINUTE_MS;

/// Time after the last slow response before a response in time can end the slow period.
pub const LASTS_MS: u64 = 10 * MINUTE_MS;
/// Minimum time between two publications of a slow period that continues.
const PUBLISH_EVERY_MS: u64 = LASTS_MS / 2;

/// Records whether one destination is slow, as this process sees it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Slowness {
    spell: Option<SlowSpell>,
}

#[derive(Debug, Clone, Copy)]
struct SlowSpell {
    /// Time from which a response in time ends the slow period.
    until_ms: u64,
    /// End of the slow period that was last published to other processes.
    published_until_ms: u64,
    /// True if this process has abandoned an attempt in this slow period.
    has_abandoned: bool,
}

impl Slowness {
    /// Returns true if the destination is slow. Its deliveries then go to the slow lane.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        self.spell.is_some()
    }

    /// Returns true unless this process has abandoned an attempt in the current slow period.
    #[must_use]
    pub fn may_abandon(&self) -> bool {
        self.spell.is_none_or(|spell| !spell.has_abandoned)
    }

    /// Records that an attempt was abandoned. Returns the change to publish, if there is one.
    pub fn note_abandoned(&mut self, now_ms: u64) -> Option<Finding> {
        let found = self.note_slow(now_ms);
        if let Some(spell) = &mut self.spell {
            spell.has_abandoned = true;
        }
        found
    }

    /// Records a response that took longer than `slowAfter`. Returns the change to publish, if
    /// there is one.
    pub fn note_slow(&mut self, now_ms: u64) -> Option<Finding> {
        let until_ms = now_ms.saturating_add(LASTS_MS);
        let Some(spell) = &mut self.spell else {
            self.spell =
                Some(SlowSpell { until_ms, published_until_ms: until_ms, has_abandoned: false });
            return Some(Finding::Began { lasts_ms: LASTS_MS });
        };
        spell.until_ms = spell.until_ms.max(until_ms);
        if until_ms < spell.published_until_ms.saturating_add(PUBLISH_EVERY_MS) {
            return None;
        }
        spell.published_until_ms = until_ms;
        Some(Finding::GoesOn { lasts_ms: LASTS_MS })
    }

    /// Records a response within `slowAfter`. Returns the change to publish, if the slow period
    /// ends.
    pub fn note_in_time(&mut self, now_ms: u64) -> Option<Finding> {
        self.spell.take_if(|spell| now_ms >= spell.until_ms).map(|_| Finding::Ended)
    }

    /// Adopts a slow period that another process found.
    pub fn adopt(&mut self, spell: Spell, now_ms: u64) {
        let Some(Spell { until_ms, .. }) = spell.at_most(LASTS_MS, now_ms) else { return };
        let known = self.spell.get_or_insert(SlowSpell {
            until_ms,
            published_until_ms: until_ms,
            has_abandoned: false,
        });
        known.until_ms = known.until_ms.max(until_ms);
        known.published_until_ms = known.published_until_ms.max(until_ms);
    }

    /// Ends the slow period, because another process found its end.
    pub fn forget(&mut self) {
        self.spell = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGAN: Option<Finding> = Some(Finding::Began { lasts_ms: LASTS_MS });

    #[test]
    fn an_answer_in_time_ends_a_spell_ten_minutes_after_the_last_slow_one() {
        let mut slowness = Slowness::default();
        assert_eq!(slowness.note_in_time(0), None);
        assert_eq!(slowness.note_slow(1_000), BEGAN);
        assert_eq!(slowness.note_in_time(2_000), None);
        assert_eq!(slowness.note_slow(61_000), None);
        assert_eq!(slowness.note_in_time(60_999 + LASTS_MS), None);
        assert!(slowness.is_slow());
        assert_eq!(slowness.note_in_time(61_000 + LASTS_MS), Some(Finding::Ended));
        assert!(!slowness.is_slow());
    }

    #[test]
    fn without_an_answer_it_stays_slow() {
        let mut slowness = Slowness::default();
        assert_eq!(slowness.note_slow(0), BEGAN);
        assert_eq!(
            slowness.note_slow(100 * LASTS_MS),
            Some(Finding::GoesOn { lasts_ms: LASTS_MS })
        );
        assert!(slowness.is_slow());
    }

    #[test]
    fn one_attempt_of_a_spell_is_abandoned() {
        let mut slowness = Slowness::default();
        for spell in 0..2 {
            let now_ms = 10 * spell * LASTS_MS;
            assert!(slowness.may_abandon());
            assert_eq!(slowness.note_abandoned(now_ms), BEGAN);
            assert!(!slowness.may_abandon());
            assert_eq!(slowness.note_in_time(now_ms + LASTS_MS), Some(Finding::Ended));
        }
    }

    #[test]
    fn others_are_told_every_five_minutes_that_it_is_still_slow() {
        let mut slowness = Slowness::default();
        let publications =
            (0..1_200).filter(|second| slowness.note_slow(second * 1_000).is_some()).count();
        assert_eq!(publications, 4);
    }

    #[test]
    fn what_others_know_is_taken_over_unless_a_clock_is_wrong() {
        let mut slowness = Slowness::default();
        let spell = |until_ms| Spell { since_ms: 0, until_ms, lasts_ms: LASTS_MS };
        slowness.adopt(spell(100 * LASTS_MS), 0);
        assert!(!slowness.is_slow());
        slowness.adopt(spell(LASTS_MS), 1_000);
        assert!(slowness.is_slow() && slowness.may_abandon());
        assert_eq!(slowness.note_in_time(LASTS_MS - 1), None);
        slowness.forget();
        assert!(!slowness.is_slow());
    }
}
