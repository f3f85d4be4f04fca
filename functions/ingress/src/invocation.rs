//! The request and the response of an invocation in payload version 2.0, which function URLs and
//! HTTP APIs use. <https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html#urls-payloads>
//!
//! Only the needed members are read, so a member that AWS adds changes nothing.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use delivery::publish::Refusal;
use serde::{Deserialize, Serialize};

/// Name of the API stage that is not part of the path.
const DEFAULT_STAGE: &str = "$default";

/// An HTTP request, as Lambda passes it to the function.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Invocation {
    raw_path: String,
    #[serde(default)]
    raw_query_string: String,
    /// Headers, with names in lower case. Several headers with one name are joined with commas.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    request_context: RequestContext,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    is_base64_encoded: bool,
}

#[derive(Debug, Deserialize)]
struct RequestContext {
    http: Http,
    #[serde(default)]
    stage: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Http {
    method: String,
}

impl Invocation {
    pub(crate) fn method(&self) -> &str {
        &self.request_context.http.method
    }

    /// Returns the path of the request, without the stage of an HTTP API.
    pub(crate) fn path(&self) -> &str {
        let stage = self.request_context.stage.as_deref().filter(|stage| *stage != DEFAULT_STAGE);
        let rest = stage.and_then(|stage| self.raw_path.strip_prefix('/')?.strip_prefix(stage));
        rest.filter(|rest| rest.is_empty() || rest.starts_with('/')).unwrap_or(&self.raw_path)
    }

    pub(crate) fn query(&self) -> &str {
        &self.raw_query_string
    }

    pub(crate) fn headers(&self) -> Vec<(String, Vec<u8>)> {
        let headers = self.headers.iter();
        headers
            .map(|(name, value)| (name.to_ascii_lowercase(), value.clone().into_bytes()))
            .collect()
    }

    /// Returns the bytes of the body. Refuses invalid base64 with status 400.
    pub(crate) fn body(&self) -> Result<Cow<'_, [u8]>, Refusal> {
        let text = self.body.as_deref().unwrap_or_default();
        if !self.is_base64_encoded {
            return Ok(text.as_bytes().into());
        }
        let decoded = STANDARD.decode(text);
        decoded.map(Into::into).map_err(|_| Refusal::new(400, "the body cannot be read"))
    }
}

/// The response to a request, in the form that Lambda expects.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// The HTTP status code.
    pub status_code: u16,
    /// Headers, with names in lower case.
    pub headers: BTreeMap<&'static str, String>,
    /// The body: JSON, or empty.
    pub body: String,
    /// True if the body is base64; always false for this function.
    pub is_base64_encoded: bool,
}

impl Response {
    pub(crate) fn json(status: u16, body: String) -> Self {
        let headers = BTreeMap::from([("content-type", "application/json".to_owned())]);
        Self { status_code: status, headers, body, is_base64_encoded: false }
    }

    /// Creates the response to a webhook handshake that was granted.
    pub(crate) fn granted(headers: Vec<(&'static str, String)>) -> Self {
        let headers = headers.into_iter().collect();
        Self { status_code: 200, headers, body: String::new(), is_base64_encoded: false }
    }

    pub(crate) fn of_refusal(refusal: &Refusal) -> Self {
        let mut response = Self::json(refusal.status, refusal.body());
        response.headers.extend(refusal.header().map(|(name, value)| (name, value.to_owned())));
        response
    }
}
