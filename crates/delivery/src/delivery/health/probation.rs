//! Probation: a circuit breaker for failing destinations. Event Grid calls it delayed delivery.
//!
//! - Ten consecutive failed attempts of at least two events begin a probation. Deliveries are then
//!   deferred without a request. A deferral is not an attempt.
//! - The last outcome determines the duration of the probation. After that time, one delivery is
//!   the probe. A success ends the probation; a failure doubles its duration, up to five minutes.
//! - A success halves the number of counted failures. So a destination that accepts one event in
//!   twenty is put on probation too.
//! - A destination that fails again soon after a probation needs fewer failures for the next one,
//!   which begins with half of the previous duration.
//! - The first delivery that a process defers is received again at the end of the probation, and is
//!   the probe. The others return at random times in the 15 minutes after that, or within the
//!   duration of the outage if that is shorter. So a recovering destination does not receive all of
//!   them at once.
//!
//! Probation protects the destination and saves time for other deliveries. Processes share
//! probations through [`shared`](super::shared).
//! <https://learn.microsoft.com/azure/event-grid/delivery-and-retry#delayed-event-delivery>

use uuid::Uuid;

use super::Finding;
use super::shared::Spell;
use crate::delivery::outcome::Outcome;
use crate::time::duration::{MINUTE_MS, SECOND_MS};
use crate::waits::Jitter;

/// Number of consecutive failed attempts after which a probation begins.
pub const FAILURES: u32 = 10;
/// Maximum duration of a probation. Failed probes double the duration up to this value.
pub const LONGEST_MS: u64 = 5 * MINUTE_MS;
/// Maximum duration over which deferred deliveries are spread after a probation.
pub const SPREAD_MS: u64 = 15 * MINUTE_MS;
/// Time that deliveries of other processes wait for the result of a probe that is under way.
/// Without this limit, these deliveries would wait for another complete probation.
pub const PROBE_MS: u64 = 10 * SECOND_MS;
/// Time after which a probe without a recorded outcome counts as lost, because its process was
/// frozen or panicked.
const PROBE_LOST_MS: u64 = 15 * MINUTE_MS;

/// Returns the duration of the first probation, which depends on the last outcome. Returns `None`
/// for outcomes that never begin a probation: successes, failures that the event may have caused,
/// and attempts without a request.
#[must_use]
pub const fn first_ms(outcome: Outcome, status: Option<u16>) -> Option<u64> {
    match outcome {
        Outcome::Busy | Outcome::TimedOut => Some(10 * SECOND_MS),
        Outcome::SocketError | Outcome::TlsError => Some(30 * SECOND_MS),
        Outcome::NotFound
        | Outcome::ResolutionError
        | Outcome::Unauthorized
        | Outcome::Forbidden => Some(5 * MINUTE_MS),
        Outcome::GenericError => match status {
            Some(500..=599) => Some(30 * SECOND_MS),
            _ => None,
        },
        Outcome::Success
        | Outcome::BadRequest
        | Outcome::PayloadTooLarge
        | Outcome::Blocked
        | Outcome::Probation
        | Outcome::Aborted => None,
    }
}

/// The decision whether a delivery may be attempted at a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// The delivery may be attempted.
    Admitted,
    /// The delivery may be attempted. It is the probe: its outcome decides whether the probation
    /// ends.
    Probe,
    /// The destination is on probation, so the delivery is deferred.
    Deferred(Deferral),
}

/// The range of times from which the next try of a deferred delivery is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deferral {
    /// The earliest time at which the delivery may be tried again, in milliseconds since 1970.
    pub from_ms: u64,
    /// Length of the range in milliseconds; 0 if there is only one possible time.
    pub spread_ms: u64,
}

impl Deferral {
    /// Chooses a time in the range; `jitter` determines its position in the range.
    #[must_use]
    pub fn until_ms(self, jitter: Jitter) -> u64 {
        let share = u64::from(jitter.0);
        let later_ms = u128::from(self.spread_ms) * u128::from(share) / (u128::from(u32::MAX) + 1);
        self.from_ms.saturating_add(u64::try_from(later_ms).unwrap_or(u64::MAX))
    }
}

/// The consecutive failures at one destination, as this process counts them, and the current
/// probation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Failures {
    /// Weighted number of failures; each success halves it.
    count: u32,
    /// Number of failures since the last success.
    in_a_row: u32,
    /// Time of the first of the current consecutive failures.
    since_ms: u64,
    /// Duration of the last probation that ended, in milliseconds.
    lasted_ms: u64,
    /// The only delivery that has failed so far; `None` without a failure, or if several deliveries
    /// failed.
    only_delivery: Option<Uuid>,
    probation: Option<Probation>,
}

/// The current probation of a destination.
#[derive(Debug, Clone, Copy)]
struct Probation {
    since_ms: u64,
    until_ms: u64,
    lasts_ms: u64,
    /// True if a deferred delivery of this process becomes the probe at the end of the probation.
    has_probe: bool,
    /// Start of the probe; `None` while no probe is under way.
    probe_ms: Option<u64>,
}

impl Failures {
    /// Decides whether a delivery may be attempted now. The first delivery after the end of a
    /// probation becomes the probe.
    pub fn admit(&mut self, now_ms: u64) -> Admission {
        if let Some(deferral) = self.deferral(now_ms) {
            return Admission::Deferred(deferral);
        }
        let Some(probation) = &mut self.probation else { return Admission::Admitted };
        probation.probe_ms = Some(now_ms);
        Admission::Probe
    }

    /// Returns the range of times for the next try of a delivery; `None` if the delivery may be
    /// attempted now.
    pub fn deferral(&mut self, now_ms: u64) -> Option<Deferral> {
        let probation = self.probation.as_mut()?;
        if now_ms < probation.until_ms {
            let is_first = !std::mem::replace(&mut probation.has_probe, true);
            return Some(if is_first { probation.at_its_end() } else { probation.after(now_ms) });
        }
        let probe_ms = probation.probe_ms?;
        (now_ms < probe_ms.saturating_add(PROBE_LOST_MS)).then(|| probation.after(now_ms))
    }

    /// Returns the range of times for the next try of a delivery while another process probes the
    /// destination.
    #[must_use]
    pub fn deferral_by_others(&self, now_ms: u64) -> Deferral {
        let soon = Deferral { from_ms: now_ms, spread_ms: PROBE_MS };
        self.probation.map_or(soon, |probation| probation.after(now_ms))
    }

    /// Returns true if a probe of this process is under way.
    #[must_use]
    pub fn is_probing(&self) -> bool {
        self.probation.is_some_and(|probation| probation.probe_ms.is_some())
    }

    /// Returns true if the destination is on probation, even while the probe is under way.
    #[must_use]
    pub fn is_on_probation(&self) -> bool {
        self.probation.is_some()
    }

    /// Returns true if the destination is on probation, or if at least ten consecutive attempts
    /// failed.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.is_on_probation() || self.in_a_row >= FAILURES
    }

    /// Returns the time of the first of the current consecutive failures; `None` if there are fewer
    /// than ten.
    #[must_use]
    pub fn all_failed_since_ms(&self) -> Option<u64> {
        (self.in_a_row >= FAILURES).then_some(self.since_ms)
    }

    /// Withdraws an admission that was not used. Returns true if it was the admission of the probe.
    /// Another delivery may then become the probe.
    pub fn release(&mut self) -> bool {
        self.probation.as_mut().is_some_and(|probation| probation.probe_ms.take().is_some())
    }

    /// Records the outcome of one request that contained these deliveries. Returns the change of
    /// the destination's health, if there is one.
    pub fn record_outcome(
        &mut self,
        deliveries: &[Uuid],
        (outcome, status): (Outcome, Option<u16>),
        ended_ms: u64,
    ) -> Option<Finding> {
        if outcome == Outcome::Success {
            return self.record_success();
        }
        if !outcome.tested_destination() {
            // No request was sent, so the destination was not tested.
            self.release();
            return None;
        }
        self.count_only(outcome, ended_ms);
        self.count_failure(deliveries);
        let Some(first_ms) = first_ms(outcome, status) else {
            // The event may have caused this failure, so another probe is needed.
            self.release();
            return None;
        };
        let (probation, is_extended) = match self.probation {
            // The attempt began before the probation, so its failure is not the result of a probe.
            Some(probation) if probation.probe_ms.is_none() => return None,
            Some(probation) => {
                let lasts_ms = probation.lasts_ms.saturating_mul(2);
                (Probation::lasting(lasts_ms, probation.since_ms, ended_ms), true)
            }
            None if self.count >= FAILURES && self.only_delivery.is_none() => {
                let lasts_ms = first_ms.max(self.lasted_ms / 2);
                (Probation::lasting(lasts_ms, ended_ms, ended_ms), false)
            }
            None => return None,
        };
        self.probation = Some(probation);
        let lasts_ms = probation.lasts_ms;
        Some(if is_extended { Finding::GoesOn { lasts_ms } } else { Finding::Began { lasts_ms } })
    }

    /// Counts the outcome of one request as a failure or a success, but never begins a probation.
    pub fn count_only(&mut self, outcome: Outcome, ended_ms: u64) {
        if outcome == Outcome::Success {
            self.in_a_row = 0;
        } else if outcome.tested_destination() {
            if self.in_a_row == 0 {
                self.since_ms = ended_ms;
            }
            self.in_a_row = self.in_a_row.saturating_add(1);
        }
    }

    /// Returns true if no failure is counted and there is no probation.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.count == 0 && self.in_a_row == 0 && self.probation.is_none()
    }

    /// Counts one failed request, even if its outcome cannot begin a probation.
    fn count_failure(&mut self, deliveries: &[Uuid]) {
        let only_one = if let [delivery] = deliveries { Some(*delivery) } else { None };
        self.only_delivery = if self.count == 0 {
            only_one
        } else {
            self.only_delivery.filter(|delivery| Some(*delivery) == only_one)
        };
        self.count = self.count.saturating_add(1);
    }

    fn record_success(&mut self) -> Option<Finding> {
        let ended = self.probation.take();
        if let Some(probation) = ended {
            (self.count, self.lasted_ms) = (FAILURES, probation.lasts_ms);
        }
        (self.count, self.in_a_row) = (self.count / 2, 0);
        if self.count == 0 {
            *self = Self::default();
        }
        ended.map(|_| Finding::Ended)
    }

    /// Adopts a probation that another process began. Limits its remaining time, or ignores it if
    /// the clock of that process must have been wrong.
    pub fn adopt(&mut self, spell: Spell, now_ms: u64) {
        let Some(spell) = spell.at_most(LONGEST_MS, now_ms) else { return };
        // The probe of this process will have a newer result.
        if self.is_probing() {
            return;
        }
        let Spell { since_ms, until_ms, lasts_ms } = spell;
        self.count = self.count.max(FAILURES);
        self.only_delivery = None;
        // A deferred probe of the same probation remains valid.
        let known = self.probation.filter(|known| known.until_ms == until_ms);
        let has_probe = known.is_some_and(|known| known.has_probe);
        self.probation =
            Some(Probation { since_ms, until_ms, lasts_ms, has_probe, probe_ms: None });
    }

    /// Ends the probation, because another process found that the destination has recovered.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

impl Probation {
    fn lasting(lasts_ms: u64, since_ms: u64, from_ms: u64) -> Self {
        let lasts_ms = lasts_ms.min(LONGEST_MS);
        let until_ms = from_ms.saturating_add(lasts_ms);
        Self { since_ms, until_ms, lasts_ms, has_probe: false, probe_ms: None }
    }

    fn at_its_end(self) -> Deferral {
        Deferral { from_ms: self.until_ms, spread_ms: 0 }
    }

    /// Returns the range of times for deferred deliveries. It begins at the end of the probation,
    /// or now if that is later.
    fn after(self, now_ms: u64) -> Deferral {
        let from_ms = self.until_ms.max(now_ms);
        Deferral { from_ms, spread_ms: from_ms.saturating_sub(self.since_ms).min(SPREAD_MS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the deferral of the first deferred delivery, which has only one possible time.
    fn at(from_ms: u64) -> Admission {
        Admission::Deferred(Deferral { from_ms, spread_ms: 0 })
    }

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    /// Returns the state after `failed` consecutive failures of `events` different events. Each
    /// failure occurs one millisecond after the previous one.
    fn after(failed: u32, events: u128, outcome: Outcome) -> Failures {
        let mut failures = Failures::default();
        for failure in 0..failed {
            failures.record_outcome(
                &[id(u128::from(failure) % events)],
                (outcome, None),
                u64::from(failure),
            );
        }
        failures
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
            assert_eq!(after(9, 2, outcome).admit(9), Admission::Admitted);
            assert_eq!(
                after(10, 1, outcome).admit(9),
                Admission::Admitted,
                "one event may be to blame"
            );
            let mut failures = after(10, 2, outcome);
            assert_eq!(failures.admit(9), at(9 + lasts_ms), "{outcome}");
        }
        assert_eq!(after(50, 2, Outcome::GenericError).admit(50), Admission::Admitted);
    }

    #[test]
    fn a_success_ends_the_row() {
        let mut failures = after(9, 2, Outcome::Busy);
        failures.record_outcome(&[id(7)], (Outcome::Success, None), 9);
        failures.record_outcome(&[id(8)], (Outcome::Busy, None), 10);
        assert_eq!(failures.admit(10), Admission::Admitted);
    }

    #[test]
    fn one_probe_decides_and_each_failure_doubles_the_probation_up_to_five_minutes() {
        let mut failures = after(10, 2, Outcome::TimedOut);
        let (mut now_ms, mut lasts_ms) = (9, 10_000);
        for _ in 0..12 {
            now_ms += lasts_ms;
            assert_eq!(failures.admit(now_ms - 1), at(now_ms));
            assert_eq!(failures.admit(now_ms), Admission::Probe);
            let second = Deferral { from_ms: now_ms, spread_ms: (now_ms - 9).min(SPREAD_MS) };
            assert_eq!(failures.admit(now_ms), Admission::Deferred(second));
            failures.record_outcome(&[id(1)], (Outcome::SocketError, None), now_ms);
            lasts_ms = (lasts_ms * 2).min(LONGEST_MS);
        }
        assert_eq!(lasts_ms, LONGEST_MS);
        assert_eq!(failures.admit(now_ms + LONGEST_MS), Admission::Probe);
        failures.record_outcome(&[id(1)], (Outcome::Success, None), now_ms + LONGEST_MS);
        assert_eq!(failures.admit(now_ms + LONGEST_MS), Admission::Admitted);
    }

    #[test]
    fn an_attempt_reports_whether_a_probation_began_continues_or_ended() {
        let mut failures = after(9, 2, Outcome::Busy);
        let mut record_outcome = |outcome, at_ms| {
            let _ = failures.admit(at_ms);
            failures.record_outcome(&[id(7)], (outcome, None), at_ms)
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
        let mut failures = after(10, 2, Outcome::Busy);
        failures.record_outcome(&[id(3)], (Outcome::Busy, None), 500);
        assert_eq!(failures.admit(600), at(10_009));
    }

    #[test]
    fn what_was_never_sent_says_nothing_about_a_destination() {
        for outcome in [Outcome::Aborted, Outcome::Blocked] {
            let mut failures = after(20, 2, outcome);
            failures.record_outcome(&[id(3)], (Outcome::Busy, None), 20);
            assert_eq!(failures.admit(20), Admission::Admitted);
        }
    }

    #[test]
    fn a_batch_is_one_failure_of_several_events() {
        let mut failures = Failures::default();
        for _ in 0..10 {
            failures.record_outcome(&[id(1), id(2)], (Outcome::Busy, None), 0);
        }
        assert_eq!(failures.admit(0), at(10_000));
    }

    #[test]
    fn a_probe_without_an_outcome_does_not_block_the_destination_for_ever() {
        let mut failures = after(10, 2, Outcome::Busy);
        assert_eq!(failures.admit(10_009), Admission::Probe);
        assert!(matches!(failures.admit(20_000), Admission::Deferred(_)));
        assert_eq!(failures.admit(10_009 + PROBE_LOST_MS), Admission::Probe);
    }

    #[test]
    fn one_success_among_many_failures_does_not_end_the_row() {
        let mut failures = after(9, 2, Outcome::Busy);
        failures.record_outcome(&[id(7)], (Outcome::Success, None), 9);
        // Half of nine failures are still counted.
        let mut record = |at_ms| failures.record_outcome(&[id(8)], (Outcome::Busy, None), at_ms);
        assert!((10..15).all(|at_ms| record(at_ms).is_none()));
        assert_eq!(record(15), Some(Finding::Began { lasts_ms: 10_000 }));
    }

    #[test]
    fn a_destination_that_fails_again_soon_is_on_probation_sooner_and_for_half_as_long_as_before() {
        let mut failures = after(10, 2, Outcome::Busy);
        let mut now_ms = 10_009;
        for lasts_ms in [20_000, 40_000] {
            assert_eq!(failures.admit(now_ms), Admission::Probe);
            let found = failures.record_outcome(&[id(1)], (Outcome::Busy, None), now_ms);
            assert_eq!(found, Some(Finding::GoesOn { lasts_ms }));
            now_ms += lasts_ms;
        }
        assert_eq!(failures.admit(now_ms), Admission::Probe);
        failures.record_outcome(&[id(1)], (Outcome::Success, None), now_ms);
        let mut record = |outcome| failures.record_outcome(&[id(2)], (outcome, None), now_ms);
        assert!((0..4).all(|_| record(Outcome::Busy).is_none()));
        assert_eq!(record(Outcome::Busy), Some(Finding::Began { lasts_ms: 20_000 }));
        // One success ends the probation, and three more remove all counted failures.
        let mut successes = after(10, 2, Outcome::Busy);
        for _ in 0..4 {
            assert!(successes.count > 0);
            successes.record_outcome(&[id(1)], (Outcome::Success, None), 20_000);
        }
        assert_eq!(successes.count, 0);
    }

    #[test]
    fn what_others_know_is_taken_over_unless_a_probe_is_under_way() {
        let mut failures = Failures::default();
        let spell = |until_ms| Spell { since_ms: 0, until_ms, lasts_ms: 600_000 };
        failures.adopt(spell(6_000), 1_000);
        failures.adopt(spell(5_000), 1_000);
        assert_eq!(failures.admit(4_999), at(5_000));
        assert_eq!(failures.admit(5_000), Admission::Probe);
        failures.adopt(spell(9_000), 5_000);
        let failed = failures.record_outcome(&[id(1)], (Outcome::Busy, None), 5_001);
        assert_eq!(failed, Some(Finding::GoesOn { lasts_ms: LONGEST_MS }));
        failures.forget();
        assert_eq!(failures.admit(5_002), Admission::Admitted);
        failures.adopt(spell(u64::MAX), 1_000);
        assert_eq!(failures.admit(1_000), Admission::Admitted, "a clock is wrong");
    }

    #[test]
    fn the_first_deferred_delivery_comes_back_at_the_end_and_the_others_spread_after_it() {
        let mut failures = after(10, 2, Outcome::Busy);
        assert_eq!(failures.admit(1_000), at(10_009));
        for _ in 0..3 {
            // At the end of the probation, the outage has lasted ten seconds.
            let spread = Deferral { from_ms: 10_009, spread_ms: 10_000 };
            assert_eq!(failures.admit(1_000), Admission::Deferred(spread));
        }
        let spread = Deferral { from_ms: 1_000, spread_ms: 1_001 };
        assert_eq!(
            [0, u32::MAX / 2, u32::MAX].map(|jitter| spread.until_ms(Jitter(jitter))),
            [1_000, 1_500, 2_000]
        );
    }

    #[test]
    fn ten_failures_in_a_row_are_known_whatever_they_say() {
        for outcome in [Outcome::BadRequest, Outcome::GenericError, Outcome::Busy] {
            assert_eq!(after(9, 1, outcome).all_failed_since_ms(), None);
            let mut failures = after(11, 1, outcome);
            assert_eq!(failures.all_failed_since_ms(), Some(0), "{outcome}");
            failures.record_outcome(&[id(1)], (Outcome::Success, None), 20);
            assert_eq!(failures.all_failed_since_ms(), None);
        }
        assert_eq!(after(20, 2, Outcome::Aborted).all_failed_since_ms(), None);
    }
}
