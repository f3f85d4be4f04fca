//! Formats a destination as JSON, for tools. Every object has all members; times are RFC 3339.

use delivery::delivery::health::notice::Notice;
use delivery::delivery::health::shared::{Attempted, DestinationState, Spell};
use delivery::table::Recovery;
use delivery::time::moment::rfc3339;
use serde::Serialize;
use uuid::Uuid;

use super::known::{Destination, GivenOut};
use super::state::{NextAttempt, next_attempt};

/// A destination in the output of `list`.
#[derive(Debug, Serialize)]
pub(crate) struct ListedJson {
    key: String,
    /// The address of the destination, without credentials and query.
    destination: String,
    subscriptions: Vec<String>,
    /// True if `failing`, `refusing`, `slow` and `disabled` are all `null`.
    healthy: bool,
    failing: Option<SpellJson>,
    /// The period in which the destination refuses requests; `null` unless the last ten attempts
    /// failed with outcomes that do not begin a probation.
    refusing: Option<SpellJson>,
    slow: Option<SpellJson>,
    disabled: Option<DisabledJson>,
    /// The time for which the next probe is scheduled; `null` if none is scheduled.
    next_attempt_at: Option<String>,
    changed_at: Option<String>,
}

#[derive(Debug, Serialize)]
struct SpellJson {
    since: String,
    until: String,
}

#[derive(Debug, Serialize)]
struct DisabledJson {
    since: String,
    why: String,
}

/// A destination with its whole state, in the output of `show`.
#[derive(Debug, Serialize)]
pub(crate) struct DestinationJson {
    #[serde(flatten)]
    listed: ListedJson,
    /// The latest time at which the current probe ends.
    probe_until: Option<String>,
    attempts: Vec<AttemptJson>,
    /// The lowest rate limit of the destination's subscriptions, in requests per second.
    max_per_second: Option<u32>,
    /// The time of the next free slot under the rate limit.
    next_slot_at: Option<String>,
    /// The lowest `maxConcurrency` of the subscriptions with this destination. All functions share
    /// this limit.
    max_concurrency: Option<u32>,
    /// The number of permits of `max_concurrency` that are in use.
    permits_in_use: Option<u32>,
    /// The latest start time that is reserved for a delivery without a permit.
    turns_until: Option<String>,
    /// The recovery of the destination; only while it recovers from an outage.
    recovery: Option<RecoveryJson>,
    /// The notices that have not been sent yet.
    notices: Vec<NoticeJson>,
}

#[derive(Debug, Serialize)]
struct RecoveryJson {
    /// The time when the outage ended, and the recovery began.
    began: String,
    /// The current limit in requests per second, for all running functions together.
    rate: u32,
    /// The time when the rate last changed.
    since: String,
    /// The number of successful requests since the rate last changed.
    good: u32,
    /// The number of failed requests since the rate last changed.
    failed: u32,
    /// The maximum rate after the rate has fallen; `null` once this maximum has expired.
    ceiling: Option<u32>,
    /// The time when `ceiling` expires.
    ceiling_until: Option<String>,
}

impl RecoveryJson {
    fn new(recovery: Recovery, now_ms: u64) -> Self {
        let Recovery { began_ms, rate, since_ms, good, failed, ceiling, .. } = recovery;
        let ceiling = ceiling.filter(|(_, until_ms)| now_ms < *until_ms);
        let (ceiling, until_ms) = ceiling.unzip();
        let (began, since) = (rfc3339(began_ms), rfc3339(since_ms));
        Self { began, rate, since, good, failed, ceiling, ceiling_until: until_ms.map(rfc3339) }
    }
}

#[derive(Debug, Serialize)]
struct AttemptJson {
    at: String,
    /// The outcome of the attempt; `null` for an abandoned attempt.
    outcome: Option<String>,
    status: Option<u16>,
    duration_ms: u64,
}

#[derive(Debug, Serialize)]
struct NoticeJson {
    id: Uuid,
    kind: String,
    at: String,
}

impl ListedJson {
    pub(crate) fn new(destination: &Destination, now_ms: u64) -> Self {
        let state = destination.state.as_ref();
        let spell = |spell: Spell| SpellJson {
            since: rfc3339(spell.since_ms),
            until: rfc3339(spell.until_ms),
        };
        let disabled = state.and_then(|state| state.disabled.as_ref());
        let next = state.filter(|_| disabled.is_none()).map(|state| next_attempt(state, now_ms));
        Self {
            key: destination.key.to_string(),
            destination: destination.address.clone(),
            subscriptions: destination.names(),
            healthy: disabled.is_none() && state.is_none_or(DestinationState::is_healthy),
            failing: state.and_then(|state| state.failing).map(spell),
            refusing: state.and_then(|state| state.refusing).map(spell),
            slow: state.and_then(|state| state.slow).map(spell),
            disabled: disabled.map(|disabled| DisabledJson {
                since: rfc3339(disabled.since_ms),
                why: disabled.why.clone(),
            }),
            next_attempt_at: match next {
                Some(NextAttempt::At(at_ms)) => Some(rfc3339(at_ms)),
                Some(NextAttempt::UnderWay(_) | NextAttempt::Due | NextAttempt::Always) | None => {
                    None
                }
            },
            changed_at: state.map(|state| rfc3339(state.changed_ms)),
        }
    }
}

impl DestinationJson {
    pub(crate) fn new(destination: &Destination, given_out: GivenOut, now_ms: u64) -> Self {
        let state = destination.state.as_ref();
        let rates = destination.subscriptions.iter();
        let attempts = state.into_iter().flat_map(|state| &state.attempts);
        let notices = state.into_iter().flat_map(|state| &state.notices);
        Self {
            listed: ListedJson::new(destination, now_ms),
            probe_until: state.and_then(|state| state.probe_until_ms).map(rfc3339),
            attempts: attempts.map(AttemptJson::new).collect(),
            max_per_second: rates
                .filter_map(|subscription| subscription.destination.max_per_second)
                .min(),
            next_slot_at: given_out.next_slot_ms.map(rfc3339),
            max_concurrency: destination.shared_concurrency().min(),
            permits_in_use: given_out.permits,
            turns_until: given_out.turns_ms.map(rfc3339),
            recovery: given_out.recovery.map(|recovery| RecoveryJson::new(recovery, now_ms)),
            notices: notices.map(NoticeJson::new).collect(),
        }
    }
}

impl AttemptJson {
    fn new(attempt: &Attempted) -> Self {
        let Attempted { at_ms, outcome, status, duration_ms } = attempt;
        let (at, outcome) = (rfc3339(*at_ms), outcome.clone());
        Self { at, outcome, status: *status, duration_ms: *duration_ms }
    }
}

impl NoticeJson {
    fn new(notice: &Notice) -> Self {
        Self { id: notice.id, kind: notice.kind.to_string(), at: rfc3339(notice.at_ms) }
    }
}
