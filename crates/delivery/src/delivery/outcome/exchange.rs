//! [`Exchange`]: what the sender saw in one attempt, an answer or why there was none.
//!
//! Promises: a secret of the request is removed from an answer before it is stored or shown. Does
//! not judge: what an exchange means is the verdict.

use std::fmt;

use thiserror::Error;

use super::kind::Outcome;
use crate::subscription::header::HeaderError;
use crate::subscription::profile::RetryPolicy;

/// How one HTTP exchange ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportResult {
    /// An answer came, complete as far as it was read.
    Answered {
        /// The HTTP status.
        status: u16,
        /// The `Retry-After` header, as received.
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
    /// Requests to the address are not allowed; none was sent.
    Blocked,
    /// No request could be built from the event and its subscription; none was sent.
    Unsendable,
    /// Aborted by us, or not begun because something of ours was missing.
    Aborted,
}

/// The headers of an answer that describe its body, for reading a reply or a handshake.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Content {
    /// The `Content-Type`.
    pub content_type: Option<String>,
    /// The `ce-*` headers, by name without `ce-`.
    pub attributes: Vec<(String, String)>,
    /// The `webhook-*` headers, by name without `webhook-`: what the answer to a handshake allows.
    pub webhook: Vec<(String, String)>,
    /// Whether the whole body was read.
    pub whole: bool,
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
    /// What the answer says about its body; `None` without an answer.
    pub content: Option<Content>,
    /// What the result's name does not say, for people: never a secret, never a body.
    pub detail: Option<String>,
}

impl Exchange {
    /// An exchange without any detail.
    #[must_use]
    pub fn new(result: TransportResult, started_ms: u64, duration_ms: u64) -> Self {
        Self { result, started_ms, duration_ms, content: None, detail: None }
    }

    /// Adds a detail.
    #[must_use]
    pub fn with_detail(mut self, detail: impl fmt::Display) -> Self {
        self.detail = Some(detail.to_string());
        self
    }

    /// Removes these secrets from the answer's body, since it is stored and shown.
    #[must_use]
    pub fn redact(mut self, secrets: &[&str]) -> Self {
        if let TransportResult::Answered { body, .. } = &mut self.result {
            // An endpoint may echo a token without its scheme: `Bearer x` is also searched as `x`.
            let parts = secrets
                .iter()
                .flat_map(|secret| [*secret, secret.rsplit(' ').next().unwrap_or_default()]);
            for part in parts.filter(|part| part.len() >= SECRET_MIN_BYTES) {
                *body = redacted(body, part.as_bytes());
            }
        }
        self
    }

    /// When the outcome was known.
    #[must_use]
    pub fn ended_ms(&self) -> u64 {
        self.started_ms.saturating_add(self.duration_ms)
    }

    /// The status and the beginning of the body, where there was an answer.
    #[must_use]
    pub fn answer(&self) -> Option<(u16, &[u8])> {
        let TransportResult::Answered { status, body, .. } = &self.result else { return None };
        Some((*status, body))
    }

    /// The status, where there was an answer.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.answer().map(|(status, _)| status)
    }

    /// What happened in an attempt, in one word.
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

/// A shorter secret could occur in an answer by chance.
const SECRET_MIN_BYTES: usize = 8;

/// The replacement of a secret.
const REDACTED: &[u8] = b"[secret]";

/// The body with each occurrence of a secret replaced.
fn redacted(body: &[u8], secret: &[u8]) -> Vec<u8> {
    let mut redacted = Vec::with_capacity(body.len());
    // On bytes, since an answer need not be UTF-8.
    let mut rest = body;
    while let Some(at) = rest.windows(secret.len()).position(|window| window == secret) {
        redacted.extend_from_slice(&rest[..at]);
        redacted.extend_from_slice(REDACTED);
        rest = &rest[at + secret.len()..];
    }
    redacted.extend_from_slice(rest);
    redacted
}

/// Why there is no request. Nothing in it is a secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unsendable {
    /// No request can be made of this event: the delivery ends as
    /// `UndeliverableDueToInvalidRequest`.
    #[error("{0}")]
    Impossible(String),
    /// A secret is missing or invalid, which an operator can repair: the attempt failed and is
    /// retried.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_a_response_is_redacted() {
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
}
