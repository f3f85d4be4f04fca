//! Computes the waits before something is repeated: an attempt, storing a dead letter, or sending a
//! message.

use crate::time::duration::{MINUTE_MS, SECOND_MS};

/// Maximum time from the due time of a delivery to its receive. The delay is rounded up to a whole
/// second, the batch window of retries adds a second, and polling takes a moment.
pub const ARRIVAL_MS: u64 = 3 * SECOND_MS;

/// Maximum number of times that a message is sent to one queue. The waits between these sends add
/// up to at most 3.1 s. After that, sending to another queue is better.
const SENDS_MAX: u32 = 6;
/// Maximum wait in milliseconds after the first failed send of a message.
const RESEND_MS: u64 = 100;

/// A random value for jitter: 0 adds nothing, and `u32::MAX` adds the maximum that the policy
/// allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jitter(pub u32);

impl Jitter {
    /// The value that adds no jitter, for explanations and tables.
    pub const NONE: Self = Self(0);
}

/// The jitter that is added to a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    /// Maximum addition, in percent of the wait.
    pub percent: u32,
    /// Random value that selects the addition between nothing and the maximum.
    pub jitter: Jitter,
}

impl Spread {
    /// Returns the wait with jitter, which never shortens the wait.
    fn apply(self, wait_ms: u64) -> u64 {
        // The product of a `u64` and two `u32` always fits into `u128`.
        let most = u128::from(wait_ms) * u128::from(self.percent);
        let extra = most * u128::from(self.jitter.0) / (100 * u128::from(u32::MAX));
        wait_ms.saturating_add(u64::try_from(extra).unwrap_or(u64::MAX))
    }
}

/// Returns the wait before the next attempt in milliseconds: `max(schedule, minimum wait)` plus
/// jitter.
///
/// `least_wait_ms` is the wait that the response requires: the minimum wait for its status, or the
/// capped `Retry-After`. `left_ms` is the remaining time to live of the delivery.
///
/// Jitter must not prevent a last attempt. If the wait without jitter ends within the time to live,
/// jitter extends the wait at most until [`ARRIVAL_MS`] before the end of the time to live. If the
/// wait ends later than that even without jitter, jitter adds nothing. Example: with a wait of
/// 10 min, 10 % jitter and 10 min 30 s left, jitter adds at most 27 s.
#[must_use]
pub fn retry_ms(scheduled_ms: u64, least_wait_ms: u64, spread: Spread, left_ms: u64) -> u64 {
    let wait_ms = scheduled_ms.max(least_wait_ms);
    let spread_ms = spread.apply(wait_ms);
    if wait_ms < left_ms {
        spread_ms.min(left_ms.saturating_sub(ARRIVAL_MS)).max(wait_ms)
    } else {
        // The delivery expires when it is due, like others of the same outage. Jitter spreads their
        // expirations too.
        spread_ms
    }
}

/// Returns the wait before the next try to store a dead letter that storage refused, given the time
/// since the decision to end the delivery.
///
/// Tries are due 10 s, 1 min and 5 min after the decision, then every 5 min (Event Grid namespaces,
/// "dead letter retry logic").
#[must_use]
pub fn storage_ms(since_decision_ms: u64) -> u64 {
    const EVERY_MS: u64 = 5 * MINUTE_MS;
    let next_ms = match since_decision_ms {
        0..10_000 => 10 * SECOND_MS,
        10_000..60_000 => MINUTE_MS,
        _ => (since_decision_ms / EVERY_MS).saturating_add(1).saturating_mul(EVERY_MS),
    };
    next_ms.saturating_sub(since_decision_ms)
}

/// Returns the wait before a message is sent to the same queue again, after this many tries; `None`
/// after the last one.
///
/// The wait is exponential back-off with full jitter, so that processes that were throttled
/// together do not retry together. It is up to 100 ms at first, then up to twice as long each time,
/// five times.
/// <https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/>
#[must_use]
pub fn resend_ms(tries: u32, jitter: Jitter) -> Option<u64> {
    let doublings = tries.checked_sub(1).filter(|_| tries < SENDS_MAX)?;
    let longest_ms = RESEND_MS << doublings;
    Some(longest_ms * u64::from(jitter.0) / u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Jitter = Jitter(u32::MAX);

    #[test]
    fn storage_is_tried_after_10_s_1_min_5_min_and_then_every_5_min() {
        let mut since_ms = 0;
        let mut tries = Vec::new();
        for _ in 0..6 {
            since_ms += storage_ms(since_ms);
            tries.push(since_ms / SECOND_MS);
        }
        assert_eq!(tries, [10, 60, 300, 600, 900, 1_200]);
        assert_eq!(storage_ms(7_000), 3_000);
    }

    #[test]
    fn a_message_is_sent_again_after_a_random_wait_that_doubles_until_the_tries_are_used_up() {
        let half = Jitter(u32::MAX / 2 + 1);
        for (tries, half_ms, longest_ms) in
            [(1, 50, 100), (2, 100, 200), (3, 200, 400), (4, 400, 800), (5, 800, 1_600)]
        {
            assert_eq!(resend_ms(tries, Jitter::NONE), Some(0));
            let waits = (resend_ms(tries, half), resend_ms(tries, FULL));
            assert_eq!(waits, (Some(half_ms), Some(longest_ms)));
        }
        for tries in [0, SENDS_MAX, u32::MAX] {
            assert_eq!(resend_ms(tries, FULL), None, "{tries}");
        }
    }
}
