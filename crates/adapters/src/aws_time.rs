//! Corrects the clock of a process to the time of AWS.
//!
//! Separate because the rule is pure and the clock is not. Lambda computes the deadline of an
//! invocation by its own clock, so the invocation began at the deadline minus the function's
//! timeout.
//!
//! Promises: the clock of each process differs from the clock of AWS by at most [`TOLERATED_MS`],
//! plus the delay between the computation of a deadline and the start of its invocation.

use delivery::time::duration::SECOND_MS;

use crate::machine::Machine;
use crate::telemetry;

/// The tolerated clock error. An invocation may begin shortly after Lambda has computed its
/// deadline.
pub const TOLERATED_MS: u64 = 5 * SECOND_MS;
/// 1 January 2020. If an invocation seems to have started earlier, its deadline is not a real time:
/// `cargo lambda watch` sends the deadline 600,000, which is ten minutes after 1970 began.
const EARLIEST_MS: u64 = 1_577_836_800_000;

/// Corrects the clock of this process at the beginning of an invocation, and logs each change. Does
/// nothing if `timeout_ms`, the function's timeout, is unknown.
pub fn correct_clock(deadline_ms: u64, timeout_ms: Option<u64>) {
    let Some(aws_ms) = timeout_ms.and_then(|timeout_ms| began_ms(deadline_ms, timeout_ms)) else {
        return;
    };
    let (own_ms, before_ms) = (Machine.own_ms(), Machine::offset_ms());
    let offset_ms = offset_ms(own_ms, before_ms, aws_ms);
    if offset_ms != before_ms {
        Machine::set_offset_ms(offset_ms);
        telemetry::clock_corrected(offset_ms);
    }
}

/// Returns the start of the invocation by the clock of AWS; `None` if the deadline is not a real
/// time.
fn began_ms(deadline_ms: u64, timeout_ms: u64) -> Option<u64> {
    deadline_ms.checked_sub(timeout_ms).filter(|began_ms| *began_ms >= EARLIEST_MS)
}

/// Returns the correction of the machine's clock; 0 if that clock is right. The correction stays
/// the same while the corrected time is within the tolerance. Therefore a clock that is wrong by an
/// hour is corrected once, not by a new value in each invocation.
fn offset_ms(own_ms: u64, before_ms: i64, aws_ms: u64) -> i64 {
    let is_right = |now_ms: u64| now_ms.abs_diff(aws_ms) <= TOLERATED_MS;
    if is_right(own_ms) {
        0
    } else if is_right(own_ms.saturating_add_signed(before_ms)) {
        before_ms
    } else {
        signed(aws_ms).saturating_sub(signed(own_ms))
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_800_000_000_000;
    const HOUR_MS: i64 = 3_600_000;

    #[test]
    fn a_clock_is_corrected_only_if_it_is_wrong_by_more_than_five_seconds_and_once() {
        for (own_is_ahead_ms, before_ms, offset_ms) in [
            (0, 0, 0),
            // The invocation began a little later than its deadline was computed.
            (5_000, 0, 0),
            (5_001, 0, -5_001),
            (-5_000, 0, 0),
            (-5_001, 0, 5_001),
            (HOUR_MS, 0, -HOUR_MS),
            (-HOUR_MS, 0, HOUR_MS),
            // A later invocation with the same wrong clock.
            (HOUR_MS + 5_000, -HOUR_MS, -HOUR_MS),
            (HOUR_MS - 5_000, -HOUR_MS, -HOUR_MS),
            (HOUR_MS + 5_001, -HOUR_MS, -HOUR_MS - 5_001),
            // The clock was corrected, or is now wrong in the other direction.
            (100, -HOUR_MS, 0),
            (-HOUR_MS, -HOUR_MS, HOUR_MS),
        ] {
            let own_ms = NOW_MS.saturating_add_signed(own_is_ahead_ms);
            let found = super::offset_ms(own_ms, before_ms, NOW_MS);
            assert_eq!(found, offset_ms, "{own_is_ahead_ms} {before_ms}");
        }
    }

    #[test]
    fn a_clock_without_a_time_at_all_is_corrected_too() {
        assert_eq!(super::offset_ms(0, 0, NOW_MS), 1_800_000_000_000);
        assert_eq!(super::offset_ms(u64::MAX, 0, NOW_MS), 1_800_000_000_000 - i64::MAX);
    }

    #[test]
    fn an_invocation_began_at_its_deadline_less_the_timeout_if_that_is_a_time_of_day() {
        for (deadline_ms, timeout_ms, began) in [
            (NOW_MS + 120_000, 120_000, Some(NOW_MS)),
            // The deadline of `cargo lambda watch`.
            (600_000, 120_000, None),
            (600_000, 900_000, None),
            (0, 0, None),
            (EARLIEST_MS + 119_999, 120_000, None),
        ] {
            assert_eq!(began_ms(deadline_ms, timeout_ms), began, "{deadline_ms}");
        }
    }
}
