//! Applies the `Retry-After` of one response to its destination: until the stated time, no delivery
//! is attempted there.
//!
//! Processes do not share this time, because each process receives such a response itself.

use super::probation::Deferral;
use crate::time::duration::MINUTE_MS;

/// Maximum duration over which waiting deliveries are spread after a `Retry-After`.
const SPREAD_MAX_MS: u64 = MINUTE_MS;

/// The latest end of a pause that a destination has requested with `Retry-After`.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestedWait {
    answered_ms: u64,
    until_ms: u64,
}

impl RequestedWait {
    /// Records a response with a `Retry-After`. A recorded wait that ends later is kept.
    pub fn note(&mut self, answered_ms: u64, wait_ms: u64) {
        let until_ms = answered_ms.saturating_add(wait_ms);
        if until_ms > self.until_ms {
            *self = Self { answered_ms, until_ms };
        }
    }

    /// Returns the range of times for the next try of a delivery; `None` if no wait remains.
    /// `most_ms` is the longest `Retry-After` that the delivery's policy obeys. After a long wait,
    /// deliveries are spread so that they do not arrive all at once.
    #[must_use]
    pub fn deferral(&self, most_ms: u64, now_ms: u64) -> Option<Deferral> {
        let until_ms = self.until_ms.min(self.answered_ms.saturating_add(most_ms));
        let left_ms = until_ms.checked_sub(now_ms).filter(|left_ms| *left_ms > 0)?;
        Some(Deferral { from_ms: until_ms, spread_ms: left_ms.min(SPREAD_MAX_MS) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_ms(wait: &RequestedWait, most_ms: u64, now_ms: u64) -> Option<u64> {
        wait.deferral(most_ms, now_ms).map(|deferral| deferral.from_ms)
    }

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
            let mut wait = RequestedWait::default();
            wait.note(1_000, 7_000);
            assert_eq!(from_ms(&wait, most_ms, now_ms), until_ms, "{most_ms} {now_ms}");
        }
        assert_eq!(from_ms(&RequestedWait::default(), 60_000, 1_000), None);
    }

    #[test]
    fn a_later_answer_prolongs_the_wait_and_never_shortens_it() {
        let mut wait = RequestedWait::default();
        wait.note(0, 7_000);
        wait.note(1_000, 1_000);
        assert_eq!(from_ms(&wait, u64::MAX, 1_000), Some(7_000));
        wait.note(2_000, 9_000);
        assert_eq!(from_ms(&wait, u64::MAX, 2_000), Some(11_000));
        assert_eq!(from_ms(&wait, u64::MAX, 11_000), None);
    }

    #[test]
    fn those_that_wait_come_back_within_as_long_as_they_waited_and_a_minute_at_most() {
        let mut wait = RequestedWait::default();
        wait.note(0, 600_000);
        for (now_ms, spread_ms) in [(0, 60_000), (570_000, 30_000), (599_000, 1_000)] {
            let deferral = Deferral { from_ms: 600_000, spread_ms };
            assert_eq!(wait.deferral(u64::MAX, now_ms), Some(deferral));
        }
    }
}
