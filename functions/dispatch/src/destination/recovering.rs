//! Limits the rate of destinations that recover from an outage: at first a few requests a second,
//! from all processes together.
//!
//! The rule and the rate are in `delivery::table::Recovery`, in the limits item of the destination.
//! This module keeps a copy of the recovery, and the unreported results of this process.

use delivery::delivery::health::probation::first_ms;
use delivery::delivery::outcome::Outcome;
use delivery::ports::DispatchPorts;
use delivery::subscription::profile::LIFETIME_MAX_MS;

use delivery::table::{
    Line, Places, RECOVERS_MAX_MS, Recovery, Report, Results, SlotQueue, Table as _, TakePlaces,
};
use futures::FutureExt as _;

use super::known::{Destination, State};
use super::passage::Passage;
use super::{Destinations, GATHER_MS};
use crate::deadline::Deadline;
use crate::invocation::Invocation;

/// Maximum number of requests to the table while the table's recovery differs from the one in this
/// process.
pub(super) const TRIES: u32 = 3;

/// Begins a recovery, unless this process already has the same recovery or a later one.
pub(crate) fn begin(
    state: &mut State,
    ended_ms: Option<u64>,
    ceiling: Option<(u32, u64)>,
    now_ms: u64,
) {
    // Begin the recovery whenever possible: the item shows later whether the destination still
    // recovers.
    let Some(ended_ms) =
        ended_ms.filter(|ended_ms| now_ms < ended_ms.saturating_add(RECOVERS_MAX_MS))
    else {
        return;
    };
    let known = state.recovering.map(|report| report.known);
    if known.is_some_and(|recovery| recovery.began_ms >= ended_ms) {
        return;
    }
    let ceiling = ceiling.or_else(|| known?.ceiling);
    // Starts as if a delivery had just waited. The item may show that the recovery is over.
    let known = Recovery { waited_ms: now_ms, ..Recovery::beginning(ceiling, ended_ms) };
    state.recovering = Some(Report { known, results: Results::default() });
}

/// Returns the report for the next request to the table; `None` if the destination is not
/// recovering.
pub(super) fn report(state: &State, now_ms: u64) -> Option<Report> {
    state.recovering.filter(|report| !report.known.is_over(now_ms))
}

/// Adopts the recovery in an item, which already includes the `reported` results.
pub(super) fn note_recovery(state: &mut State, recovery: Recovery, reported: Option<Results>) {
    let Some(report) = &mut state.recovering else { return };
    if recovery.began_ms >= report.known.began_ms {
        // A relapse in this process may be newer than the item, so the known ceiling is kept.
        report.known = recovery.with_ceiling(report.known.ceiling);
    }
    report.results = report.results.without(reported.unwrap_or_default());
}

/// Counts a delivery that is deferred without a slot. `is_new` is false if the delivery is already
/// counted.
///
/// The wait is recorded even then. Otherwise the recovery would end after 15 minutes in a long
/// backlog, whose deliveries are all counted already, and the rest would be sent without a limit.
pub(super) fn note_away(state: &mut State, is_new: bool) {
    if let Some(report) = &mut state.recovering {
        report.results.away = report.results.away.saturating_add(is_new.into());
        report.results.waits = true;
    }
}

/// Records that a delivery waits for its slot.
pub(super) fn note_wait(state: &mut State) {
    if let Some(report) = &mut state.recovering {
        report.results.waits = true;
    }
}

/// Counts deliveries that had been deferred without a slot and have a slot now.
pub(super) fn note_back(state: &mut State, count: usize) {
    if let Some(report) = &mut state.recovering {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        report.results.away = report.results.away.saturating_sub(count);
    }
}

/// Counts the result of an attempt during a recovery, as good or as failed.
pub(super) fn note_result(state: &mut State, outcome: Outcome, status: Option<u16>) {
    let Some(report) = &mut state.recovering else { return };
    // These responses can begin a probation, but do not depend on the load.
    let is_refusal =
        matches!(outcome, Outcome::NotFound | Outcome::Unauthorized | Outcome::Forbidden);
    let is_failure = first_ms(outcome, status).is_some() && !is_refusal;
    // A request that was not sent does not count.
    if is_failure {
        report.results.failed = report.results.failed.saturating_add(1);
    } else if !matches!(outcome, Outcome::Aborted | Outcome::Blocked) {
        report.results.good = report.results.good.saturating_add(1);
    }
}

/// Returns the maximum rate after a relapse, and the time of the relapse; `None` if the destination
/// was not recovering.
pub(super) fn relapse(state: &mut State, now_ms: u64) -> Option<(u32, u64)> {
    let report = state.recovering.as_mut().filter(|report| !report.known.is_over(now_ms))?;
    let ceiling = report.known.ceiling_after_fall(now_ms);
    // Kept here too, because the next recovery stays below this rate.
    report.known.ceiling = Some(ceiling);
    Some(ceiling)
}

/// Adopts the response of the table to a report. Returns true if the table has received the
/// results.
pub(super) fn note_places(state: &mut State, report: &Report, places: Places) -> bool {
    let is_reported = matches!(places.line, Line::Taken { .. });
    if let Some(recovery) = places.recovery {
        note_recovery(state, recovery, is_reported.then_some(report.results));
    }
    is_reported
}

impl<P: DispatchPorts> Destinations<P> {
    /// Immediately reports the results of attempts at a recovering destination. All processes have
    /// to slow down within a second or two of a relapse.
    pub(crate) async fn report_results(&self, passage: &Passage, invocation: &Invocation<'_>) {
        let destination = &passage.destination;
        let recovers = report(&destination.state(), self.now_ms()).is_some();
        if recovers && passage.has_probation() {
            self.report_all(destination, invocation.deadline).boxed().await;
        }
    }

    async fn report_all(&self, destination: &Destination, deadline: &Deadline) {
        // Other attempts of this invocation may end now, and share the report.
        self.ports.sleep(GATHER_MS).await;
        let own = destination.recovery.own.lock().await;
        let item = destination.key.limits_item(&destination.namespace);
        for _ in 0..TRIES {
            let now_ms = self.now_ms();
            let report = report(&destination.state(), now_ms);
            let Some(report) = report.filter(|report| !report.results.is_none()) else { return };
            let earliest_ms = report.known.places_from_ms(now_ms);
            let nothing = TakePlaces {
                count: 0,
                each_us: 0,
                others_wait: own.line_until_ms > earliest_ms,
                earliest_ms,
                latest_ms: u64::MAX / 1_000,
                plausible_ms: now_ms.saturating_add(LIFETIME_MAX_MS),
                report: Some(report),
            };
            let table = self.table.port();
            let asked = table.take_places(&item, SlotQueue::Recovery, &nothing, now_ms);
            let Ok(places) = self.table.answer(asked, deadline).await else { return };
            let is_reported = note_places(&mut destination.state(), &report, places);
            if is_reported {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_too_much_load_is_a_failure_and_what_was_not_sent_is_neither() {
        for (outcome, status, good, failed) in [
            (Outcome::Success, Some(200), 1, 0),
            (Outcome::BadRequest, Some(400), 1, 0),
            (Outcome::NotFound, Some(404), 1, 0),
            (Outcome::Busy, Some(503), 0, 1),
            (Outcome::GenericError, Some(500), 0, 1),
            (Outcome::TimedOut, None, 0, 1),
            (Outcome::SocketError, None, 0, 1),
            (Outcome::Aborted, None, 0, 0),
        ] {
            let mut state = State::default();
            begin(&mut state, Some(5_000), None, 5_000);
            note_result(&mut state, outcome, status);
            let results = state.recovering.map(|report| report.results);
            assert_eq!(
                results,
                Some(Results { good, failed, ..Results::default() }),
                "{outcome:?}"
            );
        }
    }
}
