//! The waits of a record or a delivery that cannot be decided now.
//!
//! Separate because both count these waits alike, whether they were divided or not.

use serde::{Deserialize, Serialize};

use crate::time::duration::{HOUR_MS, MINUTE_MS, SECOND_MS};

/// How often something was re-enqueued without an attempt since its last one, by cause, and until when
/// it is held. Counted apart from receives, which say that a function may have crashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Hold {
    /// How often it was held until the subscriptions can be read.
    pub count: u32,
    /// How often an invocation had no time for it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub turns: u32,
    /// How many slots of its destination's rate it was given; the last one is when it is due.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slots: u32,
    /// How often it waited for a permit of its destination; the first time for its turn.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub permits: u32,
    /// Until when it is held; a message is received earlier if it is longer than one delay.
    pub until_ms: u64,
}

impl Hold {
    /// Whether it was never held.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The next hold of what cannot be decided before the subscriptions are readable: 5 min, then
    /// twice as long each time, at most an hour.
    #[must_use]
    pub fn next(self, now_ms: u64) -> Self {
        let wait_ms = (5 * MINUTE_MS).saturating_mul(1 << self.count.min(4)).min(HOUR_MS);
        let until_ms = now_ms.saturating_add(wait_ms);
        Self { count: self.count.saturating_add(1), until_ms, ..self }
    }

    /// The next hold of a delivery for which the invocation had no time: none at first, then one
    /// second longer each time, at most 30 s.
    #[must_use]
    pub fn next_turn(self, now_ms: u64) -> Self {
        let until_ms = now_ms.saturating_add(u64::from(self.turns.min(30)) * SECOND_MS);
        Self { turns: self.turns.saturating_add(1), until_ms, ..self }
    }

    /// How much of it is left.
    #[must_use]
    pub fn left_ms(self, now_ms: u64) -> u64 {
        self.until_ms.saturating_sub(now_ms)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
pub(crate) fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_decided_waits_longer_each_time_and_at_most_an_hour() {
        let (mut hold, mut now_ms, mut minutes) = (Hold::default(), 0, Vec::new());
        for _ in 0..6 {
            hold = hold.next(now_ms);
            minutes.push(hold.left_ms(now_ms) / MINUTE_MS);
            now_ms = hold.until_ms;
        }
        assert_eq!(minutes, [5, 10, 20, 40, 60, 60]);
        assert_eq!(Hold { count: u32::MAX, ..hold }.next(u64::MAX).count, u32::MAX);
    }

    #[test]
    fn what_got_no_turn_waits_at_most_thirty_seconds() {
        for (turns, seconds) in [(0, 0), (1, 1), (30, 30), (99, 30)] {
            let hold = Hold { turns, ..Hold::default() };
            assert_eq!(hold.next_turn(7).left_ms(7), seconds * SECOND_MS);
        }
    }
}
