//! The attempts of a delivery in a world without faults, replayed by the rules.

use delivery::delivery::outcome::TransportResult;
use delivery::subscription::profile::LIFETIME_MAX_MS;
use dispatch::IN_PLACE_BELOW_MS;

use super::ledger::Seen;
use super::rules::{Expected, Rules};
use super::sinks::Route;

/// The maximum delay of an attempt because its wait is rounded up to whole seconds.
const ROUNDING_MS: u64 = 1_000;

/// Time that an invocation waits for late responses when it has no other work.
const LISTENING_MS: u64 = 10_000;

/// The records of the world about one delivery.
pub(crate) struct DeliveryRecord<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) seen: &'a [Seen],
    /// Postponements: the time of the decision, and the new due time.
    pub(crate) postponements: &'a [(u64, u64)],
    pub(crate) published_ms: u64,
    /// Time from publication to start.
    pub(crate) delayed_ms: u64,
    pub(crate) route: Route,
    /// True if the event leaves no room for our attributes.
    pub(crate) big: bool,
    /// True if some subscription of the world waits for late responses.
    pub(crate) waits_for_late: bool,
    /// The longest wait in place for a turn.
    pub(crate) turn_ms: u64,
}

/// Replays the attempts by the rules. Returns the reasons that the delivery may have ended with;
/// none if it was delivered.
pub(crate) fn replay(routing: DeliveryRecord<'_>) -> Result<Vec<String>, String> {
    let DeliveryRecord { rules, seen, published_ms, delayed_ms, route, big, turn_ms, .. } = routing;
    let retry = &rules.subscription.retry;
    let own_ms = retry.time_to_live_ms.map_or(u64::MAX, |own_ms| delayed_ms + own_ms);
    let limit_ms = published_ms + own_ms.min(LIFETIME_MAX_MS);
    let starts_ms = published_ms + delayed_ms;
    let names_limit = rules.subscription.dialect.as_str().starts_with("eventgrid");
    let mut due_ms = (starts_ms, starts_ms);
    let mut postponements = routing.postponements.iter().peekable();
    for (index, attempt) in seen.iter().enumerate() {
        let attempts = index as u32 + 1;
        while let Some((at_ms, until_ms)) =
            postponements.next_if(|(at_ms, until_ms)| precedes(*at_ms, *until_ms, attempt.at_ms))
        {
            due_ms = check_postponement(due_ms, *at_ms, *until_ms, turn_ms)?;
        }
        // If its invocation ran out of time, the delivery was re-enqueued together with the last of
        // the other deliveries.
        let before = index.checked_sub(1).map(|before| &seen[before].result_seen);
        let held_up = routing.waits_for_late && matches!(before, Some(TransportResult::TimedOut));
        let late_ms = ROUNDING_MS + turn_ms + if held_up { LISTENING_MS } else { 0 };
        if attempt.at_ms < due_ms.0 || attempt.at_ms > due_ms.1 + late_ms {
            return Err(format!(
                "attempt {attempts} at {} although due within {due_ms:?}",
                attempt.at_ms
            ));
        }
        let last = index + 1 == seen.len();
        let end = match attempt.expected {
            Expected::Delivered => Some(Vec::new()),
            Expected::RetriedAlone => {
                due_ms = (attempt.ended_ms, attempt.ended_ms);
                None
            }
            Expected::Final if attempts >= retry.max_attempts && names_limit => {
                Some(vec!["MaxDeliveryAttemptsExceeded".to_owned()])
            }
            Expected::Final => Some(vec!["UndeliverableDueTo".to_owned()]),
            Expected::Retry(_) if attempts >= retry.max_attempts => {
                Some(vec!["MaxDeliveryAttemptsExceeded".to_owned()])
            }
            Expected::Retry(least_ms) => {
                let wait_ms = rules.wait_ms(attempts, attempt.first_ms, attempt.ended_ms, least_ms);
                due_ms = (attempt.ended_ms + wait_ms.0, attempt.ended_ms + wait_ms.1);
                None
            }
        };
        match (end, last) {
            (Some(end), true) => return Ok(end),
            (Some(_), false) => {
                return Err(format!("attempt {attempts} was its end, yet there are more"));
            }
            (None, _) => {}
        }
    }
    for (at_ms, until_ms) in postponements {
        due_ms = check_postponement(due_ms, *at_ms, *until_ms, turn_ms)?;
    }
    let mut ends = Vec::new();
    if due_ms.1 + ROUNDING_MS + turn_ms >= limit_ms {
        ends.push("TimeToLiveExceeded".to_owned());
    }
    let waits_to_start = delayed_ms >= IN_PLACE_BELOW_MS;
    let may_be_held = route == Route::Event && rules.subscription.destination.probation;
    if big && (!seen.is_empty() || waits_to_start || may_be_held) {
        // The size is detected when the delivery is re-enqueued, perhaps before its time to live
        // has passed.
        ends.push("EventTooLargeToResend".to_owned());
    }
    if !ends.is_empty() {
        return Ok(ends);
    }
    Err(format!("no attempt after {} although one was due", seen.len()))
}

/// True if a postponement came before an attempt. At the same time, a postponement that ends later
/// came after the attempt.
fn precedes(at_ms: u64, until_ms: u64, attempt_ms: u64) -> bool {
    at_ms < attempt_ms || (at_ms == attempt_ms && until_ms <= attempt_ms)
}

/// Checks that a due attempt was postponed neither before it was due nor long after. Returns the
/// new due time.
fn check_postponement(
    due_ms: (u64, u64),
    at_ms: u64,
    until_ms: u64,
    turn_ms: u64,
) -> Result<(u64, u64), String> {
    if at_ms < due_ms.0 || at_ms > due_ms.1 + ROUNDING_MS + turn_ms {
        return Err(format!("postponed at {at_ms} although due within {due_ms:?}"));
    }
    Ok((until_ms, until_ms))
}
