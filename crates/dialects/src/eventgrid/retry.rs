//! Reads `retryPolicy` and the limits of a push subscription.
//!
//! Separate because the documented ranges depend on the type of resource. Missing values come from
//! the profile. Only limits are configurable, because the dialect determines the schedule.

use serde_json::json;

use super::super::translation::Translation;
use delivery::document::reader::{Cursor, Fields};
use delivery::subscription::profile::{ATTEMPTS_MAX, Dialect, LIFETIME_MAX_MS};
use delivery::time::duration::{DAY_MS, MINUTE_MS, format_ms};

/// Path of the native field with the total number of attempts.
const ATTEMPTS: &str = "retry.maxAttempts";
/// Path of the native field with the age after which no attempt begins.
const TIME_TO_LIVE: &str = "retry.timeToLive";

pub(super) fn policy(fields: &Fields<'_>, dialect: Dialect, to: &mut Translation) {
    let (attempts_max, minutes_max) = match dialect {
        // Event Grid on Kubernetes documents no upper limit, so the limits of all dialects apply.
        Dialect::EventGridKubernetes => (ATTEMPTS_MAX, LIFETIME_MAX_MS / MINUTE_MS),
        Dialect::EventGridNamespace => (10, 7 * DAY_MS / MINUTE_MS),
        Dialect::EventGrid | Dialect::EventGridResource | Dialect::Knative | Dialect::Native => {
            (30, 1_440)
        }
    };
    let minutes_max = u32::try_from(minutes_max).unwrap_or(u32::MAX);
    if let Some(at) = attempts(fields) {
        to.set_some(ATTEMPTS, at.integer(1..=attempts_max), |count| json!(count), Some(&at));
    }
    if let Some(at) = fields.given("eventTimeToLiveInMinutes") {
        let ms = at.integer(1..=minutes_max).map(|minutes| u64::from(minutes) * MINUTE_MS);
        to.set_some(TIME_TO_LIVE, ms, |ms| json!(format_ms(ms)), Some(&at));
    }
}

/// Translates the limits in `push`.
pub(super) fn push(fields: &Fields<'_>, to: &mut Translation) {
    if let Some(at) = fields.given("maxDeliveryCount") {
        to.set_some(ATTEMPTS, at.integer(1..=10), |count| json!(count), Some(&at));
    }
    if let Some(at) = fields.given("eventTimeToLive") {
        let ms = at.duration_ms(MINUTE_MS..=7 * DAY_MS);
        to.set_some(TIME_TO_LIVE, ms, |ms| json!(format_ms(ms)), Some(&at));
    }
}

/// Returns the field `maxDeliveryAttempts`, or its other name in the documentation for Kubernetes.
fn attempts<'a>(fields: &Fields<'a>) -> Option<Cursor<'a>> {
    let [attempts, other] =
        ["maxDeliveryAttempts", "maxNumberOfAttempts"].map(|field| fields.given(field));
    if attempts.is_some()
        && let Some(other) = &other
    {
        other.warn("no effect: maxDeliveryAttempts is also set");
    }
    attempts.or(other)
}
