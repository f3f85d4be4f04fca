//! [`judge`]: the meaning of an exchange under a policy.
//!
//! This module is separate because the same response means different things in different dialects.
//! All differences are values of the policy. Limits of attempts and time are checked in
//! `machine::step`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::exchange::{Exchange, TransportResult};
use crate::delivery::reason::Reason;
use crate::subscription::profile::RetryPolicy;
use crate::time::duration::SECOND_MS;

/// The meaning of an exchange under a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The destination accepted the event.
    Delivered,
    /// The delivery is retried, unless it has reached a limit of attempts or time.
    Retry {
        /// Minimum time between the outcome and the next attempt. It is the policy's minimum wait
        /// for the status or the capped `Retry-After`, whichever is longer.
        least_wait_ms: u64,
    },
    /// The delivery fails for this reason and is never retried.
    Undeliverable(Reason),
}

impl Verdict {
    /// Returns the name of the verdict for log lines.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Retry { .. } => "retry",
            Self::Undeliverable(_) => "undeliverable",
        }
    }
}

/// Returns the verdict of an exchange under a policy. Limits of attempts and time are checked in
/// `machine::step`.
#[must_use]
pub fn judge(policy: &RetryPolicy, exchange: &Exchange) -> Verdict {
    match &exchange.result {
        TransportResult::Answered { status, .. } if policy.success.contains(*status) => {
            Verdict::Delivered
        }
        TransportResult::Answered { status, .. } if policy.never_retry.contains(*status) => {
            Verdict::Undeliverable(Reason::of_status(*status))
        }
        TransportResult::Answered { status, .. } => {
            // Only `Retry-After` is capped, because the endpoint chooses it. The policy chooses the
            // minimum wait.
            let least_ms = policy.least_wait_ms(*status);
            Verdict::Retry { least_wait_ms: least_ms.max(requested_wait_ms(policy, exchange)) }
        }
        TransportResult::TimedOut
        | TransportResult::SocketError
        | TransportResult::ResolutionError
        | TransportResult::TlsError
        | TransportResult::Aborted => {
            Verdict::Retry { least_wait_ms: policy.otherwise_least_wait_ms }
        }
        TransportResult::Blocked => {
            Verdict::Undeliverable(Reason::UndeliverableDueToBlockedAddress)
        }
        TransportResult::Unsendable => {
            Verdict::Undeliverable(Reason::UndeliverableDueToInvalidRequest)
        }
    }
}

/// Returns the wait that the `Retry-After` of a response with status 429 or 503 requests, capped by
/// the policy. Returns zero for every other response, and if the status counts as success.
#[must_use]
pub fn requested_wait_ms(policy: &RetryPolicy, exchange: &Exchange) -> u64 {
    let TransportResult::Answered { status, retry_after, .. } = &exchange.result else { return 0 };
    // RFC 9110 and RFC 6585 define `Retry-After` for these two failure statuses.
    let is_busy = matches!(status, 429 | 503) && !policy.success.contains(*status);
    let asked = retry_after.as_deref().filter(|_| is_busy);
    let asked_ms = asked.and_then(|text| retry_after_ms(text, exchange.ended_ms()));
    asked_ms.unwrap_or(0).min(policy.retry_after_max_ms)
}

/// Parses `Retry-After`: seconds or an HTTP date (RFC 9110 §10.2.3). Returns the wait in
/// milliseconds, or `None` for other text. The wait is zero for a date in the past. A date may end
/// with `UTC` in place of `GMT`, in any case, and may have a leap second.
#[must_use]
pub fn retry_after_ms(text: &str, now_ms: u64) -> Option<u64> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // The text has only digits, so the only possible error is overflow.
        return Some(text.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(SECOND_MS));
    }
    let now = UNIX_EPOCH.checked_add(Duration::from_millis(now_ms))?;
    let wait = http_date(text)?.duration_since(now).unwrap_or_default();
    Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
}

/// Parses an HTTP date strictly, except for the name of the zone and leap seconds.
fn http_date(text: &str) -> Option<SystemTime> {
    let zone = text.len().checked_sub("GMT".len()).filter(|at| text.is_char_boundary(*at));
    let (rest, zone) = text.split_at(zone.unwrap_or(text.len()));
    let is_utc = ["GMT", "UTC"].iter().any(|name| zone.eq_ignore_ascii_case(name));
    let text = if is_utc { format!("{rest}GMT") } else { text.to_owned() };
    let (text, leap_s) = match text.contains(":60 ") {
        true => (text.replacen(":60 ", ":59 ", 1), 1),
        false => (text, 0),
    };
    httpdate::parse_http_date(&text).ok()?.checked_add(Duration::from_secs(leap_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscription::profile::{Dialect, Profile, StatusSet};

    fn answered(status: u16, retry_after: &str, ended_ms: u64) -> Exchange {
        let retry_after = (!retry_after.is_empty()).then(|| retry_after.to_owned());
        Exchange::new(TransportResult::Answered { status, retry_after, body: vec![] }, ended_ms, 0)
    }

    #[test]
    fn retry_after_counts_for_429_and_503_in_seconds_or_as_a_date_and_is_capped() {
        let policy = Profile::for_dialect(Dialect::Native).retry;
        let at_ms = 1_445_412_420_000; // Wed, 21 Oct 2015 07:27:00 GMT
        for (status, text, wait_ms) in [
            (429, "7", 7_000),
            (503, " 7 ", 7_000),
            (500, "7", 0),
            (503, "Wed, 21 Oct 2015 07:28:00 GMT", 60_000),
            (503, "Wed, 21 Oct 2015 07:26:00 GMT", 0),
            (503, "Wed, 21 Oct 2015 07:28:00 UTC", 60_000),
            (503, "Wed, 21 Oct 2015 07:28:00 gmt", 60_000),
            (503, "Wednesday, 21-Oct-15 07:28:00 utc", 60_000),
            (503, "Wed, 21 Oct 2015 07:28:60 GMT", 120_000),
            (503, "Wed Oct 21 07:28:60 2015", 120_000),
            (503, "Wed, 21 Oct 2015 07:28:61 GMT", 0),
            (503, "Wed, 21 Oct 2015 07:28:00 CEST", 0),
            (503, "ä", 0),
            (503, "soon", 0),
            (503, "-1", 0),
            (503, "99999999999999999999999", 3_600_000),
        ] {
            let verdict = judge(&policy, &answered(status, text, at_ms));
            assert_eq!(verdict, Verdict::Retry { least_wait_ms: wait_ms }, "{status} {text}");
        }
    }

    #[test]
    fn the_longer_of_the_minimum_wait_and_retry_after_counts() {
        let policy = Profile::for_dialect(Dialect::EventGrid).retry;
        let least_ms = policy.least_wait_ms(503);
        assert_eq!(least_ms, 30_000);
        for (retry_after, least_wait_ms) in [("", least_ms), ("5", least_ms), ("31", 31_000)] {
            let verdict = judge(&policy, &answered(503, retry_after, 0));
            assert_eq!(verdict, Verdict::Retry { least_wait_ms }, "{retry_after}");
        }
    }

    #[test]
    fn retry_after_of_a_success_asks_for_no_wait() {
        let success = StatusSet::new([429..=429]);
        let policy = RetryPolicy { success, ..Profile::for_dialect(Dialect::Native).retry };
        assert_eq!(requested_wait_ms(&policy, &answered(429, "7", 0)), 0);
        assert_eq!(requested_wait_ms(&policy, &answered(503, "7", 0)), 7_000);
    }
}
