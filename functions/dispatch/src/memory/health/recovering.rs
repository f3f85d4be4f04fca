//! Destinations that recover from an outage: few requests a second at first, from all processes together.
//!
//! The rule and the rate are `delivery::table::Recovery`, in the item of the destination's limits. Kept here: the recovery
//! as this process knows it, and its results since it reported last.

use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::probation::first_ms;
use delivery::delivery::outcome::Outcome;
use delivery::subscription::Subscription;
use delivery::table::{Recovery, Report, Results};
use delivery::time::duration::HOUR_MS;

use super::failing::applies;
use super::{Health, Memory, key_of};
use crate::progress::InFlightDelivery;

/// Nobody needs protection from an outage that ended this long ago.
const RECOVERS_MAX_MS: u64 = HOUR_MS;

impl Health {
    /// What is reported with the next request to this destination; `None` if it does not recover.
    pub(crate) fn report(
        &self,
        subscription: &Subscription,
        due: &[InFlightDelivery],
        now_ms: u64,
    ) -> Option<Report> {
        let memory = self.memory();
        // Nearly always none does: then no address is hashed.
        if memory.recovering.is_empty() || !applies(subscription, due) {
            return None;
        }
        let report = memory.recovering.get(&key_of(subscription))?;
        (!report.known.is_over(now_ms)).then_some(*report)
    }

    /// Takes over the recovery that an item holds. These results are in it, if they were reported.
    pub(crate) fn note_recovery(
        &self,
        key: DestinationKey,
        recovery: Recovery,
        reported: Option<Results>,
    ) {
        let mut memory = self.memory();
        let Some(report) = memory.recovering.get_mut(&key) else { return };
        report.known = recovery;
        if let Some(Results { good, failed }) = reported {
            report.results.good = report.results.good.saturating_sub(good);
            report.results.failed = report.results.failed.saturating_sub(failed);
        }
    }

    /// Takes over that an outage has ended.
    pub(crate) fn note_ended(
        &self,
        key: DestinationKey,
        ended_ms: Option<u64>,
        ceiling: Option<(u32, u64)>,
        now_ms: u64,
    ) {
        begin(&mut self.memory(), key, ended_ms, ceiling, now_ms);
    }
}

/// Begins a recovery, unless this process knows it or a later one.
pub(super) fn begin(
    memory: &mut Memory,
    key: DestinationKey,
    ended_ms: Option<u64>,
    ceiling: Option<(u32, u64)>,
    now_ms: u64,
) {
    let Some(ended_ms) = ended_ms.filter(|it| now_ms < it.saturating_add(RECOVERS_MAX_MS)) else {
        return;
    };
    let is_known = memory.recovering.get(&key).is_some_and(|it| it.known.began_ms >= ended_ms);
    if !is_known {
        memory
            .recovering
            .retain(|_, it| now_ms < it.known.began_ms.saturating_add(RECOVERS_MAX_MS));
        let known = Recovery::beginning(ceiling, ended_ms);
        memory.recovering.insert(key, Report { known, results: Results::default() });
    }
}

/// Counts the result of an attempt.
pub(super) fn note_result(
    memory: &mut Memory,
    key: DestinationKey,
    outcome: Outcome,
    status: Option<u16>,
) {
    let Some(report) = memory.recovering.get_mut(&key) else { return };
    let is_failure = first_ms(outcome, status).is_some();
    // What was not sent says nothing.
    if is_failure {
        report.results.failed = report.results.failed.saturating_add(1);
    } else if !matches!(outcome, Outcome::Aborted | Outcome::Blocked) {
        report.results.good = report.results.good.saturating_add(1);
    }
}

/// The ceiling after a relapse, if the destination was recovering.
pub(super) fn relapse(memory: &mut Memory, key: DestinationKey, now_ms: u64) -> Option<(u32, u64)> {
    let report = memory.recovering.remove(&key)?;
    (!report.known.is_over(now_ms)).then(|| report.known.ceiling_after_relapse(now_ms))
}
