//! Limits the time of an invocation.
//!
//! Work begins only if it can end before Lambda's deadline. The response timeout of an attempt is
//! cut so that a fresh invocation always has time for one attempt. Everything that follows an
//! attempt ends one second before the deadline.

use std::sync::atomic::{AtomicBool, Ordering};

use delivery::ports::Clock;

/// The maximum response timeout is the function's timeout minus this margin.
pub const RESPONSE_MARGIN_MS: u64 = 15_000;
/// Time that an attempt leaves before the deadline, even if the attempt times out.
/// [`ANSWER_MARGIN_MS`] is one of these nine seconds. Of the other eight, sending to the first
/// queue gets four, sending to the substitute queue two, and acknowledging two.
const FINISH_MARGIN_MS: u64 = 9_000;
/// Time before the deadline that is reserved for the response to Lambda. Dispatch sends no messages
/// in this time.
const ANSWER_MARGIN_MS: u64 = 1_000;
/// Minimum response timeout of an attempt, even if the function has a shorter timeout.
const RESPONSE_MIN_MS: u64 = 1_000;

/// The start of an invocation, and the time at which Lambda ends it.
#[derive(Debug)]
pub struct Deadline {
    started_ms: u64,
    ends_ms: Option<u64>,
    begun: AtomicBool,
}

impl Deadline {
    /// Creates a deadline. A `deadline_ms` before the start means no deadline: `cargo lambda watch`
    /// sends such values.
    #[must_use]
    pub fn new(started_ms: u64, deadline_ms: u64) -> Self {
        let ends_ms = Some(deadline_ms).filter(|deadline_ms| *deadline_ms > started_ms);
        Self { started_ms, ends_ms, begun: AtomicBool::new(false) }
    }

    /// Returns the time at which Lambda ends the invocation; `None` without a deadline.
    pub(crate) fn ends_ms(&self) -> Option<u64> {
        self.ends_ms
    }

    /// Returns the time at which all waiting stops, so that the remaining messages can be sent
    /// before the deadline.
    pub(crate) fn stops_ms(&self) -> u64 {
        self.ends_ms.map_or(u64::MAX, |ends_ms| ends_ms.saturating_sub(FINISH_MARGIN_MS))
    }

    /// Returns the time limit for one try to send a message: half of the time until the response to
    /// Lambda. Returns `None` without a deadline.
    pub(crate) fn share_ms(&self, now_ms: u64) -> Option<u64> {
        let answered_ms = self.ends_ms?.saturating_sub(ANSWER_MARGIN_MS);
        Some(answered_ms.saturating_sub(now_ms) / 2)
    }

    /// Runs `work` for at most half of the remaining time; returns `None` if `work` did not finish.
    pub(crate) async fn in_time<T>(
        &self,
        clock: &impl Clock,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let Some(share_ms) = self.share_ms(clock.now_ms()) else { return Some(work.await) };
        tokio::select! {
            // Work that completes immediately succeeds, even if no time is left.
            biased;
            done = work => Some(done),
            () = clock.sleep(share_ms) => None,
        }
    }

    /// Returns the response timeout of an attempt that begins now; `None` if too little time is
    /// left. The first attempt of an invocation always gets a timeout.
    pub(crate) fn begin(&self, now_ms: u64, wanted_ms: u64) -> Option<u64> {
        let Some(ends_ms) = self.ends_ms else { return Some(wanted_ms) };
        let whole_ms = ends_ms - self.started_ms;
        let timeout_ms =
            wanted_ms.min(whole_ms.saturating_sub(RESPONSE_MARGIN_MS).max(RESPONSE_MIN_MS));
        let left_ms = ends_ms.saturating_sub(now_ms).saturating_sub(FINISH_MARGIN_MS);
        // Relaxed ordering is enough: the flag publishes no other data.
        let first = !self.begun.swap(true, Ordering::Relaxed);
        match left_ms {
            left_ms if timeout_ms <= left_ms => Some(timeout_ms),
            // The timeout is cut instead of refused. Otherwise a record could return again and
            // again, until its queue moves it to the dead-letter queue.
            left_ms if first => Some(left_ms.max(RESPONSE_MIN_MS)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_timeout_is_cut_to_the_functions_timeout_less_fifteen_seconds() {
        assert_eq!(Deadline::new(1_000, 121_000).begin(1_000, 600_000), Some(105_000));
        assert_eq!(Deadline::new(1_000, 121_000).begin(1_000, 30_000), Some(30_000));
        assert_eq!(Deadline::new(1_000, 600).begin(1_000, 600_000), Some(600_000));
    }

    #[test]
    fn an_attempt_begins_only_if_it_can_end_in_time() {
        let deadline = Deadline::new(100_000, 120_000);
        assert_eq!(deadline.begin(106_000, 5_000), Some(5_000));
        assert_eq!(deadline.begin(106_001, 5_000), None);
    }

    #[test]
    fn a_fresh_invocation_always_begins_one_attempt_with_the_time_that_is_left() {
        assert_eq!(Deadline::new(100_000, 120_000).begin(109_000, 5_000), Some(2_000));
        assert_eq!(Deadline::new(100_000, 104_000).begin(103_000, 30_000), Some(1_000));
    }

    #[test]
    fn each_try_to_send_has_half_of_the_time_that_is_left() {
        let deadline = Deadline::new(100_000, 120_000);
        for (now_ms, share_ms) in [
            (100_000, 9_500),
            (120_000 - FINISH_MARGIN_MS, 4_000),
            (115_000, 2_000),
            (118_999, 0),
            (119_000, 0),
            (130_000, 0),
        ] {
            assert_eq!(deadline.share_ms(now_ms), Some(share_ms), "{now_ms}");
        }
        assert_eq!(Deadline::new(1_000, 600).share_ms(1_000), None);
    }
}
