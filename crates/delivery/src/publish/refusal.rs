//! The refusal of a request, and its response.
//!
//! Separate because every check of a request may end in a refusal.

use serde_json::json;

use crate::ports::PublishingError;

/// The `WWW-Authenticate` header of every 401.
const CHALLENGE: &str = "Bearer, SharedAccessKey";

/// The reason why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status of the response.
    pub status: u16,
    /// The problem, for the author of the request.
    pub text: String,
    /// The allowed methods, if the method is the problem.
    pub allow: Option<&'static str>,
}

impl Refusal {
    /// Creates a refusal with this status.
    pub fn new(status: u16, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), allow: None }
    }

    /// Creates the refusal of a request that could not be enqueued: 422 if no repetition helps, 503
    /// if the client should repeat the request.
    #[must_use]
    pub fn unpublished(error: &PublishingError) -> Self {
        let status = match error {
            PublishingError::Refused(_) => 422,
            PublishingError::Unavailable(_) => 503,
        };
        Self::new(status, error.to_string())
    }

    /// Returns the header that the response needs besides its content type.
    #[must_use]
    pub fn header(&self) -> Option<(&'static str, &'static str)> {
        match (self.status, self.allow) {
            (401, _) => Some(("www-authenticate", CHALLENGE)),
            (_, Some(methods)) => Some(("allow", methods)),
            (_, None) => None,
        }
    }

    /// Returns the body of the response: `{"error"}`.
    #[must_use]
    pub fn body(&self) -> String {
        json!({ "error": self.text }).to_string()
    }
}
