//! Describes the state of a destination for people.

use delivery::delivery::health::shared::{Attempted, DestinationState};
use delivery::delivery::outcome::Outcome;
use delivery::time::duration::MINUTE_MS;

use crate::terminal::text;

/// An unhealthy condition of a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    /// The name of the condition, such as `disabled`.
    pub(crate) name: &'static str,
    pub(crate) since_ms: u64,
    /// The reason for the condition; empty if none is stored.
    pub(crate) why: String,
}

/// Returns the unhealthy conditions of a destination; empty if deliveries to it are attempted as
/// usual.
pub(crate) fn conditions(state: &DestinationState) -> Vec<Condition> {
    let disabled = state.disabled.as_ref().map(|disabled| Condition {
        name: "disabled",
        since_ms: disabled.since_ms,
        why: text::line(&disabled.why),
    });
    // `failing` is shown with and without probation; `next` shows the difference.
    let failing = state.failing.or(state.refusing).map(|failing| Condition {
        name: "failing",
        since_ms: failing.since_ms,
        why: last(state, "last attempt", |attempt| !is_slow(attempt)),
    });
    let slow = state.slow.map(|slow| Condition {
        name: "slow",
        since_ms: slow.since_ms,
        why: last(state, "last slow attempt", is_slow),
    });
    [disabled, failing, slow].into_iter().flatten().collect()
}

/// Describes the outcome and the duration of an attempt.
pub(crate) fn outcome(attempt: &Attempted) -> String {
    let took = text::duration(attempt.duration_ms);
    match &attempt.outcome {
        None => format!("abandoned after {took}"),
        Some(outcome) => format!("{} in {took}", text::outcome(Some(outcome), attempt.status)),
    }
}

/// Describes the newest stored attempt for which `is_wanted` is true; empty if there is none.
fn last(state: &DestinationState, name: &str, is_wanted: impl Fn(&Attempted) -> bool) -> String {
    let newest = state.attempts.iter().rev().find(|attempt| is_wanted(attempt));
    newest.map(|attempt| format!("{name}: {}", outcome(attempt))).unwrap_or_default()
}

/// Returns true if an attempt was stored only because it was slow.
fn is_slow(attempt: &Attempted) -> bool {
    attempt.outcome.as_deref().is_none_or(|outcome| outcome == Outcome::Success.as_str())
}

/// Describes when the next delivery to the destination is attempted.
pub(crate) fn next(state: &DestinationState, now_ms: u64) -> String {
    if state.disabled.is_some() {
        return "deliveries become dead letters until the destination is enabled".to_owned();
    }
    match (next_attempt(state, now_ms), state.slow) {
        (NextAttempt::At(at_ms), _) => {
            format!(
                "no request until {}; then one delivery probes the destination",
                until(at_ms, now_ms)
            )
        }
        (NextAttempt::UnderWay(until_ms), _) => format!(
            "a delivery is probing the destination; if it has no result by {}, another delivery will probe it",
            text::at(Some(until_ms))
        ),
        (NextAttempt::Due, _) => "the next delivery probes the destination".to_owned(),
        (NextAttempt::Always, Some(_)) => {
            "deliveries are attempted in the slow lane until the destination has responded in time \
             for ten minutes"
                .to_owned()
        }
        (NextAttempt::Always, None) => "deliveries are attempted immediately".to_owned(),
    }
}

/// The time when the next request to a destination that is not disabled may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextAttempt {
    /// The next request is a probe, scheduled for this time in milliseconds.
    At(u64),
    /// A probe is in progress. It ends at this time at the latest.
    UnderWay(u64),
    /// No probe is scheduled or in progress. The next delivery immediately sends a probe.
    Due,
    /// Requests may start at any time, because they are not deferred.
    Always,
}

pub(crate) fn next_attempt(state: &DestinationState, now_ms: u64) -> NextAttempt {
    let Some(failing) = state.failing else { return NextAttempt::Always };
    if now_ms < failing.until_ms {
        return NextAttempt::At(failing.until_ms);
    }
    let probe_ms = state.probe_until_ms.filter(|until_ms| now_ms < *until_ms);
    probe_ms.map_or(NextAttempt::Due, NextAttempt::UnderWay)
}

/// Describes when the next request may start, in a few words.
pub(crate) fn next_attempt_text(state: &DestinationState, now_ms: u64) -> String {
    match (&state.disabled, next_attempt(state, now_ms)) {
        (Some(_), _) => "when enabled".to_owned(),
        (None, NextAttempt::At(at_ms)) => format!("in {}", about(at_ms.saturating_sub(now_ms))),
        (None, NextAttempt::UnderWay(_)) => "under way".to_owned(),
        (None, NextAttempt::Due) => "with the next delivery".to_owned(),
        (None, NextAttempt::Always) if state.slow.is_some() => "immediately, slow lane".to_owned(),
        (None, NextAttempt::Always) => "immediately".to_owned(),
    }
}

/// Formats a past time, and how long ago it was.
pub(crate) fn since(at_ms: u64, now_ms: u64) -> String {
    format!("{} ({})", text::at(Some(at_ms)), about(now_ms.saturating_sub(at_ms)))
}

/// Formats a future time, and the duration until then.
pub(crate) fn until(at_ms: u64, now_ms: u64) -> String {
    format!("{} (in {})", text::at(Some(at_ms)), about(at_ms.saturating_sub(now_ms)))
}

/// Formats a duration. From ten minutes on, omits the seconds.
fn about(ms: u64) -> String {
    let whole_ms = if ms < 10 * MINUTE_MS { ms } else { ms - ms % MINUTE_MS };
    text::duration(whole_ms)
}

#[cfg(test)]
mod tests {
    use delivery::delivery::health::shared::Spell;
    use delivery::time::duration::{HOUR_MS, SECOND_MS};

    use super::*;

    const NOW_MS: u64 = 1_795_158_180_000;

    fn healthy() -> DestinationState {
        DestinationState::healthy("https://a.example.com/", "n/t/s", NOW_MS - HOUR_MS)
    }

    fn spell(until_ms: u64) -> Option<Spell> {
        Some(Spell { since_ms: NOW_MS - HOUR_MS, until_ms, lasts_ms: 60_000 })
    }

    #[test]
    fn a_destination_can_be_unhealthy_in_several_ways_each_with_its_reason() {
        let mut state = healthy();
        assert_eq!(conditions(&state), []);
        state.failing = spell(NOW_MS);
        state.slow = spell(NOW_MS);
        state.attempts = vec![
            Attempted::new(1, Outcome::Success, Some(200), 3_000),
            Attempted::new(2, Outcome::Busy, Some(503), 12),
            Attempted::abandoned(3, 2_003),
        ];
        let state = state.disabled_by_operator(NOW_MS);
        let found: Vec<_> = conditions(&state)
            .into_iter()
            .map(|condition| (condition.name, condition.since_ms, condition.why))
            .collect();
        let began_ms = NOW_MS - HOUR_MS;
        assert_eq!(
            found,
            [
                ("disabled", NOW_MS, "by an operator".to_owned()),
                (
                    "failing",
                    began_ms,
                    "last attempt: 503 Service Unavailable (Busy) in 12 ms".to_owned()
                ),
                ("slow", began_ms, "last slow attempt: abandoned after 2 s".to_owned()),
            ]
        );
    }

    #[test]
    fn what_happens_next_depends_on_the_worst_state() {
        let mut state = healthy();
        let next_of =
            |state: &DestinationState| (next_attempt_text(state, NOW_MS), next(state, NOW_MS));
        assert_eq!(next_of(&state).1, "deliveries are attempted immediately");
        state.slow = spell(NOW_MS + 90 * SECOND_MS);
        let (short, long) = next_of(&state);
        assert_eq!(short, "immediately, slow lane");
        assert!(
            long.contains("until the destination has responded in time for ten minutes"),
            "{long}"
        );
        (state.slow, state.refusing) = (None, spell(NOW_MS + HOUR_MS));
        assert_eq!(next_of(&state).1, "deliveries are attempted immediately");
        assert_eq!(conditions(&state)[0].name, "failing");
        state.failing = spell(NOW_MS + 42 * MINUTE_MS + 59 * SECOND_MS);
        let (short, long) = next_of(&state);
        assert_eq!(short, "in 42 min");
        assert!(long.contains("no request until 2026-11-20 07:45:59Z (in 42 min)"), "{long}");
        state.failing = spell(NOW_MS);
        assert_eq!(next_of(&state).1, "the next delivery probes the destination");
        state.probe_until_ms = Some(NOW_MS + 1);
        assert_eq!(next_of(&state).0, "under way");
        let disabled = state.disabled_by_operator(NOW_MS);
        assert_eq!(next_of(&disabled).0, "when enabled");
        assert!(next_of(&disabled).1.contains("dead letters"));
    }
}
