//! [`Refusal`]: the reason why a request is refused, and the response.
//!
//! This module is separate because every check of a request may refuse it.

use serde_json::json;

use crate::ports::PublishingError;

/// The `WWW-Authenticate` header of every response with status 401.
const CHALLENGE: &str = "Bearer, SharedAccessKey";

/// The reason why a request is refused, as an HTTP error response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status of the response.
    pub status: u16,
    /// The problem, for the developer of the client.
    pub text: String,
    /// The allowed methods, for the header `Allow`; `None` unless the status is 405.
    pub allow: Option<&'static str>,
}

impl Refusal {
    /// Creates a refusal with this status and problem.
    pub fn new(status: u16, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), allow: None }
    }

    /// Creates the refusal of a request whose events could not be enqueued. The status is 422 if a
    /// repetition would fail too, and 503 if the client should repeat the request.
    #[must_use]
    pub fn unpublished(error: &PublishingError) -> Self {
        let status = match error {
            PublishingError::Refused(_) => 422,
            PublishingError::Unavailable(_) => 503,
        };
        Self::new(status, error.to_string())
    }

    /// Returns the header that the response needs in addition to its content type, if any.
    #[must_use]
    pub fn header(&self) -> Option<(&'static str, &'static str)> {
        match (self.status, self.allow) {
            (401, _) => Some(("www-authenticate", CHALLENGE)),
            (_, Some(methods)) => Some(("allow", methods)),
            (_, None) => None,
        }
    }

    /// Returns the body of the response as JSON: `{"error"}`.
    #[must_use]
    pub fn body(&self) -> String {
        json!({ "error": self.text }).to_string()
    }
}
