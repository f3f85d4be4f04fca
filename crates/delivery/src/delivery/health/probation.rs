//! Probation: a circuit breaker for destinations that keep failing.
//!
//! Event Grid calls it delayed delivery: after ten failed attempts in a row at a destination, of at
//! least two events, its deliveries are deferred without a request, for a time that depends on the
//! last outcome. Then one of them is a probe: a success ends the probation, a failure doubles it,
//! up to an hour. It protects the destination, and keeps attempts at a dead one from taking the
//! time of others. A deferral is not an attempt.
//!
//! A success takes away half of the failures that were counted before it. So a destination that takes
//! one event in twenty is found all the same, and one that fails again soon after its probation is put
//! on probation sooner, and for half as long as before.
//!
//! What one process knows, others learn through [`shared`](super::shared).
//! <https://learn.microsoft.com/azure/event-grid/delivery-and-retry#delayed-event-delivery>

use std::collections::HashMap;
use std::hash::Hash;

use uuid::Uuid;

use super::Finding;
use super::shared::Spell;
use crate::delivery::outcome::Outcome;
use crate::time::duration::{HOUR_MS, MINUTE_MS, SECOND_MS};

/// The failed attempts in a row that put a destination on probation.
pub const FAILURES: u32 = 10;
/// The longest probation.
pub const LONGEST_MS: u64 = HOUR_MS;
/// While a probe is under way, other deliveries wait this long for its result, and not for another
/// whole probation.
pub const PROBE_MS: u64 = 10 * SECOND_MS;
/// A probe whose outcome was never recorded no longer counts after this: its process was frozen, or
/// it panicked.
const PROBE_LOST_MS: u64 = 15 * MINUTE_MS;

/// The first probation after an outcome; `None` for outcomes that say nothing about the
/// destination.
#[must_use]
pub const fn first_ms(outcome: Outcome) -> Option<u64> {
    match outcome {
        Outcome::Busy | Outcome::TimedOut => Some(10 * SECOND_MS),
        Outcome::SocketError | Outcome::TlsError => Some(30 * SECOND_MS),
        Outcome::NotFound
        | Outcome::ResolutionError
        | Outcome::Unauthorized
        | Outcome::Forbidden => Some(5 * MINUTE_MS),
        Outcome::Success
        | Outcome::BadRequest
        | Outcome::PayloadTooLarge
        | Outcome::GenericError
        | Outcome::Blocked
        | Outcome::Probation
        | Outcome::Aborted => None,
    }
}

/// Whether a delivery may be attempted at a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may be attempted.
    Admitted,
    /// It may be attempted, and its outcome decides about the probation.
    Probe,
    /// It is deferred.
    Deferred {
        /// Until this time.
        until_ms: u64,
    },
}

/// The failing destinations of one process.
#[derive(Debug)]
pub struct Probations<K>(HashMap<K, Record>);

impl<K> Default for Probations<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

/// The failures in a row at one destination.
#[derive(Debug, Clone, Copy, Default)]
struct Record {
    failures: u32,
    /// How long its last probation was, if that is over.
    lasted_ms: u64,
    /// The delivery of the first failure, until another one failed as well.
    only_delivery: Option<Uuid>,
    probation: Option<Probation>,
}

#[derive(Debug, Clone, Copy)]
struct Probation {
    until_ms: u64,
    lasts_ms: u64,
    /// When its probe began.
    probe_ms: Option<u64>,
}

impl<K: Eq + Hash + Clone> Probations<K> {
    /// Whether a delivery may be attempted at this destination now. The first after the end of a
    /// probation is its probe; the others wait for its result.
    pub fn admit(&mut self, destination: &K, now_ms: u64) -> Admission {
        if let Some(until_ms) = self.deferral_ms(destination, now_ms) {
            return Admission::Deferred { until_ms };
        }
        let Some(probation) = self.probation(destination) else { return Admission::Admitted };
        probation.probe_ms = Some(now_ms);
        Admission::Probe
    }

    /// Until when a delivery that is not attempted here is deferred.
    #[must_use]
    pub fn deferral_ms(&self, destination: &K, now_ms: u64) -> Option<u64> {
        let probation = self.0.get(destination)?.probation?;
        if now_ms < probation.until_ms {
            return Some(probation.until_ms);
        }
        let probe_ms = probation.probe_ms?;
        let wait_ms = probation.lasts_ms.min(PROBE_MS);
        (now_ms < probe_ms.saturating_add(PROBE_LOST_MS)).then(|| now_ms.saturating_add(wait_ms))
    }

    /// Whether a probe is under way.
    #[must_use]
    pub fn is_probing(&self, destination: &K) -> bool {
        let probation = self.0.get(destination).and_then(|record| record.probation);
        probation.is_some_and(|probation| probation.probe_ms.is_some())
    }

    /// True if it is on probation, or would be were its probe not under way.
    #[must_use]
    pub fn is_on_probation(&self, destination: &K) -> bool {
        self.0.get(destination).is_some_and(|record| record.probation.is_some())
    }

    /// Returns an admission that was not used. Whether it was the probe: then another delivery may be
    /// that.
    pub fn release(&mut self, destination: &K) -> bool {
        self.probation(destination).is_some_and(|probation| probation.probe_ms.take().is_some())
    }

    fn probation(&mut self, destination: &K) -> Option<&mut Probation> {
        self.0.get_mut(destination)?.probation.as_mut()
    }

    /// Records the outcome of one request with these deliveries, and returns what it changed.
    pub fn record_outcome(
        &mut self,
        destination: &K,
        deliveries: &[Uuid],
        outcome: Outcome,
        ended_ms: u64,
    ) -> Option<Finding> {
        if outcome == Outcome::Success {
            return self.record_success(destination);
        }
        let [first, others @ ..] = deliveries else { return None };
        if matches!(outcome, Outcome::Aborted | Outcome::Blocked) {
            // Nothing was sent: it says nothing about the destination.
            self.release(destination);
            return None;
        }
        let new_record = Record { only_delivery: Some(*first), ..Record::default() };
        let record = self.0.entry(destination.clone()).or_insert(new_record);
        // Also for outcomes that begin no probation: every failed request counts among the ten.
        record.failures = record.failures.saturating_add(1);
        if record
            .only_delivery
            .is_some_and(|only_delivery| only_delivery != *first || !others.is_empty())
        {
            record.only_delivery = None;
        }
        let Some(first_ms) = first_ms(outcome) else {
            // It says nothing about the destination; another probe is needed.
            self.release(destination);
            return None;
        };
        let (probation, extended) = match record.probation {
            // An attempt from before the probation says nothing new.
            Some(probation) if probation.probe_ms.is_none() => return None,
            Some(probation) => {
                (Probation::lasting(probation.lasts_ms.saturating_mul(2), ended_ms), true)
            }
            None if record.failures >= FAILURES && record.only_delivery.is_none() => {
                (Probation::lasting(first_ms.max(record.lasted_ms / 2), ended_ms), false)
            }
            None => return None,
        };
        record.probation = Some(probation);
        let lasts_ms = probation.lasts_ms;
        Some(if extended { Finding::GoesOn { lasts_ms } } else { Finding::Began { lasts_ms } })
    }
}

impl<K: Eq + Hash + Clone> Probations<K> {
    /// Whether no destination has failed lately.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The destinations that are on probation.
    pub fn destinations(&self) -> impl Iterator<Item = &K> {
        self.0.iter().filter(|(_, record)| record.probation.is_some()).map(|(key, _)| key)
    }

    /// Takes over what another process knows: that a destination is on probation. Its clock may be ahead
    /// of ours, or wrong.
    pub fn adopt(&mut self, destination: &K, spell: Spell, now_ms: u64) {
        let Some(spell) = spell.at_most(LONGEST_MS, now_ms) else { return };
        let Spell { until_ms, lasts_ms, .. } = spell;
        let new_record = Record { failures: FAILURES, ..Record::default() };
        let record = self.0.entry(destination.clone()).or_insert(new_record);
        // An operator may have ended it sooner.
        if record.probation.is_none_or(|known| known.probe_ms.is_none()) {
            record.probation = Some(Probation { until_ms, lasts_ms, probe_ms: None });
        }
    }

    /// Takes over what another process knows: that a destination is not on probation any more.
    pub fn forget(&mut self, destination: &K) {
        self.0.remove(destination);
    }

    fn record_success(&mut self, destination: &K) -> Option<Finding> {
        // Most destinations have never failed.
        if self.0.is_empty() {
            return None;
        }
        let record = self.0.get_mut(destination)?;
        let ended = record.probation.take();
        if let Some(probation) = ended {
            (record.failures, record.lasted_ms) = (FAILURES, probation.lasts_ms);
        }
        record.failures /= 2;
        // Removed: a map of failing destinations only does not grow with all others.
        if record.failures == 0 {
            self.0.remove(destination);
        }
        ended.map(|_| Finding::Ended)
    }
}

impl Probation {
    fn lasting(lasts_ms: u64, from_ms: u64) -> Self {
        let lasts_ms = lasts_ms.min(LONGEST_MS);
        Self { until_ms: from_ms.saturating_add(lasts_ms), lasts_ms, probe_ms: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    /// After this many failures in a row, of this many events, each at the time of its number.
    fn after(failures: u32, events: u128, outcome: Outcome) -> Probations<&'static str> {
        let mut probations = Probations::default();
        for failure in 0..failures {
            probations.record_outcome(
                &"d",
                &[id(u128::from(failure) % events)],
                outcome,
                u64::from(failure),
            );
        }
        probations
    }

    #[test]
    fn ten_failures_of_two_events_put_a_destination_on_probation_for_what_the_outcome_says() {
        for (outcome, lasts_ms) in [
            (Outcome::Busy, 10_000),
            (Outcome::TimedOut, 10_000),
            (Outcome::SocketError, 30_000),
            (Outcome::NotFound, 300_000),
            (Outcome::ResolutionError, 300_000),
            (Outcome::Unauthorized, 300_000),
            (Outcome::Forbidden, 300_000),
        ] {
            assert_eq!(after(9, 2, outcome).admit(&"d", 9), Admission::Admitted);
            assert_eq!(
                after(10, 1, outcome).admit(&"d", 9),
                Admission::Admitted,
                "one event may be to blame"
            );
            let mut probations = after(10, 2, outcome);
            assert_eq!(
                probations.admit(&"d", 9),
                Admission::Deferred { until_ms: 9 + lasts_ms },
                "{outcome}"
            );
            assert_eq!(probations.admit(&"other", 9), Admission::Admitted);
        }
        assert_eq!(after(50, 2, Outcome::GenericError).admit(&"d", 50), Admission::Admitted);
    }

    #[test]
    fn a_success_ends_the_row() {
        let mut probations = after(9, 2, Outcome::Busy);
        probations.record_outcome(&"d", &[id(7)], Outcome::Success, 9);
        probations.record_outcome(&"d", &[id(8)], Outcome::Busy, 10);
        assert_eq!(probations.admit(&"d", 10), Admission::Admitted);
    }

    #[test]
    fn one_probe_decides_and_each_failure_doubles_the_probation_up_to_an_hour() {
        let mut probations = after(10, 2, Outcome::TimedOut);
        let (mut now_ms, mut lasts_ms) = (9, 10_000);
        for _ in 0..12 {
            now_ms += lasts_ms;
            assert_eq!(
                probations.admit(&"d", now_ms - 1),
                Admission::Deferred { until_ms: now_ms }
            );
            assert_eq!(probations.admit(&"d", now_ms), Admission::Probe);
            assert_eq!(
                probations.admit(&"d", now_ms),
                Admission::Deferred { until_ms: now_ms + 10_000 },
                "no second"
            );
            probations.record_outcome(&"d", &[id(1)], Outcome::SocketError, now_ms);
            lasts_ms = (lasts_ms * 2).min(HOUR_MS);
        }
        assert_eq!(lasts_ms, HOUR_MS);
        assert_eq!(probations.admit(&"d", now_ms + HOUR_MS), Admission::Probe);
        probations.record_outcome(&"d", &[id(1)], Outcome::Success, now_ms + HOUR_MS);
        assert_eq!(probations.admit(&"d", now_ms + HOUR_MS), Admission::Admitted);
    }

    #[test]
    fn an_attempt_reports_whether_a_probation_began_continues_or_ended() {
        let mut probations = after(9, 2, Outcome::Busy);
        let mut record_outcome = |outcome, at_ms| {
            let _ = probations.admit(&"d", at_ms);
            probations.record_outcome(&"d", &[id(7)], outcome, at_ms)
        };
        assert_eq!(record_outcome(Outcome::Busy, 10), Some(Finding::Began { lasts_ms: 10_000 }));
        assert_eq!(record_outcome(Outcome::Busy, 11), None, "it was begun before");
        assert_eq!(
            record_outcome(Outcome::TimedOut, 20_000),
            Some(Finding::GoesOn { lasts_ms: 20_000 })
        );
        assert_eq!(record_outcome(Outcome::Success, 50_000), Some(Finding::Ended));
        assert_eq!(record_outcome(Outcome::Success, 50_001), None);
    }

    #[test]
    fn an_attempt_that_was_begun_before_the_probation_does_not_prolong_it() {
        let mut probations = after(10, 2, Outcome::Busy);
        probations.record_outcome(&"d", &[id(3)], Outcome::Busy, 500);
        assert_eq!(probations.admit(&"d", 600), Admission::Deferred { until_ms: 10_009 });
    }

    #[test]
    fn what_was_never_sent_says_nothing_about_a_destination() {
        for outcome in [Outcome::Aborted, Outcome::Blocked] {
            let mut probations = after(20, 2, outcome);
            probations.record_outcome(&"d", &[id(3)], Outcome::Busy, 20);
            assert_eq!(probations.admit(&"d", 20), Admission::Admitted);
        }
    }

    #[test]
    fn a_batch_is_one_failure_of_several_events() {
        let mut probations = Probations::default();
        for _ in 0..10 {
            probations.record_outcome(&"d", &[id(1), id(2)], Outcome::Busy, 0);
        }
        assert_eq!(probations.admit(&"d", 0), Admission::Deferred { until_ms: 10_000 });
    }

    #[test]
    fn a_probe_without_an_outcome_does_not_block_the_destination_for_ever() {
        let mut probations = after(10, 2, Outcome::Busy);
        assert_eq!(probations.admit(&"d", 10_009), Admission::Probe);
        assert!(matches!(probations.admit(&"d", 20_000), Admission::Deferred { .. }));
        assert_eq!(probations.admit(&"d", 10_009 + PROBE_LOST_MS), Admission::Probe);
    }

    #[test]
    fn one_success_among_many_failures_does_not_end_the_row() {
        let mut probations = after(9, 2, Outcome::Busy);
        probations.record_outcome(&"d", &[id(7)], Outcome::Success, 9);
        // Half of nine failures are still counted.
        let mut record = |at_ms| probations.record_outcome(&"d", &[id(8)], Outcome::Busy, at_ms);
        assert!((10..15).all(|at_ms| record(at_ms).is_none()));
        assert_eq!(record(15), Some(Finding::Began { lasts_ms: 10_000 }));
    }

    #[test]
    fn a_destination_that_fails_again_soon_is_on_probation_sooner_and_for_half_as_long_as_before() {
        let mut probations = after(10, 2, Outcome::Busy);
        let mut now_ms = 10_009;
        for lasts_ms in [20_000, 40_000] {
            assert_eq!(probations.admit(&"d", now_ms), Admission::Probe);
            let found = probations.record_outcome(&"d", &[id(1)], Outcome::Busy, now_ms);
            assert_eq!(found, Some(Finding::GoesOn { lasts_ms }));
            now_ms += lasts_ms;
        }
        assert_eq!(probations.admit(&"d", now_ms), Admission::Probe);
        probations.record_outcome(&"d", &[id(1)], Outcome::Success, now_ms);
        let mut record = |outcome| probations.record_outcome(&"d", &[id(2)], outcome, now_ms);
        assert!((0..4).all(|_| record(Outcome::Busy).is_none()));
        assert_eq!(record(Outcome::Busy), Some(Finding::Began { lasts_ms: 20_000 }));
        // Three successes in a row, and all of that is forgotten.
        let mut successes = after(10, 2, Outcome::Busy);
        for _ in 0..4 {
            assert!(!successes.is_empty());
            successes.record_outcome(&"d", &[id(1)], Outcome::Success, 20_000);
        }
        assert!(successes.is_empty());
    }

    #[test]
    fn what_others_know_is_taken_over_unless_a_probe_is_under_way() {
        let mut probations = Probations::default();
        let spell = |until_ms| Spell { since_ms: 0, until_ms, lasts_ms: 600_000 };
        probations.adopt(&"d", spell(6_000), 1_000);
        probations.adopt(&"d", spell(5_000), 1_000);
        assert_eq!(probations.admit(&"d", 4_999), Admission::Deferred { until_ms: 5_000 });
        assert_eq!(probations.admit(&"d", 5_000), Admission::Probe);
        probations.adopt(&"d", spell(9_000), 5_000);
        let failed = probations.record_outcome(&"d", &[id(1)], Outcome::Busy, 5_001);
        assert_eq!(failed, Some(Finding::GoesOn { lasts_ms: 1_200_000 }));
        assert_eq!(probations.destinations().collect::<Vec<_>>(), [&"d"]);
        probations.adopt(&"e", spell(u64::MAX), 1_000);
        assert_eq!(probations.admit(&"e", 1_000), Admission::Admitted, "a clock is wrong");
        probations.forget(&"d");
        assert_eq!(probations.admit(&"d", 5_002), Admission::Admitted);
    }
}
