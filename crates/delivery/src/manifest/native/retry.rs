//! `retry`: how deliveries are retried.
//!
//! Separate because the fields depend on one another: a status is a success, never retried, or
//! retried, and a Subscription's list overrides what its Topic or the profile says about the same
//! status.

use super::super::findings::{Message, quoted};
use super::super::reader::{Cursor, Fields};
use super::super::statuses;
use super::schedule;
use crate::subscription::profile::{
    ATTEMPTS_MAX, LIFETIME_MAX_MS, LeastWaits, RetryPolicy, StatusSet,
};
use crate::subscription::schedule::Schedule;
use crate::time::duration::SECOND_MS;

/// The retry settings of a document.
#[derive(Clone, Default)]
pub(super) struct RetrySettings {
    max_attempts: Option<u32>,
    time_to_live_ms: Option<u64>,
    schedule: Option<Schedule>,
    jitter_percent: Option<u32>,
    success: Option<StatusSet>,
    never_retry: Option<StatusSet>,
    retry_on: Option<StatusSet>,
    least_waits: Option<Vec<(u16, u64)>>,
    retry_after_max_ms: Option<u64>,
}

impl RetrySettings {
    /// Reads the fields of `retry`.
    pub(super) fn read(fields: &Fields<'_>) -> Self {
        let duration_ms = |name, range_ms| fields.read(name, |at| at.duration_ms(range_ms));
        let integer = |name, range| fields.read(name, |at| at.integer(range));
        let [success, never_retry, retry_on] =
            ["success", "neverRetry", "retryOn"].map(|name| fields.read(name, statuses::list));
        if let Some(success) =
            fields.get("success").filter(|_| success == Some(StatusSet::default()))
        {
            success.error("at least one status has to be a success");
        }
        report_shared(
            fields,
            &[("success", &success), ("neverRetry", &never_retry), ("retryOn", &retry_on)],
        );
        Self {
            max_attempts: integer("maxAttempts", 1..=ATTEMPTS_MAX),
            time_to_live_ms: duration_ms("timeToLive", SECOND_MS..=LIFETIME_MAX_MS),
            schedule: fields.section("schedule", schedule::read).flatten(),
            jitter_percent: integer("jitterPercent", 0..=100),
            success,
            never_retry,
            retry_on,
            least_waits: fields.read("leastWaits", least_waits),
            retry_after_max_ms: duration_ms("retryAfterMax", 0..=LIFETIME_MAX_MS),
        }
    }

    /// These settings, with `base` where they say nothing. A status that is listed here is removed
    /// from the lists of `base`.
    pub(super) fn with_fallback(self, base: &Self) -> Self {
        let stated = [&self.success, &self.never_retry, &self.retry_on]
            .map(|list| list.clone().unwrap_or_default());
        let stated = stated.iter().fold(StatusSet::default(), |all, list| all.with(list));
        let rest =
            |list: &Option<StatusSet>| list.clone().map(|list| statuses::difference(list, &stated));
        Self {
            max_attempts: self.max_attempts.or(base.max_attempts),
            time_to_live_ms: self.time_to_live_ms.or(base.time_to_live_ms),
            schedule: self.schedule.or_else(|| base.schedule.clone()),
            jitter_percent: self.jitter_percent.or(base.jitter_percent),
            success: self.success.or_else(|| rest(&base.success)),
            never_retry: self.never_retry.or_else(|| rest(&base.never_retry)),
            retry_on: self.retry_on.or_else(|| rest(&base.retry_on)),
            least_waits: self.least_waits.or_else(|| base.least_waits.clone()),
            retry_after_max_ms: self.retry_after_max_ms.or(base.retry_after_max_ms),
        }
    }

    /// The policy, with the profile's values for missing fields. `neverRetry` and `retryOn`
    /// override it by status.
    pub(super) fn complete(self, profile: RetryPolicy) -> RetryPolicy {
        let mut policy = RetryPolicy {
            max_attempts: self.max_attempts.unwrap_or(profile.max_attempts),
            time_to_live_ms: self.time_to_live_ms.or(profile.time_to_live_ms),
            schedule: self.schedule.unwrap_or(profile.schedule),
            jitter_percent: self.jitter_percent.unwrap_or(profile.jitter_percent),
            success: self.success.unwrap_or(profile.success),
            never_retry: profile.never_retry,
            least_waits: match self.least_waits {
                Some(by_status) => LeastWaits { by_status, ..profile.least_waits },
                None => profile.least_waits,
            },
            retry_after_max_ms: self.retry_after_max_ms.unwrap_or(profile.retry_after_max_ms),
            last_attempt_names_the_limit: profile.last_attempt_names_the_limit,
        };
        let [never_retry, retry_on] =
            [self.never_retry, self.retry_on].map(Option::unwrap_or_default);
        statuses::override_meaning(&mut policy, &never_retry, &retry_on);
        policy
    }
}

/// Reports a status that is in two of the lists, at the later one.
fn report_shared(fields: &Fields<'_>, lists: &[(&'static str, &Option<StatusSet>)]) {
    for (index, (name, later)) in lists.iter().enumerate() {
        for (other, earlier) in &lists[..index] {
            let (Some(later), Some(earlier)) = (later, earlier) else { continue };
            let shared = statuses::shared(later, earlier);
            if let (Some(status), Some(cursor)) = (shared, fields.get(name)) {
                cursor.error(format!("{status} is in {other} too; it can be only one of them"));
            }
        }
    }
}

fn least_waits(cursor: &Cursor<'_>) -> Option<Vec<(u16, u64)>> {
    let mut waits = Vec::new();
    for entry in cursor.entries()? {
        let of = statuses::status(entry.name);
        if of.is_none() {
            let message = Message::new(format!("{} is not a status", quoted(entry.name)));
            entry.key.error(message.help("a status is 100 to 599"));
        }
        if let (Some(status), Some(wait_ms)) = (of, entry.value.duration_ms(1..=LIFETIME_MAX_MS)) {
            waits.push((status, wait_ms));
        }
    }
    Some(waits)
}
