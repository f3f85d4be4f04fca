//! How long an invocation may go on.
//!
//! Work is begun only if it can end before Lambda ends us. An attempt's response timeout is cut so that a fresh
//! invocation always has time for one.

/// A response timeout is at most the function's timeout less this.
const RESPONSE_MARGIN_MS: u64 = 15_000;
/// No attempt begins unless it can time out and leave this much for sending messages.
const FINISH_MARGIN_MS: u64 = 5_000;
/// However short the function's timeout, a destination gets this long to answer.
const RESPONSE_MIN_MS: u64 = 1_000;

/// When an invocation began, and when Lambda ends it.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    started_ms: u64,
    ends_ms: Option<u64>,
}

impl Deadline {
    /// The deadline Lambda tells; one in the past means that nobody knows (`cargo lambda watch` sends such).
    #[must_use]
    pub fn new(started_ms: u64, told_ms: u64) -> Self {
        Self { started_ms, ends_ms: Some(told_ms).filter(|told_ms| *told_ms > started_ms) }
    }

    /// The longest response timeout of this invocation.
    pub(crate) fn response_timeout_max_ms(&self) -> u64 {
        let whole_ms = self.ends_ms.map_or(u64::MAX, |ends_ms| ends_ms - self.started_ms);
        whole_ms.saturating_sub(RESPONSE_MARGIN_MS).max(RESPONSE_MIN_MS)
    }

    /// Whether an attempt with this response timeout may begin now. At the start one always may.
    pub(crate) fn allows(&self, now_ms: u64, timeout_ms: u64) -> bool {
        let needed_ms = timeout_ms.saturating_add(FINISH_MARGIN_MS);
        let enough = self.ends_ms.is_none_or(|ends_ms| now_ms.saturating_add(needed_ms) <= ends_ms);
        enough || now_ms <= self.started_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_timeout_leaves_fifteen_seconds_and_is_at_least_one() {
        assert_eq!(Deadline::new(1_000, 121_000).response_timeout_max_ms(), 105_000);
        assert_eq!(Deadline::new(1_000, 4_000).response_timeout_max_ms(), 1_000);
        assert!(Deadline::new(1_000, 600).response_timeout_max_ms() > 1_000_000_000);
    }

    #[test]
    fn an_attempt_begins_only_if_it_can_end_in_time_but_a_fresh_invocation_always_begins_one() {
        let deadline = Deadline::new(100_000, 120_000);
        assert!(deadline.allows(110_000, 5_000));
        assert!(!deadline.allows(110_001, 5_000));
        assert!(deadline.allows(100_000, 60_000));
        assert!(Deadline::new(100_000, 0).allows(u64::MAX, 60_000));
    }
}
