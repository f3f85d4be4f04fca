//! Counts the successes, failures and durations of attempts, by subscription and minute. Pure.
//!
//! Promises:
//!
//! - At most [`CELLS_MAX`] pairs of minute and subscription are stored, unless one minute has more.
//!   The oldest minutes are dropped first.
//! - A stored duration is at most 1/16 shorter than the measured duration.

use std::collections::BTreeMap;
use std::sync::Arc;

use delivery::time::duration::MINUTE_MS;

/// The maximum number of pairs of minute and subscription: a day for 14 subscriptions, or 20
/// minutes for 1,000.
const CELLS_MAX: usize = 20_000;
/// The number of leading bits of a duration that are stored. Durations below 32 ms are exact.
const KEPT_BITS: u32 = 5;

/// The statistics of attempts in a time range.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(in crate::console) struct Traffic {
    pub(in crate::console) successes: u64,
    pub(in crate::console) failures: u64,
    /// The number of attempts for each rounded duration in milliseconds.
    durations: BTreeMap<u64, u64>,
    /// The 95th percentile of durations, if another system computed it.
    given_p95_ms: Option<u64>,
}

impl Traffic {
    /// Creates statistics from counts and a percentile that another system has computed.
    pub(in crate::console) fn given(successes: u64, failures: u64, p95_ms: Option<u64>) -> Self {
        Self { successes, failures, durations: BTreeMap::new(), given_p95_ms: p95_ms }
    }

    pub(in crate::console) fn attempts(&self) -> u64 {
        self.successes + self.failures
    }

    /// Returns the success rate in percent, rounded down, so that 100 means that no attempt failed.
    /// Returns `None` without an attempt.
    pub(in crate::console) fn success_percent(&self) -> Option<u64> {
        (self.successes * 100).checked_div(self.attempts())
    }

    /// Returns the 95th percentile of durations: the duration that 95 of 100 attempts do not
    /// exceed.
    pub(in crate::console) fn p95_ms(&self) -> Option<u64> {
        let all: u64 = self.durations.values().sum();
        let rank = (all * 95).div_ceil(100);
        let mut seen = 0;
        let found = self.durations.iter().find(|(_, count)| {
            seen += **count;
            seen >= rank
        });
        found.map(|(ms, _)| *ms).or(self.given_p95_ms)
    }

    /// Adds the statistics of `other`. If another system computed both percentiles, keeps the
    /// higher one.
    pub(in crate::console) fn add(&mut self, other: &Self) {
        self.successes += other.successes;
        self.failures += other.failures;
        self.given_p95_ms = self.given_p95_ms.max(other.given_p95_ms);
        for (ms, count) in &other.durations {
            *self.durations.entry(*ms).or_default() += count;
        }
    }

    fn count(&mut self, is_success: bool, duration_ms: Option<u64>) {
        *if is_success { &mut self.successes } else { &mut self.failures } += 1;
        if let Some(ms) = duration_ms {
            *self.durations.entry(rounded(ms)).or_default() += 1;
        }
    }
}

/// Rounds a duration down to its leading bits, to limit the number of different values.
fn rounded(ms: u64) -> u64 {
    let dropped = (u64::BITS - ms.leading_zeros()).saturating_sub(KEPT_BITS);
    (ms >> dropped) << dropped
}

/// The statistics of all subscriptions, by minute.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    minutes: BTreeMap<u64, BTreeMap<Arc<str>, Traffic>>,
    cells: usize,
}

impl Recorded {
    /// Adds an attempt that ended at this time.
    pub(super) fn add(
        &mut self,
        at_ms: u64,
        subscription: &str,
        is_success: bool,
        duration_ms: Option<u64>,
    ) {
        let minute = self.minutes.entry(at_ms / MINUTE_MS).or_default();
        if let Some(known) = minute.get_mut(subscription) {
            return known.count(is_success, duration_ms);
        }
        let mut new = Traffic::default();
        new.count(is_success, duration_ms);
        minute.insert(subscription.into(), new);
        self.cells += 1;
        while self.cells > CELLS_MAX && self.minutes.len() > 1 {
            self.cells -= self.minutes.pop_first().map_or(0, |(_, dropped)| dropped.len());
        }
    }

    /// Returns the statistics of each subscription since the beginning of the minute that contains
    /// this time.
    pub(in crate::console) fn since(&self, since_ms: u64) -> BTreeMap<String, Traffic> {
        let mut all: BTreeMap<String, Traffic> = BTreeMap::new();
        for (name, traffic) in
            self.minutes.range(since_ms / MINUTE_MS..).flat_map(|(_, minute)| minute)
        {
            all.entry(name.to_string()).or_default().add(traffic);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_counted_since_a_minute_and_percentiles_span_minutes() {
        let mut recorded = Recorded::default();
        recorded.add(59_999, "a/b/c", true, Some(7));
        for number in 1..=100 {
            recorded.add(60_000 + number, "a/b/c", number > 4, Some(number));
        }
        let since = recorded.since(MINUTE_MS);
        let traffic = &since["a/b/c"];
        assert_eq!((traffic.attempts(), traffic.success_percent()), (100, Some(96)));
        // 95 has seven bits, and the highest five are kept.
        assert_eq!(traffic.p95_ms(), Some(92));
        assert_eq!(recorded.since(0)["a/b/c"].attempts(), 101);
        assert!(recorded.since(10 * MINUTE_MS).is_empty());
    }

    #[test]
    fn the_oldest_minutes_are_dropped_and_the_newest_stays() {
        let mut recorded = Recorded::default();
        for number in 0..CELLS_MAX + 10 {
            recorded.add(
                number as u64 / 100 * MINUTE_MS,
                &format!("a/b/{}", number % 100),
                true,
                None,
            );
        }
        assert!(recorded.cells <= CELLS_MAX, "{}", recorded.cells);
        assert_eq!(recorded.minutes.values().map(BTreeMap::len).sum::<usize>(), recorded.cells);
        assert!(!recorded.since((CELLS_MAX as u64 / 100) * MINUTE_MS).is_empty());
    }

    #[test]
    fn without_an_attempt_nothing_is_claimed() {
        let traffic = Traffic::default();
        assert_eq!((traffic.success_percent(), traffic.p95_ms()), (None, None));
        assert_eq!(Traffic::given(9, 1, Some(40)).p95_ms(), Some(40));
        assert_eq!([0, 31, 32, 33, 1_000].map(rounded), [0, 31, 32, 32, 992]);
    }
}
