//! Computes waits in SQS: delays of messages and visibility timeouts of records, in whole seconds.
//!
//! This module is separate because only these waits must respect the limits of SQS. Waits are
//! rounded up, because a message that is received early has to wait again.

use crate::time::duration::{HOUR_MS, SECOND_MS};

/// Maximum delay of one message. A longer wait consists of several messages.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
pub const DELAY_MAX_MS: u64 = 900 * SECOND_MS;
const DELAY_MAX_SECONDS: u64 = DELAY_MAX_MS / SECOND_MS;

/// Maximum visibility timeout that lastmile sets. SQS allows twelve hours from the receive, and one
/// hour is left for the invocation.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html>
const HIDDEN_MAX_MS: u64 = 11 * HOUR_MS;

/// Visibility timeout in seconds of a record that is too large to be re-enqueued with an attribute
/// of our programs.
pub const TOO_LARGE_SECONDS: u32 = 3_600;
/// Visibility timeout in seconds of the result of a replayed delivery that neither storage nor the
/// queue accepts.
pub const REPLAY_END_SECONDS: u32 = 300;

/// First visibility timeout in seconds of a record that returns to isolation.
const ISOLATED_SECONDS: u32 = 60;
/// Visibility timeout in seconds of the isolation queue itself, and the maximum for a returned
/// record.
const ISOLATED_MAX_SECONDS: u32 = 7_200;

/// Returns the delay in seconds of the next message for a wait. The delay is rounded up, and is at
/// most 900. A longer wait is divided into several equal delays. If it were divided into delays of
/// 900 s and a remainder, a long backlog would be received all at once, and late.
#[must_use]
pub fn delay_seconds(wait_ms: u64) -> u64 {
    // A remainder below one second is not a delay of its own, because the delivery waits for it
    // within the invocation.
    let delays = (wait_ms / SECOND_MS).div_ceil(DELAY_MAX_SECONDS).max(1);
    wait_ms.div_ceil(SECOND_MS).div_ceil(delays).min(DELAY_MAX_SECONDS)
}

/// Returns the visibility timeout of a record that waits in its queue, in whole seconds, rounded
/// up, at most 11 hours.
#[must_use]
pub fn hidden_seconds(wait_ms: u64) -> u32 {
    let seconds = wait_ms.min(HIDDEN_MAX_MS).div_ceil(SECOND_MS);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

/// Returns the visibility timeout in seconds of a record that returns to isolation after a failed
/// send. It depends on the receive count: 1 min at first, then twice as long each time, at most 2
/// hours. The first ten timeouts add up to about 8 hours.
///
/// A receive in isolation counts as a possible crash. With a constant wait, a harmless record would
/// become a dead letter if a queue refused messages for minutes.
#[must_use]
pub fn isolated_seconds(receives: u32) -> u32 {
    let doublings = receives.saturating_sub(1).min(7);
    (ISOLATED_SECONDS << doublings).min(ISOLATED_MAX_SECONDS)
}

/// Returns the visibility timeout in seconds of a record without an attempt that is too large to be
/// re-enqueued. It is one second per receive, at most 900.
#[must_use]
pub fn unattempted_seconds(receives: u32) -> u32 {
    u32::try_from(u64::from(receives).min(DELAY_MAX_SECONDS)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_becomes_whole_seconds_rounded_up_and_at_most_900() {
        for (wait_ms, seconds) in [
            (0, 0),
            (1, 1),
            (1_000, 1),
            (1_001, 2),
            (899_001, 900),
            (DELAY_MAX_MS, 900),
            (900_999, 900),
            (901_000, 451),
            (1_800_000, 900),
            (1_801_000, 601),
            (u64::MAX, 900),
        ] {
            assert_eq!(delay_seconds(wait_ms), seconds, "{wait_ms}");
        }
    }

    #[test]
    fn a_record_is_hidden_for_its_wait_rounded_up_and_at_most_11_hours() {
        for (wait_ms, seconds) in
            [(0, 0), (1, 1), (1_000, 1), (1_001, 2), (HIDDEN_MAX_MS, 39_600), (u64::MAX, 39_600)]
        {
            assert_eq!(hidden_seconds(wait_ms), seconds, "{wait_ms}");
        }
    }

    #[test]
    fn what_returns_to_isolation_is_hidden_twice_as_long_each_time_and_at_most_2_hours() {
        let minutes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, u32::MAX]
            .map(|receives| isolated_seconds(receives) / 60);
        assert_eq!(minutes, [1, 1, 2, 4, 8, 16, 32, 64, 120, 120, 120]);
    }

    #[test]
    fn what_was_not_attempted_in_time_is_hidden_a_second_longer_each_time() {
        for (receives, seconds) in [(0, 0), (1, 1), (10, 10), (900, 900), (901, 900)] {
            assert_eq!(unattempted_seconds(receives), seconds, "{receives}");
        }
    }
}
