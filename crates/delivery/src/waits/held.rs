//! Computes the waits of deliveries and records that are re-enqueued without an attempt.

use super::queue::DELAY_MAX_MS;
use crate::time::duration::{HOUR_MS, MINUTE_MS, SECOND_MS};

/// Waits before a message that this program cannot parse is received again. The last wait repeats.
/// The sum of these waits is half an hour, which is longer than a gradual deployment.
const UNREAD_WAITS_MS: [u64; 5] =
    [MINUTE_MS, 2 * MINUTE_MS, 4 * MINUTE_MS, 8 * MINUTE_MS, DELAY_MAX_MS];

/// Total time that a message waits until it counts as unreadable.
pub const UNREAD_MS: u64 = 30 * MINUTE_MS;

/// Time after a failed token request in which no other request is sent.
const TOKEN_MS: u64 = 5 * SECOND_MS;

/// Returns the wait in milliseconds of a record whose subscriptions cannot be read. `held` is the
/// number of earlier waits. The first wait is 5 min. Each later wait is twice as long as the
/// previous one, at most an hour.
#[must_use]
pub fn unknown_ms(held: u32) -> u64 {
    doubled(5 * MINUTE_MS, held).min(HOUR_MS)
}

/// Returns the wait in milliseconds of a delivery for which an invocation had no time. `turns` is
/// the number of earlier waits. The first wait is 0. Each later wait is 1 s longer than the
/// previous one, at most 30 s.
#[must_use]
pub fn no_time_ms(turns: u32) -> u64 {
    u64::from(turns.min(30)) * SECOND_MS
}

/// Returns the wait in milliseconds before the next check of a consent. It equals the time since
/// the delivery was due, but is at least 1 min and at most 15 min.
#[must_use]
pub fn consent_ms(waited_ms: u64) -> u64 {
    waited_ms.clamp(MINUTE_MS, DELAY_MAX_MS)
}

/// Returns the pause in milliseconds before the next handshake with a destination that did not
/// consent. `before_ms` is the previous pause. The first pause is 1 min. Each later pause is twice
/// as long as the previous one, at most 15 min.
#[must_use]
pub fn handshake_ms(before_ms: u64) -> u64 {
    before_ms.saturating_mul(2).clamp(MINUTE_MS, DELAY_MAX_MS)
}

/// Returns the wait in milliseconds of a message with an attribute of a newer version. `unread` is
/// the number of earlier re-enqueues. The waits are 1, 2, 4 and 8 min, then 15 min each.
#[must_use]
pub fn unread_ms(unread: u32) -> u64 {
    let index = (unread as usize).min(UNREAD_WAITS_MS.len() - 1);
    UNREAD_WAITS_MS[index]
}

/// Returns the total wait in milliseconds of a message after this many re-enqueues: half an hour
/// after five, an hour after seven.
#[must_use]
pub fn unread_for_ms(unread: u32) -> u64 {
    let first = UNREAD_WAITS_MS.iter().take(unread as usize).sum::<u64>();
    let others = u64::from(unread).saturating_sub(UNREAD_WAITS_MS.len() as u64);
    first.saturating_add(others.saturating_mul(DELAY_MAX_MS))
}

/// Returns the wait in milliseconds before the next token request. It is the rest of 5 s, counted
/// from the failed request.
#[must_use]
pub fn token_ms(since_asked_ms: u64) -> u64 {
    TOKEN_MS.saturating_sub(since_asked_ms)
}

fn doubled(first_ms: u64, times: u32) -> u64 {
    2_u64.checked_pow(times).map_or(u64::MAX, |factor| first_ms.saturating_mul(factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_decided_waits_longer_each_time_and_at_most_an_hour() {
        let minutes = [0, 1, 2, 3, 4, 5, u32::MAX].map(|held| unknown_ms(held) / MINUTE_MS);
        assert_eq!(minutes, [5, 10, 20, 40, 60, 60, 60]);
    }

    #[test]
    fn what_got_no_time_waits_at_most_thirty_seconds() {
        for (turns, seconds) in [(0, 0), (1, 1), (30, 30), (31, 30), (u32::MAX, 30)] {
            assert_eq!(no_time_ms(turns), seconds * SECOND_MS, "{turns}");
        }
    }

    #[test]
    fn a_delivery_without_consent_waits_a_minute_and_then_as_long_as_it_has_waited() {
        for (waited_ms, wait_ms) in [
            (0, 60_000),
            (59_000, 60_000),
            (60_000, 60_000),
            (120_000, 120_000),
            (500_000, 500_000),
            (9_000_000_000, 900_000),
        ] {
            assert_eq!(consent_ms(waited_ms), wait_ms, "{waited_ms}");
        }
    }

    #[test]
    fn handshakes_are_a_minute_apart_and_then_twice_as_long_each_time() {
        for (before_ms, pause_ms) in
            [(0, 60_000), (60_000, 120_000), (480_000, 900_000), (u64::MAX, 900_000)]
        {
            assert_eq!(handshake_ms(before_ms), pause_ms, "{before_ms}");
        }
    }

    #[test]
    fn what_cannot_be_read_waits_half_an_hour_in_all_and_each_wait_is_one_delay() {
        let waits: Vec<u64> =
            (0..).take_while(|unread| unread_for_ms(*unread) < UNREAD_MS).map(unread_ms).collect();
        assert_eq!(
            waits.iter().map(|wait_ms| wait_ms / MINUTE_MS).collect::<Vec<_>>(),
            [1, 2, 4, 8, 15]
        );
        assert_eq!(waits.iter().sum::<u64>(), UNREAD_MS);
        assert_eq!([0, 1, 5, 7].map(unread_for_ms), [0, MINUTE_MS, UNREAD_MS, HOUR_MS]);
        assert_eq!(unread_ms(99), DELAY_MAX_MS);
        assert!(unread_for_ms(u32::MAX) > HOUR_MS);
    }

    #[test]
    fn a_token_is_asked_for_again_after_five_seconds() {
        for (since_ms, wait_ms) in [(0, 5_000), (1, 4_999), (5_000, 0), (u64::MAX, 0)] {
            assert_eq!(token_ms(since_ms), wait_ms, "{since_ms}");
        }
    }
}
