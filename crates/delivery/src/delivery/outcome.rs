//! What happened in an attempt, and what it means.
//!
//! Two questions kept apart. [`Exchange`] is what the sender saw: an answer, or why there was none.
//! [`judge`] says what it means under a policy: delivered, to be tried again, or undeliverable.
//! [`Outcome`] is one vocabulary for the log field, the metric dimension, the field of a dead
//! letter and the filters of the command line.
//!
//! A destination's failure is a value here, never an `Err`.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, UNIX_EPOCH};

use thiserror::Error;

use crate::delivery::reason::Reason;
use crate::event::convert::Inconvertible;
use crate::subscription::header::HeaderError;
use crate::subscription::profile::RetryPolicy;
use crate::time::duration::SECOND_MS;

/// What happened, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// A status in the policy's success set.
    Success,
    /// 404.
    NotFound,
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 400.
    BadRequest,
    /// 413.
    PayloadTooLarge,
    /// No answer within the response timeout, or 408.
    TimedOut,
    /// 429 or 503.
    Busy,
    /// Any other status.
    GenericError,
    /// Refused, reset, or broken off.
    SocketError,
    /// The name did not resolve.
    ResolutionError,
    /// The certificate was refused.
    TlsError,
    /// The address is one we do not send to; no packet left.
    Blocked,
    /// Put off because the destination is on probation; not an attempt.
    Probation,
    /// The attempt was broken off by us, or could not begin: a panic, an unbuildable request.
    Aborted,
}

impl Outcome {
    /// Every outcome, in the order of the documentation.
    pub const ALL: [Self; 15] = [
        Self::Success,
        Self::NotFound,
        Self::Unauthorized,
        Self::Forbidden,
        Self::BadRequest,
        Self::PayloadTooLarge,
        Self::TimedOut,
        Self::Busy,
        Self::GenericError,
        Self::SocketError,
        Self::ResolutionError,
        Self::TlsError,
        Self::Blocked,
        Self::Probation,
        Self::Aborted,
    ];

    /// The outcome of an answer with this status. Which statuses are a success is the policy's to
    /// say.
    #[must_use]
    pub fn of_status(status: u16, policy: &RetryPolicy) -> Self {
        match status {
            status if policy.success.contains(status) => Self::Success,
            400 => Self::BadRequest,
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            408 => Self::TimedOut,
            413 => Self::PayloadTooLarge,
            429 | 503 => Self::Busy,
            _ => Self::GenericError,
        }
    }

    /// The word, as it stands in logs and dead letters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "Success",
            Self::NotFound => "NotFound",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::BadRequest => "BadRequest",
            Self::PayloadTooLarge => "PayloadTooLarge",
            Self::TimedOut => "TimedOut",
            Self::Busy => "Busy",
            Self::GenericError => "GenericError",
            Self::SocketError => "SocketError",
            Self::ResolutionError => "ResolutionError",
            Self::TlsError => "TlsError",
            Self::Blocked => "Blocked",
            Self::Probation => "Probation",
            Self::Aborted => "Aborted",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Outcome {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|outcome| outcome.as_str() == text)
            .ok_or_else(|| format!("\"{text}\" is no outcome"))
    }
}

/// How one HTTP exchange ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportResult {
    /// An answer came, whole as far as we read it.
    Answered {
        /// The HTTP status.
        status: u16,
        /// The `Retry-After` header, as it came.
        retry_after: Option<String>,
        /// The beginning of the body.
        body: Vec<u8>,
    },
    /// No whole answer within the response timeout.
    TimedOut,
    /// Refused, reset, or broken off.
    SocketError,
    /// The name did not resolve.
    ResolutionError,
    /// The certificate was refused.
    TlsError,
    /// The address is forbidden; no packet left.
    Blocked,
    /// No request could be built from what the subscription says; no packet left.
    Unsendable,
    /// Broken off by us, or not begun because something of ours was missing.
    Aborted,
}

/// What an answer says about its body, where somebody may want to read it as an event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Content {
    /// The `Content-Type`.
    pub content_type: Option<String>,
    /// The `ce-*` headers, by name without `ce-`.
    pub attributes: Vec<(String, String)>,
    /// The `webhook-*` headers, by name without `webhook-`: what an answer to a question for
    /// consent allows.
    pub webhook: Vec<(String, String)>,
    /// Whether the body was read to its end.
    pub whole: bool,
}

/// What is shorter could stand in an answer by chance, and is no secret worth the name.
const SECRET_MIN_BYTES: usize = 8;

/// What stands in place of a secret.
const REDACTED: &[u8] = b"[secret]";

/// A body with something else in place of each occurrence of a secret.
fn replaced(body: &[u8], secret: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.windows(secret.len()).position(|window| window == secret) {
        kept.extend_from_slice(&rest[..at]);
        kept.extend_from_slice(REDACTED);
        rest = &rest[at + secret.len()..];
    }
    kept.extend_from_slice(rest);
    kept
}

/// One HTTP exchange of a delivery, as the sender saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// How it ended.
    pub result: TransportResult,
    /// Start of the request.
    pub started_ms: u64,
    /// From the start to the end of the exchange.
    pub duration_ms: u64,
    /// What the answer says about its body; absent where there was none.
    pub content: Option<Content>,
    /// What the ending's name does not say, for people: never a secret, never a body.
    pub detail: Option<String>,
}

impl Exchange {
    /// An exchange without any detail.
    #[must_use]
    pub fn new(result: TransportResult, started_ms: u64, duration_ms: u64) -> Self {
        Self { result, started_ms, duration_ms, content: None, detail: None }
    }

    /// The same with a detail.
    #[must_use]
    pub fn with_detail(mut self, detail: impl fmt::Display) -> Self {
        self.detail = Some(detail.to_string());
        self
    }

    /// The same without these secrets, should the answer hold them: what comes back is kept and
    /// shown.
    #[must_use]
    pub fn redact(mut self, secrets: &[&str]) -> Self {
        if let TransportResult::Answered { body, .. } = &mut self.result {
            let parts = secrets
                .iter()
                .flat_map(|secret| [*secret, secret.rsplit(' ').next().unwrap_or_default()]);
            for part in parts.filter(|part| part.len() >= SECRET_MIN_BYTES) {
                *body = replaced(body, part.as_bytes());
            }
        }
        self
    }

    /// When the outcome was known.
    #[must_use]
    pub fn ended_ms(&self) -> u64 {
        self.started_ms.saturating_add(self.duration_ms)
    }

    /// The status, where there was an answer.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match &self.result {
            TransportResult::Answered { status, .. } => Some(*status),
            TransportResult::TimedOut
            | TransportResult::SocketError
            | TransportResult::ResolutionError
            | TransportResult::TlsError
            | TransportResult::Blocked
            | TransportResult::Unsendable
            | TransportResult::Aborted => None,
        }
    }

    /// What happened, in one word.
    #[must_use]
    pub fn outcome(&self, policy: &RetryPolicy) -> Outcome {
        match &self.result {
            TransportResult::Answered { status, .. } => Outcome::of_status(*status, policy),
            TransportResult::TimedOut => Outcome::TimedOut,
            TransportResult::SocketError => Outcome::SocketError,
            TransportResult::ResolutionError => Outcome::ResolutionError,
            TransportResult::TlsError => Outcome::TlsError,
            TransportResult::Blocked => Outcome::Blocked,
            TransportResult::Unsendable | TransportResult::Aborted => Outcome::Aborted,
        }
    }
}

/// What an exchange means under a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The destination took the event.
    Delivered,
    /// To be tried again, if the limits allow.
    Retry {
        /// Not before this much has passed since the outcome: the status's least wait or
        /// Retry-After, capped.
        least_wait_ms: u64,
    },
    /// Trying again cannot help.
    Undeliverable(Reason),
}

impl Verdict {
    /// The word for log lines.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Retry { .. } => "retry",
            Self::Undeliverable(_) => "undeliverable",
        }
    }
}

/// Why there is no request. Nothing in it is a secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unsendable {
    /// None can be made of this event: the delivery ends as `UndeliverableDueToInvalidRequest`.
    #[error("{0}")]
    Impossible(String),
    /// A secret is missing or wrong, which is ours to mend: the attempt failed, and there will be
    /// others.
    #[error("{0}")]
    Unready(String),
}

impl Unsendable {
    /// The exchange that did not take place.
    #[must_use]
    pub fn exchange(&self, now_ms: u64) -> Exchange {
        let result = match self {
            Self::Impossible(_) => TransportResult::Unsendable,
            Self::Unready(_) => TransportResult::Aborted,
        };
        Exchange::new(result, now_ms, 0).with_detail(self)
    }
}

impl From<HeaderError> for Unsendable {
    fn from(error: HeaderError) -> Self {
        match error {
            HeaderError::Secret(problem) => Self::Unready(problem),
            HeaderError::Value(problem) => Self::Impossible(problem),
        }
    }
}

impl From<Inconvertible> for Unsendable {
    fn from(error: Inconvertible) -> Self {
        Self::Impossible(error.to_string())
    }
}

/// Says what an exchange means. Limits (attempts, time to live) are not looked at here; see
/// [`crate::machine::step`].
#[must_use]
pub fn judge(policy: &RetryPolicy, exchange: &Exchange) -> Verdict {
    match &exchange.result {
        TransportResult::Answered { status, .. } if policy.success.contains(*status) => {
            Verdict::Delivered
        }
        TransportResult::Answered { status, .. } if policy.never_retry.contains(*status) => {
            Verdict::Undeliverable(Reason::of_status(*status))
        }
        TransportResult::Answered { status, retry_after, .. } => {
            let asked = retry_after.as_deref().filter(|_| matches!(status, 429 | 503));
            let asked_ms =
                asked.and_then(|text| retry_after_ms(text, exchange.ended_ms())).unwrap_or(0);
            let least_ms = policy.least_waits.of_status(*status);
            Verdict::Retry { least_wait_ms: least_ms.max(asked_ms.min(policy.retry_after_max_ms)) }
        }
        TransportResult::TimedOut
        | TransportResult::SocketError
        | TransportResult::ResolutionError
        | TransportResult::Aborted => {
            Verdict::Retry { least_wait_ms: policy.least_waits.otherwise_ms }
        }
        TransportResult::TlsError => Verdict::Undeliverable(Reason::UndeliverableDueToTls),
        TransportResult::Blocked => {
            Verdict::Undeliverable(Reason::UndeliverableDueToBlockedAddress)
        }
        TransportResult::Unsendable => {
            Verdict::Undeliverable(Reason::UndeliverableDueToInvalidRequest)
        }
    }
}

/// What `Retry-After` asks for, from now: seconds or an HTTP date (RFC 9110 §10.2.3). A date that
/// has passed asks for nothing; what is neither is `None`.
#[must_use]
pub fn retry_after_ms(text: &str, now_ms: u64) -> Option<u64> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(text.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(SECOND_MS));
    }
    let now = UNIX_EPOCH.checked_add(Duration::from_millis(now_ms))?;
    let wait = httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default();
    Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscription::profile::{Dialect, Profile};

    fn answered(status: u16, retry_after: &str, ended_ms: u64) -> Exchange {
        let retry_after = (!retry_after.is_empty()).then(|| retry_after.to_owned());
        Exchange::new(TransportResult::Answered { status, retry_after, body: vec![] }, ended_ms, 0)
    }

    #[test]
    fn a_secret_that_comes_back_is_not_kept() {
        let body = b"you sent Bearer hush-hush, that is hush-hush; not abc \xff".to_vec();
        let exchange =
            Exchange::new(TransportResult::Answered { status: 400, retry_after: None, body }, 0, 0);
        let TransportResult::Answered { body, .. } =
            exchange.redact(&["Bearer hush-hush", "abc"]).result
        else {
            panic!()
        };
        assert_eq!(body, b"you sent [secret], that is [secret]; not abc \xff");
    }

    #[test]
    fn every_outcome_is_read_back_from_its_word() {
        for outcome in Outcome::ALL {
            assert_eq!(outcome.as_str().parse(), Ok(outcome));
        }
        assert!("success".parse::<Outcome>().is_err());
    }

    #[test]
    fn retry_after_counts_for_429_and_503_in_seconds_or_as_a_date_and_is_capped() {
        let policy = Profile::of(Dialect::Native).retry;
        let at_ms = 1_445_412_420_000; // Wed, 21 Oct 2015 07:27:00 GMT
        for (status, text, wait_ms) in [
            (429, "7", 7_000),
            (503, " 7 ", 7_000),
            (500, "7", 0),
            (503, "Wed, 21 Oct 2015 07:28:00 GMT", 60_000),
            (503, "Wed, 21 Oct 2015 07:26:00 GMT", 0),
            (503, "soon", 0),
            (503, "-1", 0),
            (503, "99999999999999999999999", 3_600_000),
        ] {
            let verdict = judge(&policy, &answered(status, text, at_ms));
            assert_eq!(verdict, Verdict::Retry { least_wait_ms: wait_ms }, "{status} {text}");
        }
    }

    #[test]
    fn event_grid_waits_at_least_what_its_table_says() {
        let policy = Profile::of(Dialect::EventGrid).retry;
        for (status, wait_ms) in
            [(408, 120_000), (503, 30_000), (500, 10_000), (429, 10_000), (302, 10_000)]
        {
            assert_eq!(
                judge(&policy, &answered(status, "", 0)),
                Verdict::Retry { least_wait_ms: wait_ms }
            );
        }
    }

    #[test]
    fn transport_failures_are_retried_but_a_refused_certificate_or_address_is_the_end() {
        let policy = Profile::of(Dialect::Knative).retry;
        let ended = |result| judge(&policy, &Exchange::new(result, 0, 5));
        for result in [
            TransportResult::TimedOut,
            TransportResult::SocketError,
            TransportResult::ResolutionError,
            TransportResult::Aborted,
        ] {
            assert_eq!(ended(result), Verdict::Retry { least_wait_ms: 0 });
        }
        assert_eq!(
            ended(TransportResult::TlsError),
            Verdict::Undeliverable(Reason::UndeliverableDueToTls)
        );
        assert_eq!(
            ended(TransportResult::Blocked),
            Verdict::Undeliverable(Reason::UndeliverableDueToBlockedAddress)
        );
    }
}
