//! Retry-After of one answer holds for its destination: until when no delivery is attempted there.
//!
//! What one process was told, others do not know; each is told itself.

use std::collections::HashMap;
use std::hash::Hash;

/// Destinations that are remembered; beyond them those whose time has passed are forgotten.
const REMEMBERED: usize = 1_000;

/// The destinations that asked one process to wait.
#[derive(Debug)]
pub struct RequestedWaits<K>(HashMap<K, Requested>);

#[derive(Debug, Clone, Copy)]
struct Requested {
    answered_ms: u64,
    until_ms: u64,
}

impl<K> Default for RequestedWaits<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash + Clone> RequestedWaits<K> {
    /// Whether none asked to wait.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes an answer of this time that asks for such a wait. It shortens none that was asked for before.
    pub fn note(&mut self, destination: &K, answered_ms: u64, wait_ms: u64) {
        let until_ms = answered_ms.saturating_add(wait_ms);
        if self.0.get(destination).is_some_and(|known| known.until_ms >= until_ms) {
            return;
        }
        if self.0.len() >= REMEMBERED {
            self.0.retain(|_, known| answered_ms < known.until_ms);
        }
        self.0.insert(destination.clone(), Requested { answered_ms, until_ms });
    }

    /// Until when a delivery is not attempted whose policy obeys an answer for so long at most.
    pub fn until_ms(&mut self, destination: &K, most_ms: u64, now_ms: u64) -> Option<u64> {
        let known = self.0.get(destination)?;
        if now_ms >= known.until_ms {
            self.0.remove(destination);
            return None;
        }
        let until_ms = known.until_ms.min(known.answered_ms.saturating_add(most_ms));
        (now_ms < until_ms).then_some(until_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_left_alone_until_the_time_and_as_long_as_the_policy_obeys() {
        for (most_ms, now_ms, until_ms) in [
            (60_000, 1_000, Some(8_000)),
            (60_000, 7_999, Some(8_000)),
            (60_000, 8_000, None),
            (3_000, 1_000, Some(4_000)),
            (3_000, 4_000, None),
            (0, 1_000, None),
        ] {
            let mut waits = RequestedWaits::default();
            waits.note(&"d", 1_000, 7_000);
            assert_eq!(waits.until_ms(&"d", most_ms, now_ms), until_ms, "{most_ms} {now_ms}");
            assert_eq!(waits.until_ms(&"e", most_ms, now_ms), None);
        }
    }

    #[test]
    fn a_later_answer_prolongs_the_wait_and_never_shortens_it() {
        let mut waits = RequestedWaits::default();
        waits.note(&"d", 0, 7_000);
        waits.note(&"d", 1_000, 1_000);
        assert_eq!(waits.until_ms(&"d", u64::MAX, 1_000), Some(7_000));
        waits.note(&"d", 2_000, 9_000);
        assert_eq!(waits.until_ms(&"d", u64::MAX, 2_000), Some(11_000));
        assert_eq!(waits.until_ms(&"d", u64::MAX, 11_000), None);
        assert!(waits.is_empty());
    }

    #[test]
    fn those_whose_time_has_passed_are_forgotten_when_there_are_many() {
        let mut waits = RequestedWaits::default();
        (0..REMEMBERED).for_each(|number| waits.note(&number, 0, 1_000));
        waits.note(&REMEMBERED, 1_000, 1_000);
        assert_eq!(waits.0.len(), 1);
    }
}
