//! [`Exchange`]: one attempt as the sender saw it, with a response or the reason why there is none.
//!
//! The verdict decides what an exchange means. `machine::answer` decides which credentials are
//! hidden in the stored part of a response.

use std::fmt;

use thiserror::Error;

use super::kind::Outcome;
use crate::event::binary::ContentMode;
use crate::subscription::credentials::{Credentials, Ending, HIDDEN, is_credential};
use crate::subscription::header::HeaderError;
use crate::subscription::profile::RetryPolicy;

/// The result of one HTTP exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportResult {
    /// The destination responded. The head of the response determines the outcome.
    Answered {
        /// The HTTP status of the response.
        status: u16,
        /// The value of the `Retry-After` header, as received.
        retry_after: Option<String>,
        /// The beginning of the response body.
        body: Vec<u8>,
    },
    /// No response arrived within the response timeout, or the required body was incomplete by
    /// then.
    TimedOut,
    /// The connection was refused, reset or closed early, or failed in another way.
    SocketError,
    /// The host name of the destination did not resolve.
    ResolutionError,
    /// The TLS certificate of the destination was refused.
    TlsError,
    /// Requests to the address are not allowed, so no request was sent.
    Blocked,
    /// No request could be built from the event and its subscription.
    Unsendable,
    /// The function aborted the attempt, or did not start it because something was missing, such as
    /// a secret.
    Aborted,
}

/// The headers of a response that describe its body. They are needed for replies and handshakes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Content {
    /// The `Content-Type` header, as received.
    pub content_type: Option<String>,
    /// The `ce-*` headers: names without `ce-`, and values.
    pub attributes: Vec<(String, String)>,
    /// The `webhook-*` headers: names without `webhook-`, and values. In a handshake they state
    /// what the destination allows.
    pub webhook: Vec<(String, String)>,
    /// All headers of the response. Empty for a 2xx response, unless the caller requested them.
    pub headers: Vec<(String, String)>,
    /// True if the complete body was read.
    pub whole: bool,
}

/// One HTTP exchange of an attempt, as the sender saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The response, or the reason why there is none.
    pub result: TransportResult,
    /// Start of the request, in milliseconds since 1970.
    pub started_ms: u64,
    /// Duration in milliseconds from the start to the end of the exchange.
    pub duration_ms: u64,
    /// The headers that describe the response body; `None` without a response.
    pub content: Option<Content>,
    /// The status of a response that counts as a failure because its required body could not be
    /// read completely. This status does not determine the outcome.
    pub unread_status: Option<u16>,
    /// Human-readable details that `result` does not include. They never contain secrets or bodies.
    pub detail: Option<String>,
}

impl Exchange {
    /// Returns an exchange with this result and without details.
    #[must_use]
    pub fn new(result: TransportResult, started_ms: u64, duration_ms: u64) -> Self {
        Self { result, started_ms, duration_ms, content: None, unread_status: None, detail: None }
    }

    /// Sets the detail to this text.
    #[must_use]
    pub fn with_detail(mut self, detail: impl fmt::Display) -> Self {
        self.detail = Some(detail.to_string());
        self
    }

    /// Hides these credentials in everything that may be stored: the detail, the headers, and the
    /// first `body_max_bytes` of the body.
    #[must_use]
    pub fn redact(mut self, credentials: &Credentials, body_max_bytes: usize) -> Self {
        // The detail of an unsendable request contains no secret, and short credentials would mask
        // words in it.
        if self.result != TransportResult::Unsendable {
            self.detail = self.detail.map(|detail| credentials.hide_in_text(detail));
        }
        if let TransportResult::Answered { body, .. } = &mut self.result {
            let is_whole = self.content.as_ref().is_none_or(|content| content.whole);
            let is_cut = !is_whole || body.len() > body_max_bytes;
            body.truncate(body_max_bytes);
            let ending = if is_cut { Ending::Cut } else { Ending::Whole };
            if let Some(hidden) = credentials.hide(body, ending) {
                *body = hidden;
            }
        }
        if let Some(content) = &mut self.content {
            // The content type of an event is not stored, and must stay intact because it
            // identifies an event. The content type of other data may be stored, so credentials in
            // it are hidden.
            if ContentMode::from_content_type(content.content_type.as_deref()) == ContentMode::Data
            {
                content.content_type =
                    content.content_type.take().map(|of_data| credentials.hide_in_text(of_data));
            }
            for (_, value) in &mut content.attributes {
                *value = credentials.hide_in_text(std::mem::take(value));
            }
            for (name, value) in &mut content.headers {
                *value = match is_credential(name) {
                    true => HIDDEN.to_owned(),
                    false => credentials.hide_in_text(std::mem::take(value)),
                };
            }
        }
        self
    }

    /// Returns the time at which the result was known, in milliseconds since 1970.
    #[must_use]
    pub fn ended_ms(&self) -> u64 {
        self.started_ms.saturating_add(self.duration_ms)
    }

    /// Returns the status and the beginning of the body; `None` without a response.
    #[must_use]
    pub fn answer(&self) -> Option<(u16, &[u8])> {
        let TransportResult::Answered { status, body, .. } = &self.result else { return None };
        Some((*status, body))
    }

    /// Returns the HTTP status, even one that does not determine the outcome; `None` without a
    /// response.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.answer().map(|(status, _)| status).or(self.unread_status)
    }

    /// Classifies the attempt under this policy.
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

/// The reason why no request was sent. The texts never contain a secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unsendable {
    /// No valid request can be built from this event. The delivery ends as
    /// `UndeliverableDueToInvalidRequest`.
    #[error("{0}")]
    Impossible(String),
    /// A secret is missing or invalid, which an operator can repair. The attempt counts as failed
    /// and is retried.
    #[error("{0}")]
    Unready(String),
    /// The deployment does not allow the destination. The delivery ends as
    /// `UndeliverableDueToBlockedAddress`.
    #[error("{0}")]
    Blocked(String),
}

impl Unsendable {
    /// Returns the exchange of an attempt that failed for this reason without a request.
    #[must_use]
    pub fn exchange(&self, now_ms: u64) -> Exchange {
        let result = match self {
            Self::Impossible(_) => TransportResult::Unsendable,
            Self::Unready(_) => TransportResult::Aborted,
            Self::Blocked(_) => TransportResult::Blocked,
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

    fn redacted(body: &[u8], body_max_bytes: usize) -> Exchange {
        redacted_as("text/plain; echo=\"hush-hush\"", body, body_max_bytes)
    }

    fn redacted_as(content_type: &str, body: &[u8], body_max_bytes: usize) -> Exchange {
        let mut credentials = Credentials::default();
        credentials.add_header("Bearer hush-hush");
        let result =
            TransportResult::Answered { status: 400, retry_after: None, body: body.to_vec() };
        let content = Content {
            content_type: Some(content_type.to_owned()),
            attributes: vec![("echo".to_owned(), "Bearer hush-hush".to_owned())],
            headers: [("x-echo", "for hush-hush"), ("set-cookie", "id=its-own"), ("server", "a")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            whole: true,
            ..Content::default()
        };
        let exchange = Exchange { content: Some(content), ..Exchange::new(result, 0, 0) };
        exchange.with_detail("hush-hush was refused").redact(&credentials, body_max_bytes)
    }

    fn body(exchange: &Exchange) -> &[u8] {
        exchange.answer().expect("it was answered").1
    }

    #[test]
    fn credentials_are_hidden_in_body_headers_and_detail() {
        let exchange = redacted(b"you sent Bearer hush-hush, that is HUSH-hush \xff", 100);
        assert_eq!(body(&exchange), b"you sent [secret], that is [secret] \xff");
        assert_eq!(exchange.detail.as_deref(), Some("[secret] was refused"));
        let content = exchange.content.expect("it was answered");
        assert_eq!(content.content_type.as_deref(), Some("text/plain; echo=\"[secret]\""));
        assert_eq!(content.attributes, [("echo".to_owned(), "[secret]".to_owned())]);
        let values: Vec<&str> = content.headers.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["for [secret]", "[secret]", "a"]);
    }

    #[test]
    fn the_type_of_an_event_still_says_what_it_is() {
        for (content_type, shown) in [
            ("application/cloudevents+json; x=hush-hush", None),
            ("application/cloudevents+hush-hush", None),
            ("hush-hush/plain", Some("[secret]/plain")),
        ] {
            let content = redacted_as(content_type, b"", 100).content.expect("it was answered");
            assert_eq!(content.content_type.as_deref(), Some(shown.unwrap_or(content_type)));
        }
    }

    #[test]
    fn a_body_that_is_cut_within_a_credential_does_not_end_with_its_beginning() {
        assert_eq!(body(&redacted(b"you sent hush-hush", 13)), b"you sent [secret]");
        assert_eq!(body(&redacted(b"you sent hush", 13)), b"you sent hush", "it is whole");
    }
}
