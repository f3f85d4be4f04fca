//! Slow destinations: whose deliveries are attempted in a queue of their own, so that no other
//! destination waits for their answers.
//!
//! A destination is slow once an answer took longer than its `slowAfter`, or was given up because
//! nothing else of its invocation was left to do. It stays slow for a while, longer each time it is
//! found slow again, and until it has answered in time a few times in a row. What one process knows,
//! others learn through [`shared`](super::shared).

use std::collections::HashMap;
use std::hash::Hash;

use super::Finding;
use super::shared::Spell;
use crate::time::duration::MINUTE_MS;

/// How long a destination counts as slow at first, and at most.
pub const FIRST_MS: u64 = 2 * MINUTE_MS;
/// See [`FIRST_MS`].
pub const LONGEST_MS: u64 = 10 * MINUTE_MS;
/// Answers in time, one after the other, that end it earlier.
pub const ANSWERS_IN_TIME: u32 = 5;
/// Destinations that are remembered; beyond them those whose time has passed are forgotten.
const REMEMBERED: usize = 1_000;

/// The slow destinations that one process knows.
#[derive(Debug)]
pub struct SlowDestinations<K>(HashMap<K, Slow>);

/// What is known of a slow destination.
#[derive(Debug, Clone, Copy)]
struct Slow {
    until_ms: u64,
    lasts_ms: u64,
    in_time: u32,
}

impl<K> Default for SlowDestinations<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash + Clone> SlowDestinations<K> {
    /// Whether others should not wait for it. When the time has passed, the next attempt shows
    /// whether it still is.
    #[must_use]
    pub fn is_slow(&self, destination: &K, now_ms: u64) -> bool {
        // Nearly always nothing is slow: then no address is hashed.
        !self.0.is_empty() && self.0.get(destination).is_some_and(|slow| now_ms < slow.until_ms)
    }

    /// Notes an answer that took longer than allowed, or one that was given up.
    pub fn note_slow(&mut self, destination: &K, now_ms: u64) -> Option<Finding> {
        let Some(slow) = self.0.get_mut(destination) else {
            if self.0.len() >= REMEMBERED {
                self.0.retain(|_, slow| now_ms < slow.until_ms);
            }
            self.0.insert(destination.clone(), Slow::lasting(FIRST_MS, now_ms));
            return Some(Finding::Began { lasts_ms: FIRST_MS });
        };
        slow.in_time = 0;
        // What began before it was known says nothing new.
        if now_ms < slow.until_ms {
            return None;
        }
        *slow = Slow::lasting(slow.lasts_ms.saturating_mul(2), now_ms);
        Some(Finding::GoesOn { lasts_ms: slow.lasts_ms })
    }

    /// Notes an answer in time.
    pub fn note_in_time(&mut self, destination: &K) -> Option<Finding> {
        if self.0.is_empty() {
            return None;
        }
        let slow = self.0.get_mut(destination)?;
        slow.in_time += 1;
        if slow.in_time < ANSWERS_IN_TIME {
            return None;
        }
        self.0.remove(destination);
        Some(Finding::Ended)
    }
}

impl<K: Eq + Hash + Clone> SlowDestinations<K> {
    /// Whether no destination is slow.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The destinations that were found to be slow.
    pub fn destinations(&self) -> impl Iterator<Item = &K> {
        self.0.keys()
    }

    /// Takes over what another process knows: that a destination is slow.
    pub fn adopt(&mut self, destination: &K, spell: Spell, now_ms: u64) {
        let Some(spell) = spell.at_most(LONGEST_MS, now_ms) else { return };
        let Spell { until_ms, lasts_ms, .. } = spell;
        let in_time = self.0.get(destination).map_or(0, |known| known.in_time);
        self.0.insert(destination.clone(), Slow { until_ms, lasts_ms, in_time });
    }

    /// Takes over what another process knows: that a destination is not slow any more.
    pub fn forget(&mut self, destination: &K) {
        self.0.remove(destination);
    }
}

impl Slow {
    fn lasting(lasts_ms: u64, now_ms: u64) -> Self {
        let lasts_ms = lasts_ms.min(LONGEST_MS);
        Self { until_ms: now_ms.saturating_add(lasts_ms), lasts_ms, in_time: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_slow_for_longer_each_time_up_to_ten_minutes() {
        let mut slow = SlowDestinations::default();
        let mut now_ms = 0;
        for lasts_ms in [120_000, 240_000, 480_000, 600_000, 600_000] {
            assert!(!slow.is_slow(&"d", now_ms));
            let found = match now_ms {
                0 => Finding::Began { lasts_ms },
                _ => Finding::GoesOn { lasts_ms },
            };
            assert_eq!(slow.note_slow(&"d", now_ms), Some(found));
            assert!(slow.is_slow(&"d", now_ms + lasts_ms - 1) && !slow.is_slow(&"e", now_ms));
            now_ms += lasts_ms;
        }
    }

    #[test]
    fn answers_that_were_under_way_when_it_became_slow_do_not_prolong_it() {
        let mut slow = SlowDestinations::default();
        assert!(slow.note_slow(&"d", 0).is_some());
        assert_eq!(slow.note_slow(&"d", FIRST_MS - 1), None);
        assert!(!slow.is_slow(&"d", FIRST_MS));
    }

    #[test]
    fn five_answers_in_time_in_a_row_end_it() {
        let mut slow = SlowDestinations::default();
        assert_eq!(slow.note_in_time(&"d"), None);
        slow.note_slow(&"d", 0);
        assert!((1..ANSWERS_IN_TIME).all(|_| slow.note_in_time(&"d").is_none()));
        slow.note_slow(&"d", 1);
        assert!((1..ANSWERS_IN_TIME).all(|_| slow.note_in_time(&"d").is_none()));
        assert!(slow.is_slow(&"d", 2));
        assert_eq!(slow.note_in_time(&"d"), Some(Finding::Ended));
        assert!(!slow.is_slow(&"d", 2));
        // From the beginning again.
        slow.note_slow(&"d", 3);
        assert!(!slow.is_slow(&"d", 3 + FIRST_MS));
    }

    #[test]
    fn destinations_whose_time_has_passed_are_forgotten_when_there_are_many() {
        let mut slow = SlowDestinations::default();
        (0..REMEMBERED).for_each(|number| _ = slow.note_slow(&number, 0));
        slow.note_slow(&REMEMBERED, FIRST_MS);
        assert_eq!(slow.0.len(), 1);
    }
}
