//! A request to a destination, as data, and its limits.
//!
//! Separate because deliveries, handshakes and tokens are all requested by one.

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

/// The part of an answer that decides its exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// The status. What can be read of the body is for people.
    Status,
    /// The whole body too: a token, a consent. An answer without it is a failure.
    Body,
    /// The body if the head declares a reply, else the status.
    Reply,
    /// The whole body and all headers: how a service of AWS reports failures.
    Service(AwsService),
}

/// One HTTP request to a destination. Its headers may hold secrets, so its `Debug` shows only their
/// names.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// Where it goes.
    pub url: Url,
    /// Its headers, content type first.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Bytes,
    /// The timeout of the whole exchange.
    pub timeout_ms: u64,
    /// The part of the answer that decides.
    pub needs: Needs,
    /// The most bytes of the answer's body that are read.
    pub answer_max_bytes: usize,
    /// What its connection needs.
    pub tls: RequestTls,
    /// What its sender signs it with.
    pub signer: Option<Signer>,
    /// Secrets that no answer must show, beside what this sends. Its body is shown without them.
    pub hidden: Vec<Secret>,
    /// The ids of the deliveries that it carries, which are not sent; none for a handshake.
    pub deliveries: Vec<Uuid>,
}

impl Request {
    /// The body without secrets of templates; `None` if it has none.
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

/// The most headers of a request: servers accept far less, and a publisher must not be able to keep
/// us busy with more.
pub const REQUEST_HEADERS_MAX: usize = 200;
/// The most bytes of them; see [`REQUEST_HEADERS_MAX`].
pub const REQUEST_HEADERS_MAX_BYTES: usize = 64 * 1_024;

/// The most bytes of an answer that are read, unless it may be a reply.
pub const ANSWER_MAX_BYTES: usize = 64 * 1_024;

/// The longest reply.
pub const REPLY_MAX_BYTES: usize = 512 * 1_024;
