//! Publishing over HTTP, as a function over plain values: a request becomes a message for the events
//! queue, or a refusal.
//!
//! Separate because two servers publish over HTTP, the ingress of `lastmile dev` and the ingress function,
//! and clients should not notice which of them answers. Each of them asks, in this order: does the caller only want to
//! know whether it may publish ([`handshake`], [`validation_response`]), may it ([`check_key`]), where to ([`route`]), and
//! what ([`message`]). Once the queue has the message, [`Route::answer`] is what the client expects.
//!
//! Promises: nothing is published of a request that is refused, and one request is one message: it is
//! published as a whole or not at all.
//!
//! Does not know whether a topic exists, and sends nothing.

mod body;
mod handshake;
mod key;
mod route;

use serde_json::json;

use self::key::CHALLENGE;
use crate::ports::PublishingError;

pub use self::body::{Published, message, too_large, topic_bytes};
pub use self::handshake::{AllowedOrigins, handshake, validation_response};
pub use self::key::{KnownKeys, check_key};
pub use self::route::{DefaultTopic, Route, route};

/// A request, as a server received it.
#[derive(Debug, Clone, Copy)]
pub struct HttpRequest<'a> {
    /// The method, in upper case.
    pub method: &'a str,
    /// The path, percent-encoded as it came, without the query.
    pub path: &'a str,
    /// The query without its question mark; empty if there is none.
    pub query: &'a str,
    /// Names in lower case, and values.
    pub headers: &'a [(String, Vec<u8>)],
    /// The body.
    pub body: &'a [u8],
}

impl<'a> HttpRequest<'a> {
    /// The first value of a header, if it is visible ASCII.
    fn header(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.headers.iter().find(|(of, _)| of == name)?;
        let is_visible = value.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
        std::str::from_utf8(value).ok().filter(|_| is_visible)
    }
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// What is wrong, for whoever made the request.
    pub text: String,
    /// The methods that are allowed, where that is what is wrong.
    pub allow: Option<&'static str>,
}

impl Refusal {
    /// A refusal with this status.
    pub fn new(status: u16, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), allow: None }
    }

    /// The refusal of a request whose message is not in the queue: 422 if it never will be, 503 if the client
    /// should repeat the request.
    #[must_use]
    pub fn unpublished(error: &PublishingError) -> Self {
        let status = match error {
            PublishingError::Refused(_) => 422,
            PublishingError::Unavailable(_) => 503,
        };
        Self::new(status, error.to_string())
    }

    /// The header that the response needs besides its content type.
    #[must_use]
    pub fn header(&self) -> Option<(&'static str, &'static str)> {
        match (self.status, self.allow) {
            (401, _) => Some(("www-authenticate", CHALLENGE)),
            (_, Some(methods)) => Some(("allow", methods)),
            (_, None) => None,
        }
    }

    /// The body of the response: `{"error"}`.
    #[must_use]
    pub fn body(&self) -> String {
        json!({ "error": self.text }).to_string()
    }
}
