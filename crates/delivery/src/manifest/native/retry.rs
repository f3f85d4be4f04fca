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
use crate::time::duration::SECOND_MS;

/// The fields that give a status a meaning.
const STATUS_LISTS: [&str; 3] = ["success", "neverRetry", "retryOn"];

/// Reads the fields of `retry`, with the profile's values for missing ones. `neverRetry` and
/// `retryOn` override it by status.
pub(super) fn read(fields: &Fields<'_>, profile: RetryPolicy) -> RetryPolicy {
    let duration_ms = |name, range_ms| fields.read(name, |at| at.duration_ms(range_ms));
    let integer = |name, range| fields.read(name, |at| at.integer(range));
    let [success, never_retry, retry_on] = status_lists(fields);
    let mut policy = RetryPolicy {
        max_attempts: integer("maxAttempts", 1..=ATTEMPTS_MAX).unwrap_or(profile.max_attempts),
        time_to_live_ms: duration_ms("timeToLive", SECOND_MS..=LIFETIME_MAX_MS)
            .or(profile.time_to_live_ms),
        schedule: fields.section("schedule", schedule::read).flatten().unwrap_or(profile.schedule),
        jitter_percent: integer("jitterPercent", 0..=100).unwrap_or(profile.jitter_percent),
        success: success.unwrap_or(profile.success),
        least_waits: match fields.read("leastWaits", least_waits) {
            Some(by_status) => LeastWaits { by_status, ..profile.least_waits },
            None => profile.least_waits,
        },
        retry_after_max_ms: duration_ms("retryAfterMax", 0..=LIFETIME_MAX_MS)
            .unwrap_or(profile.retry_after_max_ms),
        ..profile
    };
    let [never_retry, retry_on] = [never_retry, retry_on].map(Option::unwrap_or_default);
    statuses::override_meaning(&mut policy, &never_retry, &retry_on);
    policy
}

/// The three lists, those of this document before those of its base. A status that this document
/// lists is in no list of its base.
fn status_lists(fields: &Fields<'_>) -> [Option<StatusSet>; 3] {
    let stated_at = STATUS_LISTS.map(|name| fields.own(name));
    let mut lists = stated_at.each_ref().map(|at| statuses::list(at.as_ref()?));
    if let (Some(success), Some(list)) = (&stated_at[0], &lists[0])
        && *list == StatusSet::default()
    {
        success.error("at least one status has to be a success");
    }
    report_shared(&stated_at, &lists);
    let stated = lists.iter().flatten().fold(StatusSet::default(), |all, list| all.with(list));
    for (list, name) in lists.iter_mut().zip(STATUS_LISTS).filter(|(list, _)| list.is_none()) {
        let of_base = fields.of_base(name).and_then(|at| statuses::list(&at));
        *list = of_base.map(|of_base| of_base.difference(&stated));
    }
    lists
}

/// Reports a status that is in two of the lists, at the later one.
fn report_shared(stated_at: &[Option<Cursor<'_>>; 3], lists: &[Option<StatusSet>; 3]) {
    for (index, (at, later)) in stated_at.iter().zip(lists).enumerate() {
        for (other, earlier) in STATUS_LISTS.iter().zip(lists).take(index) {
            let (Some(at), Some(later), Some(earlier)) = (at, later, earlier) else { continue };
            if let Some(status) = statuses::shared(later, earlier) {
                at.error(format!("{status} is in {other} too; it can be only one of them"));
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
