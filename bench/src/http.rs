//! The HTTP types and helpers that the Runtime API, the cloud and the subscriber share.
//!
//! Separate from the listeners in `server`, so that the services do not depend on who serves them.

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;

/// The body of every response.
pub(crate) type Body = Full<Bytes>;

/// A response.
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

/// Reads a request's body to its end and drops it.
pub(crate) async fn drain(request: Request<Incoming>) -> anyhow::Result<()> {
    let mut body = request.into_body();
    while let Some(frame) = body.frame().await {
        frame?;
    }
    Ok(())
}
