//! The waits of deliveries and handshakes for a consent.
//!
//! Separate because a request that waits for its slot of the allowed rate has the same longest wait: the delay of a
//! message.

use crate::time::duration::SECOND_MS;

/// The shortest wait for a consent, and between two handshakes with one destination.
const WAIT_MIN_MS: u64 = 60 * SECOND_MS;
/// The longest delay of one SQS message.
pub(super) const WAIT_MAX_MS: u64 = 900 * SECOND_MS;

/// How long a delivery waits before its destination's consent is checked again: a minute at first,
/// then as long as it has waited already, at most 15 minutes.
#[must_use]
pub fn wait_ms(due_ms: u64, now_ms: u64) -> u64 {
    now_ms.saturating_sub(due_ms).clamp(WAIT_MIN_MS, WAIT_MAX_MS)
}

/// The pause before the next handshake with a destination that did not consent: a minute, then
/// twice as long each time, at most 15 minutes.
#[must_use]
pub fn pause_ms(before_ms: u64) -> u64 {
    before_ms.saturating_mul(2).clamp(WAIT_MIN_MS, WAIT_MAX_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_waits_a_minute_and_then_as_long_as_it_has_waited() {
        for (waited_ms, next_ms) in [
            (0, 60_000),
            (59_000, 60_000),
            (60_000, 60_000),
            (120_000, 120_000),
            (500_000, 500_000),
            (9_000_000_000, 900_000),
        ] {
            assert_eq!(wait_ms(1_000, 1_000 + waited_ms), next_ms);
        }
        assert_eq!(wait_ms(5_000, 1_000), 60_000);
        assert_eq!(
            [0, 60_000, 480_000, 900_000].map(pause_ms),
            [60_000, 120_000, 900_000, 900_000]
        );
    }
}
