//! [`Recovery`]: after an outage, a destination gets few requests a second, and more while its
//! responses are good.
//!
//! The limits item of the destination has the rate, and the results since the last change of the
//! rate. Each process reports its results there, with each reservation and after each attempt. A
//! report at least ten seconds after the last change also changes the rate, in the same update. So
//! all processes share one rate, and no process has to stay alive.
//!
//! The next rate depends on the good responses per second. It does not depend on the previous rate,
//! because not all slots may have been used. Slots are granted less than one second ahead, because
//! a longer queue would keep an outdated rate. Deliveries without a slot are received again at
//! random times, about two for each slot.

use crate::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};

/// The first rate in requests a second, which is also the lowest. Even spacing and a little jitter
/// cause at most five requests in a second.
pub const FIRST_RATE: u32 = 4;
/// The rate in requests a second at which a destination counts as recovered.
pub const LAST_RATE: u32 = 320;
/// Interval between two changes of the rate. [`FALL`] consecutive failures change the rate earlier.
const STEP_MS: u64 = 10 * SECOND_MS;
/// Factors by which the rate of good responses is multiplied to get the next rate, in quarters. The
/// first applies if at least nine of ten responses are good, otherwise the second. The first factor
/// is much less than two, because the rate may be ten seconds old if few deliveries arrive.
const QUARTERS: (u64, u64) = (5, 4);
/// Number of consecutive failures, in all processes together, that change the rate immediately.
const FALL: u32 = 10;
/// Time without a waiting request after which a destination counts as recovered.
const QUIET_MS: u64 = 15 * MINUTE_MS;
/// Maximum duration of a recovery. It is a day because many waiting deliveries may take hours.
pub const RECOVERS_MAX_MS: u64 = DAY_MS;
/// The ceiling after a fall, in thirds of the rate at which most responses were failures. Rates
/// grow by a quarter, so four fifths of that rate worked shortly before.
const CEILING_THIRDS: u32 = 2;
/// Time for which a ceiling limits the rate.
const CEILING_MS: u64 = HOUR_MS;
/// Time after a new ceiling in which failures belong to the same fall, and do not lower the ceiling
/// further.
const FALL_MS: u64 = MINUTE_MS;
/// Number of good responses that outweigh one failure, so that nine of ten responses must be good.
const FAILURE_WEIGHT: u32 = 9;
/// Maximum time from now until the first of the granted slots starts.
pub const PLACES_WITHIN_MS: u64 = 500;
/// Maximum age of unused slots that are still granted. A process pauses between two batches, and
/// the rate would stop growing if the process lost the slots of each pause.
const PLACES_SINCE_MS: u64 = 100;
/// Minimum and maximum length of the range from which the delay of a delivery without a slot is
/// chosen.
const AWAY_MS: (u64, u64) = (2 * SECOND_MS, 15 * MINUTE_MS);

/// The recovery of a destination from an outage, as its item stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// Start of the recovery, at the end of the outage, in milliseconds since 1970. A later outage
    /// begins a new recovery.
    pub began_ms: u64,
    /// Current rate in requests a second, for all processes together.
    pub rate: u32,
    /// Time of the last change of the rate, in milliseconds since 1970.
    pub since_ms: u64,
    /// Number of good responses since the last change of the rate.
    pub good: u32,
    /// Number of failures since the last change of the rate.
    pub failed: u32,
    /// Number of consecutive failures since the last report with a good response.
    pub in_a_row: u32,
    /// Number of deliveries that were deferred without a slot and have not been received again yet.
    pub away: i64,
    /// Last time at which a delivery had to wait, in milliseconds since 1970.
    pub waited_ms: u64,
    /// Maximum rate after a fall, and the time at which this maximum expires.
    pub ceiling: Option<(u32, u64)>,
}

/// The results of one process since its last report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Results {
    /// Number of good responses since the last report.
    pub good: u32,
    /// Number of failures since the last report. Includes only failures that count against the
    /// destination.
    pub failed: u32,
    /// Number of deliveries that were deferred without a slot, minus the number of such deliveries
    /// that were received again and got a slot.
    pub away: i64,
    /// True if a delivery had to wait, either for its slot or without a slot.
    pub waits: bool,
}

/// The report of a process: its results, and its copy of the destination's recovery state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// The recovery from the last response of the table, or a new recovery.
    pub known: Recovery,
    /// The results since the last report.
    pub results: Results,
}

/// The change of an item that a report causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Adds the results to the counts in the item, even if these differ from the caller's copy. The
    /// rate stays unchanged.
    Add,
    /// Replaces the recovery in the item if it is exactly `old`.
    Replace {
        /// The recovery that the item contains; `None` if it contains none.
        old: Option<Recovery>,
        /// The recovery that the item contains afterwards.
        new: Recovery,
    },
}

impl Results {
    /// True if there are no results to report.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// Returns these results minus the results that were reported.
    #[must_use]
    pub fn without(self, reported: Self) -> Self {
        Self {
            good: self.good.saturating_sub(reported.good),
            failed: self.failed.saturating_sub(reported.failed),
            away: self.away.saturating_sub(reported.away),
            waits: self.waits && !reported.waits,
        }
    }
}

impl Recovery {
    /// Creates the recovery from an outage that ended at this time. A ceiling from an earlier
    /// recovery still applies.
    #[must_use]
    pub fn beginning(ceiling: Option<(u32, u64)>, ended_ms: u64) -> Self {
        Self {
            began_ms: ended_ms,
            rate: FIRST_RATE,
            since_ms: ended_ms,
            good: 0,
            failed: 0,
            in_a_row: 0,
            away: 0,
            waited_ms: ended_ms,
            ceiling,
        }
    }

    /// Returns the change that a report causes. `item` is the recovery that the table contains;
    /// `None` if it contains none.
    ///
    /// # Errors
    /// The recovery in the table, if the copy of the reporting process is outdated.
    pub fn reported(item: Option<Self>, report: &Report, now_ms: u64) -> Result<Change, Self> {
        let Report { known, results } = *report;
        match item {
            Some(item) if item.began_ms > known.began_ms => Err(item),
            Some(item) if item.began_ms == known.began_ms => {
                let is_known = item.since_ms == known.since_ms;
                // A change of the rate depends on all results, so the copy of the caller must be
                // complete.
                if is_known && known.is_due(now_ms) && item.counts() == known.counts() {
                    let new = item.after(results, now_ms);
                    return Ok(Change::Replace { old: Some(item), new });
                }
                if is_known && !known.is_due(now_ms) && !item.is_due(now_ms) {
                    return Ok(Change::Add);
                }
                Err(item)
            }
            Some(_) | None => {
                let new = known.following(item, now_ms).after(results, now_ms);
                Ok(Change::Replace { old: item, new })
            }
        }
    }

    /// True if the next report changes the rate: ten seconds have passed since the last change, or
    /// enough consecutive failures occurred.
    #[must_use]
    pub fn is_due(self, now_ms: u64) -> bool {
        now_ms >= self.since_ms.saturating_add(STEP_MS) || self.is_falling()
    }

    /// True if there are enough consecutive failures to change the rate immediately.
    #[must_use]
    pub fn is_falling(self) -> bool {
        self.in_a_row >= FALL
    }

    /// Returns the number of consecutive failures that makes [`Self::is_falling`] true.
    #[must_use]
    pub fn fall() -> u32 {
        FALL
    }

    /// Adds the results of one process, and changes the rate if a change is due.
    #[must_use]
    pub fn after(self, results: Results, now_ms: u64) -> Self {
        let all = self.plus(results, now_ms);
        if !self.is_due(now_ms) {
            return all;
        }
        let away = if self.all_are_back(now_ms) { results.away.max(0) } else { all.away };
        let changed = Self { since_ms: now_ms, good: 0, failed: 0, in_a_row: 0, away, ..all };
        if all.failed > all.good || self.is_falling() {
            let ceiling = Some(all.ceiling_after_fall(now_ms));
            return Self { rate: (self.rate / 2).max(FIRST_RATE), ceiling, ..changed };
        }
        let elapsed_ms = now_ms.saturating_sub(self.since_ms).max(1);
        let is_good = all.failed.saturating_mul(FAILURE_WEIGHT) <= all.good;
        let quarters = if is_good { QUARTERS.0 } else { QUARTERS.1 };
        let per_second = (u64::from(all.good) * SECOND_MS * quarters).div_ceil(4 * elapsed_ms);
        let rate = u32::try_from(per_second).unwrap_or(u32::MAX);
        let highest = self.ceiling.filter(|(_, until_ms)| now_ms < *until_ms);
        let highest = highest.map_or(LAST_RATE, |(rate, _)| rate.min(LAST_RATE));
        Self { rate: rate.clamp(FIRST_RATE, highest.max(FIRST_RATE)), ..changed }
    }

    /// Adds the results of one process, without changing the rate.
    #[must_use]
    pub fn plus(self, results: Results, now_ms: u64) -> Self {
        let before = if results.good > 0 { 0 } else { self.in_a_row };
        Self {
            good: self.good.saturating_add(results.good),
            failed: self.failed.saturating_add(results.failed),
            in_a_row: before.saturating_add(results.failed),
            away: self.away.saturating_add(results.away),
            waited_ms: if results.waits { now_ms } else { self.waited_ms },
            ..self
        }
    }

    /// Returns the ceiling after a fall or a relapse: two thirds of the current rate, and its
    /// expiry. Shortly after a new ceiling, that ceiling is returned unchanged.
    #[must_use]
    pub fn ceiling_after_fall(self, now_ms: u64) -> (u32, u64) {
        let set_ms = |until_ms: u64| until_ms.saturating_sub(CEILING_MS);
        match self.ceiling {
            Some((rate, until_ms)) if now_ms < set_ms(until_ms).saturating_add(FALL_MS) => {
                (rate, until_ms)
            }
            Some(_) | None => {
                let rate = self.rate.saturating_mul(CEILING_THIRDS) / 3;
                (rate.max(FIRST_RATE), now_ms.saturating_add(CEILING_MS))
            }
        }
    }

    /// True if the destination needs no protection any more: the highest rate is reached, no
    /// delivery had to wait in the last 15 minutes, or the recovery has lasted for a day.
    #[must_use]
    pub fn is_over(self, now_ms: u64) -> bool {
        let is_quiet = now_ms >= self.waited_ms.saturating_add(QUIET_MS);
        self.rate >= LAST_RATE
            || is_quiet
            || now_ms >= self.began_ms.saturating_add(RECOVERS_MAX_MS)
    }

    /// True if every deferred delivery must have returned or ended by now. The time since a
    /// delivery last had to wait is longer than the longest deferral.
    fn all_are_back(self, now_ms: u64) -> bool {
        now_ms > self.waited_ms.saturating_add(self.away_ms().max(STEP_MS))
    }

    /// Returns the number of slots that a process takes in one request: the slots of half a second.
    #[must_use]
    pub fn places(per_second: u32) -> u32 {
        (per_second / 2).max(1)
    }

    /// Returns the earliest time for which a slot may be granted now. It is never before the
    /// recovery began, because the probe that ended the outage was sent just before that.
    #[must_use]
    pub fn places_from_ms(self, now_ms: u64) -> u64 {
        // The clock of the process that observed the end of the outage may be ahead.
        now_ms.saturating_sub(PLACES_SINCE_MS).max(self.began_ms.min(now_ms))
    }

    /// Returns the recovery with this ceiling, unless its own ceiling expires later.
    #[must_use]
    pub fn with_ceiling(self, ceiling: Option<(u32, u64)>) -> Self {
        let ceilings = self.ceiling.into_iter().chain(ceiling);
        Self { ceiling: ceilings.max_by_key(|(_, until_ms)| *until_ms), ..self }
    }

    /// Returns the length in milliseconds of the range from which the delay of a delivery without a
    /// slot is chosen. On average two deliveries are received again for each slot. That is enough
    /// to use the slots, and few enough to keep waiting cheap.
    #[must_use]
    pub fn away_ms(self) -> u64 {
        let away = u64::try_from(self.away).unwrap_or_default();
        let (least_ms, most_ms) = AWAY_MS;
        (away.saturating_mul(SECOND_MS) / u64::from(self.rate.max(1))).clamp(least_ms, most_ms)
    }

    /// Returns this recovery with the ceiling and the number of deferred deliveries of the stored
    /// recovery that it replaces.
    fn following(self, item: Option<Self>, now_ms: u64) -> Self {
        let Some(item) = item else { return self };
        let away = if item.is_over(now_ms) { 0 } else { item.away };
        Self { away, ..self }.with_ceiling(item.ceiling)
    }

    fn counts(self) -> (u32, u32, u32, i64) {
        (self.good, self.failed, self.in_a_row, self.away)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_000_000;

    fn results(good: u32, failed: u32) -> Results {
        Results { good, failed, away: 0, waits: false }
    }

    fn at(rate: u32) -> Recovery {
        Recovery { rate, ..Recovery::beginning(None, NOW_MS) }
    }

    /// Returns the recovery after ten seconds with these results.
    fn next(recovery: Recovery, good: u32, failed: u32) -> Recovery {
        recovery.after(results(good, failed), recovery.since_ms + STEP_MS)
    }

    #[test]
    fn the_rate_grows_by_a_quarter_every_ten_seconds_while_nine_of_ten_are_good() {
        let mut recovery = at(FIRST_RATE);
        let mut rates = vec![recovery.rate];
        for _ in 0..19 {
            recovery = next(recovery, recovery.rate * 10, recovery.rate);
            rates.push(recovery.rate);
        }
        assert_eq!(rates[..10], [4, 5, 7, 9, 12, 15, 19, 24, 30, 38]);
        assert_eq!(rates[10..], [48, 60, 75, 94, 118, 148, 185, 232, 290, 320]);
        assert!(recovery.is_over(recovery.since_ms));
    }

    #[test]
    fn the_rate_follows_the_good_responses_and_not_what_nobody_used() {
        for (good, failed, rate) in
            [(400, 0, 50), (100, 0, 13), (0, 0, FIRST_RATE), (90, 10, 12), (89, 10, 9), (50, 50, 5)]
        {
            let changed = next(at(40), good, failed);
            assert_eq!(changed.rate, rate, "{good} good, {failed} failed");
            assert_eq!((changed.good, changed.failed, changed.ceiling), (0, 0, None));
            assert_eq!(changed.since_ms, NOW_MS + STEP_MS);
        }
        // The last change may be older than ten seconds.
        assert_eq!(at(40).after(results(100, 0), NOW_MS + 2 * STEP_MS).rate, 7);
    }

    #[test]
    fn it_is_halved_where_most_fail_and_stays_below_two_thirds_of_the_rate_for_an_hour() {
        let halved = next(at(40), 4, 5);
        let (ceiling, until_ms) = (26, NOW_MS + STEP_MS + HOUR_MS);
        assert_eq!((halved.rate, halved.ceiling), (20, Some((ceiling, until_ms))));
        assert_eq!(next(halved, 260, 0).rate, 26);
        let hour_later = Recovery { since_ms: until_ms - STEP_MS, ..halved };
        assert_eq!(next(hour_later, 260, 0).rate, 33);
        // The first failures belong to the same fall. Failures a minute later begin a new fall.
        let again = next(halved, 0, 9);
        assert_eq!((again.rate, again.ceiling), (10, halved.ceiling));
        let later = halved.after(results(0, 9), NOW_MS + STEP_MS + MINUTE_MS);
        assert_eq!((later.rate, later.ceiling.map(|(rate, _)| rate)), (10, Some(13)));
        assert_eq!(next(at(FIRST_RATE), 0, 9).rate, FIRST_RATE);
    }

    #[test]
    fn ten_failures_in_a_row_halve_the_rate_at_once() {
        let nine = at(40).after(results(100, 0), NOW_MS + 1).plus(results(0, 9), 0);
        assert!(!nine.is_due(NOW_MS + 2));
        assert_eq!(nine.plus(results(1, 1), 0).in_a_row, 1, "a good response resets the count");
        let ten = nine.after(results(0, 1), NOW_MS + 2);
        assert!(ten.is_due(NOW_MS + 3) && ten.rate == 40);
        let halved = ten.after(Results::default(), NOW_MS + 3);
        assert_eq!((halved.rate, halved.in_a_row, halved.since_ms), (20, 0, NOW_MS + 3));
        assert_eq!(halved.ceiling, Some((26, NOW_MS + 3 + HOUR_MS)));
    }

    #[test]
    fn until_then_results_of_all_processes_add_up() {
        let first = at(4).after(results(8, 0), NOW_MS + 1);
        let second = first.after(results(0, 1), NOW_MS + STEP_MS - 1);
        assert_eq!((second.rate, second.good, second.failed, second.in_a_row), (4, 8, 1, 1));
    }

    #[test]
    fn whoever_does_not_know_the_recovery_as_it_is_learns_it_before_the_rate_changes() {
        let item = at(4).after(results(3, 0), NOW_MS + 1);
        let report = |known| Report { known, results: results(1, 0) };
        let reported = |item, known, now_ms| Recovery::reported(item, &report(known), now_ms);
        assert_eq!(reported(Some(item), at(4), NOW_MS + 2), Ok(Change::Add));
        assert_eq!(reported(Some(item), at(4), NOW_MS + STEP_MS), Err(item));
        let new = item.after(results(1, 0), NOW_MS + STEP_MS);
        let replaced = Ok(Change::Replace { old: Some(item), new });
        assert_eq!(reported(Some(item), item, NOW_MS + STEP_MS), replaced);
        let falling = item.plus(results(0, FALL), NOW_MS);
        assert_eq!(reported(Some(falling), item, NOW_MS + 2), Err(falling));
        assert_eq!(reported(Some(new), item, NOW_MS + STEP_MS), Err(new));
    }

    #[test]
    fn a_later_outage_begins_a_recovery_anew_but_for_the_ceiling_and_those_who_wait() {
        let item = Recovery { ceiling: Some((20, NOW_MS + 9_000)), away: 30, ..at(40) };
        let later = Recovery::beginning(None, NOW_MS + 5_000);
        let report = |known| Report { known, results: results(1, 0) };
        let reported = |item, known| Recovery::reported(item, &report(known), NOW_MS + 5_001);
        assert_eq!(reported(Some(later), item), Err(later));
        let counted = later.plus(results(1, 0), NOW_MS);
        assert_eq!(reported(None, later), Ok(Change::Replace { old: None, new: counted }));
        let new = Recovery { ceiling: item.ceiling, away: 30, ..counted };
        assert_eq!(reported(Some(item), later), Ok(Change::Replace { old: Some(item), new }));
    }

    #[test]
    fn places_of_the_last_tenth_of_a_second_are_given_out_unless_they_are_from_before_it_began() {
        for (after_ms, from_ms) in [(0, 0), (99, 0), (100, 0), (101, 1), (5_000, 4_900)] {
            assert_eq!(at(4).places_from_ms(NOW_MS + after_ms), NOW_MS + from_ms, "{after_ms}");
        }
        assert_eq!(at(4).places_from_ms(NOW_MS - 5), NOW_MS - 5, "it begins in the future");
    }

    #[test]
    fn two_deliveries_come_back_for_each_place() {
        for (away, away_ms) in [(0, 2_000), (-5, 2_000), (400, 10_000), (1_000_000, 900_000)] {
            assert_eq!(Recovery { away, ..at(40) }.away_ms(), away_ms, "{away}");
        }
    }

    #[test]
    fn it_is_over_when_nobody_has_waited_for_a_quarter_of_an_hour() {
        let recovery = at(4);
        assert!(!recovery.is_over(NOW_MS + QUIET_MS - 1));
        assert!(recovery.is_over(NOW_MS + QUIET_MS));
        let waits = recovery.plus(Results { waits: true, ..results(0, 0) }, NOW_MS + 5);
        assert!(!waits.is_over(NOW_MS + QUIET_MS + 4));
        // A day after the outage, the recovery is over even if deliveries still wait.
        let waits = Recovery { waited_ms: NOW_MS + RECOVERS_MAX_MS, ..recovery };
        assert!(waits.is_over(NOW_MS + RECOVERS_MAX_MS));
        assert!(!waits.is_over(NOW_MS + RECOVERS_MAX_MS - 1));
    }

    #[test]
    fn who_is_away_has_ended_when_nobody_has_waited_for_as_long() {
        // At four requests a second, 1,000 deferred deliveries are away for up to 250 seconds.
        let recovery = Recovery { away: 1_000, ..at(4) };
        assert_eq!(recovery.after(results(1, 0), NOW_MS + 250_000).away, 1_000);
        let later = |away| Results { away, ..results(1, 0) };
        let after = |away| recovery.after(later(away), NOW_MS + 250_001).away;
        assert_eq!((after(3), after(-2)), (3, 0));
    }
}
