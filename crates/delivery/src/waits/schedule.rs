//! [`Schedule`]: the waits before retries, as a retry policy configures them.
//!
//! This module is separate because users configure only this part of a wait. [`super::retry_ms`]
//! adds jitter and the wait that the last response requires.

use std::sync::Arc;

/// The formula of the waits. `d` is the configured delay, and `k` is the number of the retry,
/// counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The wait is `d·k`: 1 2 3 4 5 s for PT1S (Knative, read literally).
    Linear {
        /// The delay `d` in milliseconds.
        delay_ms: u64,
    },
    /// The wait is `d·2^k`: 2 4 8 16 32 s for PT1S (Knative, `backoffDelay*2^<numberOfRetries>`).
    Exponential {
        /// The delay `d` in milliseconds.
        delay_ms: u64,
    },
    /// The wait is `d·(k−1)`: 0 1 2 3 4 s for PT1S (Knative's core dispatcher numbers from zero).
    LinearFromZero {
        /// The delay `d` in milliseconds.
        delay_ms: u64,
    },
    /// The wait is `d·2^(k−1)`: 1 2 4 8 16 s for PT1S (Knative's core dispatcher numbers from
    /// zero).
    ExponentialFromZero {
        /// The delay `d` in milliseconds.
        delay_ms: u64,
    },
    /// Every wait is `d`.
    Constant {
        /// The delay `d` in milliseconds.
        delay_ms: u64,
    },
    /// The waits are a list, whose last wait repeats (Event Grid: 10s 30s 1m 5m 10m 30m 1h 3h 6h,
    /// then 12h each).
    Waits {
        /// The waits in milliseconds; never empty.
        waits_ms: Arc<[u64]>,
    },
    /// The attempts are at listed times since the first attempt. After the last time, the last
    /// interval repeats (Event Grid namespaces: 10s 30s 1m 5m 10m, then every 5m). No time is
    /// skipped: a retry whose time has passed is due at once.
    Moments {
        /// Times since the first attempt in milliseconds, ascending; never empty.
        moments_ms: Arc<[u64]>,
    },
}

/// The formula of the waits, and their optional maximum.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// The formula that determines each wait.
    pub kind: Kind,
    /// Maximum wait in milliseconds (`max`, `backoffMax`). It does not limit the wait that a
    /// response requires.
    pub max_ms: Option<u64>,
}

/// The times in a delivery that its next wait depends on.
#[derive(Debug, Clone, Copy)]
pub struct Moments {
    /// Start of the delivery's first attempt, in milliseconds since 1970.
    pub first_attempt_ms: u64,
    /// Time of the last outcome, at which the wait begins, in milliseconds since 1970.
    pub outcome_ms: u64,
}

impl Schedule {
    /// Returns the wait before retry `k` (counted from 1) in milliseconds, without minimum waits
    /// and jitter.
    #[must_use]
    pub fn wait_ms(&self, k: u32, moments: Moments) -> u64 {
        let before = k.saturating_sub(1);
        let wait = match &self.kind {
            Kind::Linear { delay_ms } => delay_ms.saturating_mul(u64::from(k)),
            Kind::Exponential { delay_ms } => doubled(*delay_ms, k),
            Kind::LinearFromZero { delay_ms } => delay_ms.saturating_mul(u64::from(before)),
            Kind::ExponentialFromZero { delay_ms } => doubled(*delay_ms, before),
            Kind::Constant { delay_ms } => *delay_ms,
            Kind::Waits { waits_ms } => nth_or_last(waits_ms, before),
            Kind::Moments { moments_ms } => {
                let due_ms = moments.first_attempt_ms.saturating_add(nth_moment(moments_ms, k));
                due_ms.saturating_sub(moments.outcome_ms)
            }
        };
        wait.min(self.max_ms.unwrap_or(u64::MAX))
    }

    /// Returns the number of attempts that begin within `time_ms` if each attempt fails
    /// immediately. The result is at most `at_most`. Example: 402 for 14 days and a linear schedule
    /// of PT15S without a maximum wait.
    #[must_use]
    pub fn attempts_within(&self, time_ms: u64, at_most: u32) -> u32 {
        let mut now_ms = 0_u64;
        for retry in 1..at_most {
            let moments = Moments { first_attempt_ms: 0, outcome_ms: now_ms };
            now_ms = now_ms.saturating_add(self.wait_ms(retry, moments));
            if now_ms > time_ms {
                return retry;
            }
        }
        at_most
    }
}

fn doubled(delay_ms: u64, times: u32) -> u64 {
    // Zero stays zero, even if the factor overflows.
    2u64.checked_pow(times)
        .map_or(if delay_ms == 0 { 0 } else { u64::MAX }, |factor| delay_ms.saturating_mul(factor))
}

fn nth_or_last(list: &[u64], index: u32) -> u64 {
    let index = usize::try_from(index).unwrap_or(usize::MAX).min(list.len().saturating_sub(1));
    list.get(index).copied().unwrap_or(0)
}

/// Returns the time of retry `k` since the first attempt, in milliseconds. After the end of the
/// list, the last interval repeats.
fn nth_moment(moments_ms: &[u64], k: u32) -> u64 {
    let last_ms = moments_ms.last().copied().unwrap_or(0);
    let gap_ms = match moments_ms {
        [.., before_ms, last_ms] => last_ms.saturating_sub(*before_ms),
        _ => last_ms,
    };
    let length = u32::try_from(moments_ms.len()).unwrap_or(u32::MAX);
    let beyond = k.saturating_sub(length);
    if beyond == 0 {
        nth_or_last(moments_ms, k.saturating_sub(1))
    } else {
        last_ms.saturating_add(gap_ms.saturating_mul(u64::from(beyond)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::duration::MINUTE_MS;

    #[test]
    fn attempts_are_counted_as_long_as_their_waits_fit() {
        const DAYS_14_MS: u64 = 14 * 24 * 60 * MINUTE_MS;
        for (kind, fitting) in [
            (Kind::Linear { delay_ms: 15_000 }, 402),
            (Kind::LinearFromZero { delay_ms: 15_000 }, 403),
            // 2 + 4 + … + 2^19 s are 12.1 days.
            (Kind::Exponential { delay_ms: 1_000 }, 20),
            (Kind::ExponentialFromZero { delay_ms: 1_000 }, 21),
            (Kind::Constant { delay_ms: 24 * 60 * MINUTE_MS }, 15),
            (Kind::Constant { delay_ms: 0 }, 1_000),
        ] {
            let schedule = Schedule { kind, max_ms: None };
            assert_eq!(schedule.attempts_within(DAYS_14_MS, 1_000), fitting, "{schedule:?}");
        }
    }

    #[test]
    fn the_last_wait_of_a_list_repeats() {
        let schedule =
            Schedule { kind: Kind::Waits { waits_ms: [10, 30, 60].into() }, max_ms: None };
        let start = Moments { first_attempt_ms: 0, outcome_ms: 0 };
        let waits = [1, 2, 3, 4, 5].map(|k| schedule.wait_ms(k, start));
        assert_eq!(waits, [10, 30, 60, 60, 60]);
    }
}
