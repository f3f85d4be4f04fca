//! [`Request`]: an HTTP request to a destination as data, and its limits.
//!
//! This module is separate because deliveries, handshakes and token requests all use this type.

use std::fmt;

use bytes::Bytes;
use url::Url;
use uuid::Uuid;

use super::signer::Signer;
use super::tls::RequestTls;
use crate::subscription::Method;
use crate::subscription::aws::AwsService;
use crate::subscription::credentials::{Credentials, Ending};
use crate::subscription::secret::Secret;

/// The part of a response that determines the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// The status. The beginning of the body is kept for people.
    Status,
    /// The whole body, for a token or a consent. A response without the whole body is a failure.
    Body,
    /// The body if the head declares a reply, otherwise the status.
    Reply,
    /// The whole body and all headers, in which an AWS service reports failures.
    Service(AwsService),
}

/// One HTTP request to a destination. Its headers may contain secrets, so its `Debug` form shows
/// only their names.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// The HTTP method.
    pub method: Method,
    /// The address, with its query.
    pub url: Url,
    /// The headers, content type first.
    pub headers: Vec<(String, String)>,
    /// The body, which is empty for a GET.
    pub body: Bytes,
    /// The timeout of the whole exchange.
    pub timeout_ms: u64,
    /// The part of the response that determines the result.
    pub needs: Needs,
    /// Maximum number of bytes of the response body that are read.
    pub answer_max_bytes: usize,
    /// The TLS requirements of the connection.
    pub tls: RequestTls,
    /// The scope and credentials of an AWS signature; `None` without one.
    pub signer: Option<Signer>,
    /// Secrets to hide in the response, in addition to the credentials of the request. They are
    /// also hidden when the body is shown.
    pub hidden: Vec<Secret>,
    /// The ids of the deliveries in this request; empty for a handshake. They are not sent.
    pub deliveries: Vec<Uuid>,
}

impl Request {
    /// Returns the body without the secrets of templates; `None` if it contains none.
    #[must_use]
    pub fn body_without_secrets(&self) -> Option<Vec<u8>> {
        let mut secrets = Credentials::default();
        self.hidden.iter().for_each(|secret| secrets.add_header(secret.expose()));
        secrets.hide(&self.body, Ending::Whole)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Request")
            .field("method", &self.method)
            // Path and query may be credentials.
            .field("origin", &self.url.origin().ascii_serialization())
            .field("headers", &names)
            .field("body_bytes", &self.body.len())
            .field("timeout_ms", &self.timeout_ms)
            .field("deliveries", &self.deliveries)
            .finish_non_exhaustive()
    }
}

/// Maximum number of headers of a request. Servers accept far fewer, and the limit bounds the work
/// that a publisher can cause.
pub const REQUEST_HEADERS_MAX: usize = 200;
/// Maximum size of all headers; see [`REQUEST_HEADERS_MAX`].
pub const REQUEST_HEADERS_MAX_BYTES: usize = 64 * 1_024;

/// Maximum number of bytes of a response that are read, unless it may be a reply.
pub const ANSWER_MAX_BYTES: usize = 64 * 1_024;

/// Maximum size of a reply.
pub const REPLY_MAX_BYTES: usize = 512 * 1_024;
