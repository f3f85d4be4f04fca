//! The HTTP types and helpers that the Runtime API, the cloud and the subscriber share.
//!
//! Separate from the listeners in `server`, so that the services do not depend on the server.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;

/// The body of every response.
pub(crate) type Body = Full<Bytes>;

/// Creates a response with this status, content type and body.
pub(crate) fn respond(
    status: StatusCode,
    content_type: &'static str,
    body: Bytes,
) -> Response<Body> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
