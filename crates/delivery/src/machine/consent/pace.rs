//! Limits requests to a destination to approximately the allowed rate.
//!
//! Each function counts only its own requests. Its share of the rate ([`RateShare`]) is the allowed
//! rate divided by the maximum number of concurrent functions. A function never uses the shares of
//! idle functions. All functions together can exceed the rate only in a burst. A burst has at most
//! as many requests as the rate allows in ten seconds.
//!
//! Each waiting delivery gets its own slot, so that a hundred deliveries do not return at the same
//! time. A slot is a hint: a returning delivery is sent if the rate allows it, and is assigned a
//! new slot otherwise. The functions are pure: the time is an argument, and the whole state is two
//! timestamps.

use super::rate::Rate;
use crate::time::duration::SECOND_MS;
use crate::waits::DELAY_MAX_MS;

/// Burst size as a time: a burst has at most as many requests as the rate allows in ten seconds.
const BURST_MS: u64 = 10 * SECOND_MS;
const MINUTE_MS: u64 = 60 * SECOND_MS;

/// The share of one function in the allowed rate of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateShare {
    /// Minimum interval between two requests in milliseconds; 0 means no limit.
    interval_ms: u64,
}

impl RateShare {
    /// Divides a rate equally among this many concurrent functions, and returns the share of one.
    #[must_use]
    pub fn new(rate: Rate, functions: u32) -> Self {
        let interval_ms = match rate {
            Rate::Unlimited => 0,
            // The interval is rounded up, so that all shares together never exceed the rate.
            Rate::PerMinute(requests) => MINUTE_MS
                .saturating_mul(u64::from(functions.max(1)))
                .div_ceil(u64::from(requests.get())),
        };
        Self { interval_ms }
    }
}

/// The rate limiter of one destination in this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pace {
    /// Time until which the requests sent so far use up the rate, in milliseconds since 1970.
    reserved_until_ms: u64,
    /// Time of the last slot that a waiting delivery got, in milliseconds since 1970.
    last_slot_ms: u64,
}

impl Pace {
    /// Counts a request if it may be sent now. Otherwise reserves a later slot for it.
    ///
    /// # Errors
    /// The wait in milliseconds until the slot, at most 15 minutes.
    pub fn go(&mut self, share: RateShare, now_ms: u64) -> Result<(), u64> {
        let RateShare { interval_ms } = share;
        // If the rate is less than one request in ten seconds, there is no burst.
        let ahead_ms = BURST_MS.saturating_sub(interval_ms);
        if interval_ms == 0 || self.reserved_until_ms <= now_ms.saturating_add(ahead_ms) {
            self.reserved_until_ms = self.reserved_until_ms.max(now_ms).saturating_add(interval_ms);
            return Ok(());
        }
        let free_ms = self.reserved_until_ms.saturating_sub(ahead_ms);
        // SQS cannot delay a message by more than 15 minutes. For a delivery that returns before
        // its slot, this function is called again.
        let latest_ms = now_ms.saturating_add(DELAY_MAX_MS);
        self.last_slot_ms =
            free_ms.max(self.last_slot_ms.saturating_add(interval_ms)).min(latest_ms);
        Err(self.last_slot_ms.saturating_sub(now_ms))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BinaryHeap;

    use super::*;

    fn share(rate: &str, functions: u32) -> RateShare {
        RateShare::new(Rate::parse(rate).unwrap(), functions)
    }

    #[test]
    fn a_share_is_the_rate_divided_by_the_functions_that_may_run_at_once() {
        for (rate, functions, interval_ms) in [
            ("60", 1, 1_000),
            ("60", 0, 1_000),
            ("60", 60, 60_000),
            ("120", 60, 30_000),
            ("1", 60, 3_600_000),
            ("7", 1, 8_572),
            ("*", 60, 0),
            ("4294967295", 1, 1),
        ] {
            assert_eq!(share(rate, functions), RateShare { interval_ms }, "{rate} / {functions}");
        }
    }

    #[test]
    fn without_a_limit_everything_goes() {
        let mut pace = Pace::default();
        assert!((0..10_000).all(|_| pace.go(share("*", 60), 1).is_ok()));
    }

    #[test]
    fn a_slow_rate_is_one_request_after_the_other_and_slots_are_spread() {
        let (mut pace, share) = (Pace::default(), share("2", 1));
        let asked: Vec<Result<(), u64>> = (0..4).map(|_| pace.go(share, 1_000_000)).collect();
        assert_eq!(asked, [Ok(()), Err(30_000), Err(60_000), Err(90_000)]);
        assert_eq!(pace.go(share, 1_029_999), Err(90_001));
        assert_eq!(pace.go(share, 1_030_000), Ok(()));
        assert_eq!(pace.go(share, 1_060_000), Ok(()));
    }

    #[test]
    fn ten_seconds_worth_may_go_at_once_and_then_at_the_rate() {
        let (mut pace, share) = (Pace::default(), share("120", 1));
        assert_eq!((0..100).take_while(|_| pace.go(share, 5_000).is_ok()).count(), 20);
        assert_eq!((0..100).take_while(|_| pace.go(share, 6_000).is_ok()).count(), 2);
        assert_eq!((0..100).take_while(|_| pace.go(share, 3_600_000).is_ok()).count(), 20);
    }

    #[test]
    fn a_wait_is_never_longer_than_a_message_can_be_delayed() {
        let (mut pace, share) = (Pace::default(), share("1", 60));
        assert_eq!(pace.go(share, 0), Ok(()));
        assert!((0..100).all(|_| pace.go(share, 1).is_err_and(|wait_ms| wait_ms <= 900_000)));
    }

    /// Simulates deliveries that return in their slots. Returns the number of requests in each
    /// minute, and the time of the last request.
    fn simulate(deliveries: usize, rate: &str) -> (Vec<u32>, u64) {
        let (mut pace, share) = (Pace::default(), share(rate, 1));
        let mut due: BinaryHeap<std::cmp::Reverse<u64>> =
            vec![std::cmp::Reverse(0); deliveries].into();
        let (mut minutes, mut last_ms) = (vec![0; 10_000], 0);
        while let Some(std::cmp::Reverse(now_ms)) = due.pop() {
            match pace.go(share, now_ms) {
                Ok(()) => {
                    minutes[usize::try_from(now_ms / MINUTE_MS).unwrap()] += 1;
                    last_ms = now_ms;
                }
                // SQS delays a message by whole seconds, so the wait is rounded up.
                Err(wait_ms) => {
                    due.push(std::cmp::Reverse(now_ms + wait_ms.div_ceil(1_000) * 1_000));
                }
            }
        }
        (minutes, last_ms)
    }

    #[test]
    fn many_deliveries_pass_at_about_the_rate_and_none_waits_for_ever() {
        for (rate, most, minutes) in [("60", 70, 18), ("6", 7, 180), ("600", 700, 3)] {
            let (per_minute, last_ms) = simulate(1_000, rate);
            assert!(per_minute.iter().all(|requests| *requests <= most), "{rate}: {per_minute:?}");
            assert!(last_ms <= minutes * MINUTE_MS, "{rate}: {last_ms}");
        }
    }
}
