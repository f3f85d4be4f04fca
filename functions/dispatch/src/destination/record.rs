//! Records the results of attempts in the health of their destination.

use adapters::telemetry;
use delivery::delivery::FailingDestination;
use delivery::delivery::health::Finding;
use delivery::delivery::health::shared::{Attempted, FailureStreak, ROW_MS};
use delivery::delivery::outcome::{Exchange, Outcome, TransportResult, requested_wait_ms};
use uuid::Uuid;

use super::known::State;
use super::passage::Passage;
use super::recovering;
use crate::progress::InFlightDelivery;

/// The findings about a destination after one attempt.
#[derive(Debug, Default)]
struct Found {
    failing: Option<Finding>,
    ceiling: Option<(u32, u64)>,
    row: Option<FailureStreak>,
    slow: Option<Finding>,
}

impl Found {
    fn is_nothing(&self) -> bool {
        self.failing.is_none() && self.row.is_none() && self.slow.is_none()
    }
}

impl Passage {
    /// Records the result of the attempt for these deliveries. Returns true if the result must be
    /// published immediately.
    pub(crate) fn record_result(&mut self, due: &[InFlightDelivery], exchange: &Exchange) -> bool {
        let subscription = &*self.subscription;
        if let Some(permit) = &self.permit
            && exchange.result != TransportResult::Unsendable
        {
            permit.note_taken(exchange.duration_ms);
        }
        let outcome = exchange.outcome(&subscription.retry);
        let is_slow = exchange.duration_ms > subscription.destination.slow_after_ms;
        let mut state = self.destination.state();
        if outcome == Outcome::Success && !is_slow && state.is_quiet(exchange.ended_ms()) {
            return false;
        }
        let last_failure = FailingDestination::after(state.last_failure.take(), exchange, outcome);
        state.last_failure.clone_from(&last_failure);
        self.destination.note_load(&mut state, subscription, exchange);
        let wait_ms = requested_wait_ms(&subscription.retry, exchange);
        state.requested_wait.note(exchange.ended_ms(), wait_ms);
        let found = self.found(&mut state, due, exchange, is_slow);
        if !found.is_nothing() {
            let at_ms = exchange.ended_ms();
            let findings = state.findings(&self.destination, subscription);
            findings.failing = found.failing.map(|failing| (failing, at_ms)).or(findings.failing);
            findings.ceiling = found.ceiling.or(findings.ceiling);
            findings.row = found.row.or(findings.row);
            findings.slow = found.slow.map(|slow| (slow, at_ms)).or(findings.slow);
            findings.last_failure = last_failure;
            // A subscription disables only its own destination, not its reply address or its sink.
            if self.is_own {
                findings.disable = subscription.destination.disable;
            }
            let (started_ms, took_ms) = (exchange.started_ms, exchange.duration_ms);
            findings.add_attempt(Attempted::new(started_ms, outcome, exchange.status(), took_ms));
            self.destination.note_unshared();
        }
        drop(state);
        if let Some(probe) = self.probe.take() {
            probe.made();
        }
        let (name, address) = (&subscription.name, self.destination.address());
        if let Some(finding) = found.failing {
            telemetry::probation(name, address, outcome, finding);
        }
        if let Some(finding) = found.slow {
            telemetry::slow_destination(name, address, finding);
        }
        matches!(found.slow, Some(Finding::Began { .. }))
    }

    fn found(
        &self,
        state: &mut State,
        due: &[InFlightDelivery],
        exchange: &Exchange,
        is_slow: bool,
    ) -> Found {
        let outcome = exchange.outcome(&self.subscription.retry);
        let (at_ms, status) = (exchange.ended_ms(), exchange.status());
        recovering::note_result(state, outcome, status);
        let failing = self.failing(state, due, (outcome, status, at_ms));
        let ceiling = match failing {
            Some(Finding::Ended) => {
                recovering::begin(state, Some(at_ms), None, at_ms);
                None
            }
            Some(Finding::Began { .. }) => recovering::relapse(state, at_ms),
            Some(Finding::GoesOn { .. }) | None => None,
        };
        let slow = match exchange.answer() {
            _ if is_slow => state.slowness.note_slow(at_ms),
            Some(_) => state.slowness.note_in_time(at_ms),
            // A refused connection fails fast, and has no response time.
            None => None,
        };
        Found { failing, ceiling, row: row(state, at_ms), slow }
    }

    /// Updates the probation state of the destination. Returns the change that the outcome causes.
    fn failing(
        &self,
        state: &mut State,
        due: &[InFlightDelivery],
        (outcome, status, at_ms): (Outcome, Option<u16>, u64),
    ) -> Option<Finding> {
        if !self.has_probation() {
            state.failures.count_only(outcome, at_ms);
            return None;
        }
        let ids: Vec<Uuid> = due.iter().map(|in_flight| in_flight.delivery.id).collect();
        let probed = state.failures.is_probing();
        let found = state.failures.record_outcome(&ids, (outcome, status), at_ms);
        // The outcome does not depend on the destination, so a different delivery, in any process,
        // has to probe.
        if probed && found.is_none() && !state.failures.is_probing() {
            state.findings(&self.destination, &self.subscription).is_unprobed = true;
            self.destination.note_unshared();
        }
        found
    }
}

/// Returns the series of failures if its beginning or end has to be published.
fn row(state: &mut State, now_ms: u64) -> Option<FailureStreak> {
    let published_ms = state.streak_published_ms;
    match (state.failures.all_failed_since_ms(), published_ms) {
        (Some(since_ms), published_ms)
            if published_ms.is_none_or(|published_ms| now_ms >= published_ms + ROW_MS) =>
        {
            state.streak_published_ms = Some(now_ms);
            Some(FailureStreak::Failing { since_ms, at_ms: now_ms })
        }
        (Some(_), _) | (None, None) => None,
        (None, Some(_)) => {
            state.streak_published_ms = None;
            Some(FailureStreak::Ended)
        }
    }
}
