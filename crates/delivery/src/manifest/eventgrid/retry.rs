//! `retryPolicy` and the limits of a push subscription.
//!
//! Separate because the documented ranges differ by kind of resource; missing values are the
//! profile's. Only limits can be set: the schedule is the dialect's.

use super::super::reader::{Cursor, Fields};
use super::Context;
use crate::subscription::profile::{ATTEMPTS_MAX, Dialect, LIFETIME_MAX_MS};
use crate::time::duration::{DAY_MS, MINUTE_MS};

/// The retry limits of a resource.
#[derive(Default)]
pub(super) struct Limits {
    /// Attempts in all.
    pub(super) max_attempts: Option<u32>,
    /// Past this age no attempt begins.
    pub(super) time_to_live_ms: Option<u64>,
}

impl Limits {
    /// Reads the fields of `retryPolicy`.
    pub(super) fn of_policy(
        fields: &Fields<'_>,
        dialect: Dialect,
        context: &mut Context<'_>,
    ) -> Self {
        let (attempts_max, minutes_max) = match dialect {
            // Event Grid on Kubernetes names no upper bound; the limits of all dialects apply.
            Dialect::EventGridKubernetes => (ATTEMPTS_MAX, LIFETIME_MAX_MS / MINUTE_MS),
            Dialect::EventGridNamespace => (10, 7 * DAY_MS / MINUTE_MS),
            Dialect::EventGrid
            | Dialect::EventGridResource
            | Dialect::Knative
            | Dialect::Native => (30, 1_440),
        };
        let attempts = attempts(fields);
        let minutes = fields.given("eventTimeToLiveInMinutes");
        context.note("maxAttempts", attempts.as_ref());
        context.note("timeToLive", minutes.as_ref());
        let minutes_max = u32::try_from(minutes_max).unwrap_or(u32::MAX);
        Self {
            max_attempts: attempts.and_then(|cursor| cursor.integer(1..=attempts_max)),
            time_to_live_ms: minutes
                .and_then(|cursor| cursor.integer(1..=minutes_max))
                .map(|minutes| u64::from(minutes) * MINUTE_MS),
        }
    }

    /// Reads the limits among the fields of `push`.
    pub(super) fn of_push(fields: &Fields<'_>, context: &mut Context<'_>) -> Self {
        let attempts = fields.given("maxDeliveryCount");
        let time_to_live = fields.given("eventTimeToLive");
        context.note("maxAttempts", attempts.as_ref());
        context.note("timeToLive", time_to_live.as_ref());
        Self {
            max_attempts: attempts.and_then(|cursor| cursor.integer(1..=10)),
            time_to_live_ms: time_to_live
                .and_then(|cursor| cursor.duration_ms(MINUTE_MS..=7 * DAY_MS)),
        }
    }
}

/// `maxDeliveryAttempts`, or its other name in the documents for Kubernetes.
fn attempts<'a>(fields: &Fields<'a>) -> Option<Cursor<'a>> {
    let [attempts, other] =
        ["maxDeliveryAttempts", "maxNumberOfAttempts"].map(|field| fields.given(field));
    if attempts.is_some()
        && let Some(other) = &other
    {
        other.warn("not used: maxDeliveryAttempts is given too");
    }
    attempts.or(other)
}
