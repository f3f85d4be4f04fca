//! The refusal of a request, and the response that tells why.
//!
//! Separate because every question about a request may end in one.

use serde_json::json;

use crate::ports::PublishingError;

/// The `WWW-Authenticate` header of every 401.
const CHALLENGE: &str = "Bearer, SharedAccessKey";

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
