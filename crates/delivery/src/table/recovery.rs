//! Recovering: after an outage a destination gets few requests a second at first, and more as long as it answers well.
//!
//! The item of its limits holds the rate and the results since the rate was changed last. Each process reports its results
//! when it reserves places for requests. Whoever finds the last change ten seconds old changes the rate in the same update.
//! So all processes keep to one rate, and no process has to live on.

use crate::time::duration::{HOUR_MS, MINUTE_MS, SECOND_MS};

/// The first rate, and the lowest.
pub const FIRST_RATE: u32 = 5;
/// At this rate the destination has recovered.
pub const LAST_RATE: u32 = 320;
/// The rate is changed this often.
const STEP_MS: u64 = 10 * SECOND_MS;
/// Without a request that had to wait, the destination has recovered after this time.
const QUIET_MS: u64 = 15 * MINUTE_MS;
/// After a relapse, the rate stays below a ceiling for this time.
const CEILING_MS: u64 = HOUR_MS;
/// A failure outweighs so many good responses: nine of ten have to be good.
const FAILURE_WEIGHT: i64 = 9;

/// The recovery of a destination, as its item has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// The end of the outage. A later one begins anew.
    pub began_ms: u64,
    /// Requests a second, from all processes together.
    pub rate: u32,
    /// The time of the last change of the rate.
    pub since_ms: u64,
    /// Good responses since then, less nine for each failure.
    pub score: i64,
    /// Good responses since then, less one for each failure.
    pub low: i64,
    /// The last time at which a request had to wait.
    pub waited_ms: u64,
    /// The highest rate after a relapse, and until when it holds.
    pub ceiling: Option<(u32, u64)>,
}

/// The results of the requests of one process since it reported last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Results {
    /// Responses that show that the destination works.
    pub good: u32,
    /// Failures that show that it may not.
    pub failed: u32,
}

/// What a process reports when it reserves places: its results, and the recovery as it knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// As an answer said, or a beginning.
    pub known: Recovery,
    /// Since the last report.
    pub results: Results,
}

impl Results {
    /// The change of [`Recovery::score`].
    #[must_use]
    pub fn score(self) -> i64 {
        i64::from(self.good) - FAILURE_WEIGHT * i64::from(self.failed)
    }

    /// The change of [`Recovery::low`].
    #[must_use]
    pub fn low(self) -> i64 {
        i64::from(self.good) - i64::from(self.failed)
    }
}

impl Recovery {
    /// A recovery from an outage that ended now. A ceiling of before still holds.
    #[must_use]
    pub fn beginning(ceiling: Option<(u32, u64)>, now_ms: u64) -> Self {
        let ceiling = ceiling.filter(|(_, until_ms)| now_ms < *until_ms);
        Self {
            began_ms: now_ms,
            rate: FIRST_RATE,
            since_ms: now_ms,
            score: 0,
            low: 0,
            waited_ms: now_ms,
            ceiling,
        }
    }

    /// The recovery that an item holds after a report. `Err` has the one of the item, if the reporter does not know it as
    /// it is.
    ///
    /// # Errors
    /// The recovery of the item.
    pub fn reported(item: Option<Self>, report: &Report, now_ms: u64) -> Result<Self, Self> {
        let Report { known, results } = *report;
        let Some(item) = item.filter(|item| item.began_ms >= known.began_ms) else {
            return Ok(known.after(results, now_ms));
        };
        let is_known = (item.began_ms, item.since_ms) == (known.began_ms, known.since_ms);
        let is_same = (item.score, item.low) == (known.score, known.low);
        // Results add up whatever they are; a change of the rate depends on all of them.
        if is_known && (is_same || !known.changes_at(now_ms)) {
            return Ok(item.after(results, now_ms));
        }
        Err(item)
    }

    /// True if a report of this time changes the rate.
    #[must_use]
    pub fn changes_at(self, now_ms: u64) -> bool {
        now_ms >= self.since_ms.saturating_add(STEP_MS)
    }

    /// The recovery after a process has reported its results, and with a changed rate if it is time for one.
    #[must_use]
    pub fn after(self, results: Results, now_ms: u64) -> Self {
        let (score, low) = (self.score + results.score(), self.low + results.low());
        if !self.changes_at(now_ms) {
            return Self { score, low, ..self };
        }
        let rate = match (score >= 0, low < 0) {
            (true, _) => self.rate.saturating_mul(2),
            (false, true) => self.rate / 2,
            (false, false) => self.rate,
        };
        let highest = self.ceiling.filter(|(_, until_ms)| now_ms < *until_ms);
        let highest = highest.map_or(LAST_RATE, |(rate, _)| rate.min(LAST_RATE));
        let rate = rate.clamp(FIRST_RATE, highest.max(FIRST_RATE));
        Self { rate, since_ms: now_ms, score: 0, low: 0, ..self }
    }

    /// The ceiling that a relapse now leaves.
    #[must_use]
    pub fn ceiling_after_relapse(self, now_ms: u64) -> (u32, u64) {
        ((self.rate / 2).max(FIRST_RATE), now_ms.saturating_add(CEILING_MS))
    }

    /// True once the destination needs no protection any more.
    #[must_use]
    pub fn is_over(self, now_ms: u64) -> bool {
        self.rate >= LAST_RATE || now_ms >= self.waited_ms.saturating_add(QUIET_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_000_000;

    fn results(good: u32, failed: u32) -> Results {
        Results { good, failed }
    }

    #[test]
    fn the_rate_doubles_every_ten_seconds_while_nine_of_ten_are_good() {
        let mut recovery = Recovery::beginning(None, NOW_MS);
        let mut rates = vec![recovery.rate];
        for step in 1..=7 {
            recovery = recovery.after(results(9, 1), NOW_MS + step * STEP_MS);
            rates.push(recovery.rate);
        }
        assert_eq!(rates, [5, 10, 20, 40, 80, 160, 320, 320]);
        assert!(recovery.is_over(NOW_MS + 7 * STEP_MS));
    }

    #[test]
    fn it_stays_where_more_fail_and_is_halved_where_most_do() {
        let at_40 = Recovery { rate: 40, ..Recovery::beginning(None, NOW_MS) };
        for (good, failed, rate) in
            [(0, 0, 80), (9, 1, 80), (8, 1, 40), (5, 5, 40), (4, 5, 20), (0, 1, 20)]
        {
            let changed = at_40.after(results(good, failed), NOW_MS + STEP_MS);
            assert_eq!(changed.rate, rate, "{good} good, {failed} failed");
            assert_eq!((changed.score, changed.low, changed.since_ms), (0, 0, NOW_MS + STEP_MS));
        }
        let lowest = Recovery::beginning(None, NOW_MS).after(results(0, 9), NOW_MS + STEP_MS);
        assert_eq!(lowest.rate, FIRST_RATE);
    }

    #[test]
    fn until_then_results_of_all_processes_add_up() {
        let recovery = Recovery::beginning(None, NOW_MS);
        let first = recovery.after(results(8, 0), NOW_MS + 1);
        let second = first.after(results(0, 1), NOW_MS + STEP_MS - 1);
        assert_eq!((second.rate, second.score, second.low), (FIRST_RATE, -1, 7));
        assert_eq!(second.after(results(1, 0), NOW_MS + STEP_MS).rate, 10);
    }

    #[test]
    fn a_relapse_leaves_a_ceiling_of_half_the_rate_for_an_hour() {
        let at_160 = Recovery { rate: 160, ..Recovery::beginning(None, NOW_MS) };
        let ceiling = at_160.ceiling_after_relapse(NOW_MS);
        assert_eq!(ceiling, (80, NOW_MS + HOUR_MS));
        let again = Recovery { rate: 80, ..Recovery::beginning(Some(ceiling), NOW_MS + 1) };
        assert_eq!(again.after(results(9, 0), NOW_MS + HOUR_MS - 1).rate, 80);
        assert_eq!(again.after(results(9, 0), NOW_MS + HOUR_MS).rate, 160);
        assert_eq!(Recovery::beginning(Some(ceiling), NOW_MS + HOUR_MS).ceiling, None);
    }

    #[test]
    fn whoever_does_not_know_the_recovery_as_it_is_learns_it_before_the_rate_changes() {
        let item = Recovery::beginning(None, NOW_MS).after(results(3, 0), NOW_MS + 1);
        let report = |known| Report { known, results: results(1, 0) };
        let known = Recovery::beginning(None, NOW_MS);
        let added = Recovery::reported(Some(item), &report(known), NOW_MS + 2);
        assert_eq!(added.map(|it| (it.rate, it.score)), Ok((FIRST_RATE, 4)));
        assert_eq!(Recovery::reported(Some(item), &report(known), NOW_MS + STEP_MS), Err(item));
        let changed = Recovery::reported(Some(item), &report(item), NOW_MS + STEP_MS);
        assert_eq!(changed.map(|it| (it.rate, it.score)), Ok((10, 0)));
        // One of a later outage is known to whoever saw its end, and replaces that of an earlier one.
        let later = Recovery::beginning(None, NOW_MS + 5_000);
        assert_eq!(Recovery::reported(Some(later), &report(known), NOW_MS + 5_001), Err(later));
        for earlier in [None, Some(item)] {
            let begun = Recovery::reported(earlier, &report(later), NOW_MS + 5_001);
            assert_eq!(begun.map(|it| (it.began_ms, it.score)), Ok((NOW_MS + 5_000, 1)));
        }
    }

    #[test]
    fn it_is_over_when_nobody_has_waited_for_a_quarter_of_an_hour() {
        let recovery = Recovery::beginning(None, NOW_MS);
        assert!(!recovery.is_over(NOW_MS + QUIET_MS - 1));
        assert!(recovery.is_over(NOW_MS + QUIET_MS));
    }
}
