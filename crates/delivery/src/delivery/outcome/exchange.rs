//! [`Exchange`]: what the sender saw in one attempt, an answer or why there was none.
//!
//! Does not judge: what an exchange means is the verdict. Which credentials are hidden in what is kept
//! of an answer is decided in `machine::answer`.

use std::fmt;

use thiserror::Error;

use super::kind::Outcome;
use crate::event::binary::ContentMode;
use crate::subscription::credentials::{Credentials, Ending, HIDDEN, is_credential};
use crate::subscription::header::HeaderError;
use crate::subscription::profile::RetryPolicy;

/// How one HTTP exchange ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportResult {
    /// An answer came, whose head decides.
    Answered {
        /// The HTTP status.
        status: u16,
        /// The `Retry-After` header, as received.
        retry_after: Option<String>,
        /// The beginning of the body.
        body: Vec<u8>,
    },
    /// No answer within the response timeout, or not its body where that is needed.
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
    /// Every header of an answer that is no 2xx; of others only if the sender was asked for them.
    pub headers: Vec<(String, String)>,
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
    /// The status of an answer that failed because its body was needed and could not be read whole. It decides nothing.
    pub unread_status: Option<u16>,
    /// What the result's name does not say, for people: never a secret, never a body.
    pub detail: Option<String>,
}

impl Exchange {
    /// An exchange without any detail.
    #[must_use]
    pub fn new(result: TransportResult, started_ms: u64, duration_ms: u64) -> Self {
        Self { result, started_ms, duration_ms, content: None, unread_status: None, detail: None }
    }

    /// Adds a detail.
    #[must_use]
    pub fn with_detail(mut self, detail: impl fmt::Display) -> Self {
        self.detail = Some(detail.to_string());
        self
    }

    /// Hides these credentials in what may be kept of it: the detail, the body up to this length, and
    /// the headers about it.
    #[must_use]
    pub fn redact(mut self, credentials: &Credentials, body_max_bytes: usize) -> Self {
        // The reason why a request could not be made holds no secret. Short credentials would mask words of it.
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
            // The type of an event says that it is one, and is not kept; that of data may be.
            if ContentMode::of(content.content_type.as_deref()) == ContentMode::Data {
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

    /// The status, if there was one, even if it decides nothing.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.answer().map(|(status, _)| status).or(self.unread_status)
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
    /// The deployment does not allow the destination: the delivery ends as
    /// `UndeliverableDueToBlockedAddress`.
    #[error("{0}")]
    Blocked(String),
}

impl Unsendable {
    /// The exchange that did not take place.
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
