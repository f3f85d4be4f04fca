//! How long an invocation may go on.
//!
//! Work is begun only if it can end before Lambda ends us. An attempt's response timeout is cut so
//! that a fresh invocation always has time for one.

use std::sync::atomic::{AtomicBool, Ordering};

/// A response timeout is at most the function's timeout less this.
pub const RESPONSE_MARGIN_MS: u64 = 15_000;
/// No attempt begins unless it can time out and leave this much for sending messages: one call to a
/// queue, all tries together (`adapters::timeouts::OPERATION_TIMEOUT`), and the batch window
/// of the queue client.
const FINISH_MARGIN_MS: u64 = 9_000;
/// However short the function's timeout, a destination gets this long to answer.
const RESPONSE_MIN_MS: u64 = 1_000;

/// When an invocation began, and when Lambda ends it.
#[derive(Debug)]
pub struct Deadline {
    started_ms: u64,
    ends_ms: Option<u64>,
    begun: AtomicBool,
}

impl Deadline {
    /// Lambda's deadline; one in the past means that there is none (`cargo lambda watch` sends
    /// such).
    #[must_use]
    pub fn new(started_ms: u64, deadline_ms: u64) -> Self {
        let ends_ms = Some(deadline_ms).filter(|deadline_ms| *deadline_ms > started_ms);
        Self { started_ms, ends_ms, begun: AtomicBool::new(false) }
    }

    /// When Lambda ends the invocation, if it does.
    pub(crate) fn ends_ms(&self) -> Option<u64> {
        self.ends_ms
    }

    /// When nothing is waited for any more, so that what is left can still be sent.
    pub(crate) fn stops_ms(&self) -> u64 {
        self.ends_ms.map_or(u64::MAX, |ends_ms| ends_ms.saturating_sub(FINISH_MARGIN_MS))
    }

    /// The response timeout of an attempt that begins now, if one may; the first of an invocation
    /// always may.
    pub(crate) fn begin(&self, now_ms: u64, wanted_ms: u64) -> Option<u64> {
        let Some(ends_ms) = self.ends_ms else { return Some(wanted_ms) };
        let whole_ms = ends_ms - self.started_ms;
        let timeout_ms =
            wanted_ms.min(whole_ms.saturating_sub(RESPONSE_MARGIN_MS).max(RESPONSE_MIN_MS));
        let left_ms = ends_ms.saturating_sub(now_ms).saturating_sub(FINISH_MARGIN_MS);
        // Relaxed is enough: nothing else is published by it.
        let first = !self.begun.swap(true, Ordering::Relaxed);
        match left_ms {
            left_ms if timeout_ms <= left_ms => Some(timeout_ms),
            // Cut rather than refused, or a record could be returned until its queue gives it up.
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
    fn what_is_kept_free_for_sending_is_longer_than_a_call_may_take() {
        let operation_ms = adapters::timeouts::OPERATION_TIMEOUT.as_millis();
        assert!(
            u128::from(FINISH_MARGIN_MS) > operation_ms && RESPONSE_MARGIN_MS > FINISH_MARGIN_MS
        );
    }
}
