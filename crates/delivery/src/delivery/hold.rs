//! [`Hold`]: the waits of a record or a delivery that cannot be processed now.
//!
//! This module is separate because undivided records and deliveries count these waits in the same
//! way.

use serde::{Deserialize, Serialize};

use crate::waits;

/// Counts the waits since the last attempt, by cause, and stores the end of the wait for
/// subscriptions. The receive count of SQS is separate: it indicates crashes of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Hold {
    /// Number of waits because subscriptions could not be read.
    pub count: u32,
    /// Number of waits because an invocation had no time left, or because its process had the
    /// maximum number of requests in flight.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub turns: u32,
    /// Number of times the delivery was put back to wait for its start time. Only the first is
    /// logged.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub starts: u32,
    /// Number of slots that were reserved for the delivery within the rate limit of the
    /// destination. The delivery is due at the last slot.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slots: u32,
    /// Number of waits without a slot while the destination is recovering.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub away: u32,
    /// Number of waits for a permit of the destination. The first wait lasts until a permit is
    /// expected to be free.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub permits: u32,
    /// End of the wait for subscriptions, in milliseconds since 1970. A wait that is longer than
    /// one SQS delay takes several messages, so a message may arrive earlier.
    pub until_ms: u64,
}

impl Hold {
    /// Returns true if there was no wait since the last attempt.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a wait because subscriptions could not be read.
    #[must_use]
    pub fn next(self, now_ms: u64) -> Self {
        let until_ms = now_ms.saturating_add(waits::unknown_ms(self.count));
        Self { count: self.count.saturating_add(1), until_ms, ..self }
    }

    /// Adds a wait because an invocation had no time left, and returns its duration in
    /// milliseconds.
    #[must_use]
    pub fn next_turn(self) -> (Self, u64) {
        (Self { turns: self.turns.saturating_add(1), ..self }, waits::no_time_ms(self.turns))
    }

    /// Returns the remaining wait for subscriptions.
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
    use crate::time::duration::{MINUTE_MS, SECOND_MS};

    #[test]
    fn each_hold_is_counted_by_its_cause_and_waits_as_often_as_that_alone() {
        let (hold, wait_ms) = Hold::default().next(7).next_turn();
        assert_eq!((hold.count, hold.turns, hold.left_ms(7), wait_ms), (1, 1, 5 * MINUTE_MS, 0));
        let (hold, wait_ms) = hold.next_turn();
        assert_eq!((hold.next(7).left_ms(7), wait_ms), (10 * MINUTE_MS, SECOND_MS));
        let most = Hold { count: u32::MAX, turns: u32::MAX, ..hold };
        assert_eq!((most.next(u64::MAX).count, most.next_turn().0.turns), (u32::MAX, u32::MAX));
    }
}
