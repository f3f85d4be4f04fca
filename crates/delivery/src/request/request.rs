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

/// The part of a response that determines the result of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// The status. The beginning of the body is kept for people.
    Status,
    /// The whole body, which is a token or a consent. A response with an incomplete body is a
    /// failure.
    Body,
    /// The body if the headers declare a reply, otherwise the status.
    Reply,
    /// The whole body and all headers, because an AWS service may report failures there.
    Service(AwsService),
}

/// One HTTP request to a destination. Its headers may contain secrets, so its `Debug` output
/// contains only their names.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// The HTTP method, such as POST.
    pub method: Method,
    /// The complete URL, including the query.
    pub url: Url,
    /// Names and values of the headers, content type first.
    pub headers: Vec<(String, String)>,
    /// The body, which is empty for a GET.
    pub body: Bytes,
    /// The timeout of the whole exchange, in milliseconds.
    pub timeout_ms: u64,
    /// The part of the response that determines the result.
    pub needs: Needs,
    /// Maximum number of bytes of the response body that are read.
    pub answer_max_bytes: usize,
    /// The requirements that the TLS connection must satisfy.
    pub tls: RequestTls,
    /// The scope and credentials with which the sender signs the request; `None` for a request
    /// without an AWS signature.
    pub signer: Option<Signer>,
    /// Secrets that are hidden in the response, in addition to the credentials in the headers and
    /// the URL. They are also hidden when the body is displayed.
    pub hidden: Vec<Secret>,
    /// The ids of the deliveries in this request, for logs; empty for a handshake. They are not
    /// sent.
    pub deliveries: Vec<Uuid>,
}

impl Request {
    /// Returns the body with its secrets masked; `None` if the body contains no secret.
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
            // Path and query may contain credentials.
            .field("origin", &self.url.origin().ascii_serialization())
            .field("headers", &names)
            .field("body_bytes", &self.body.len())
            .field("timeout_ms", &self.timeout_ms)
            .field("deliveries", &self.deliveries)
            .finish_non_exhaustive()
    }
}

/// Maximum number of headers in a request. Servers accept far fewer. The limit bounds the work that
/// a publisher can cause.
pub const REQUEST_HEADERS_MAX: usize = 200;
/// Maximum total size of the headers in a request, names and values; see [`REQUEST_HEADERS_MAX`].
pub const REQUEST_HEADERS_MAX_BYTES: usize = 64 * 1_024;

/// Maximum number of bytes that are read of a response body, unless the response may be a reply.
pub const ANSWER_MAX_BYTES: usize = 64 * 1_024;

/// Maximum size of a reply in bytes.
pub const REPLY_MAX_BYTES: usize = 512 * 1_024;
