//! S3 over a plain folder: `<data>/<bucket>/<key>` is the object, nothing lies beside it.
//!
//! It is separate from the queues because the two share nothing but the port. The protocol is the
//! `s3s` crate's; what an object is on disk is [`folder`]'s. It promises put-if-absent that holds
//! between processes, conditional reads, and listings in S3's order. It has no versions, multipart
//! uploads, copies, metadata of its own, virtual-hosted addresses or access control.

mod chunked;
mod folder;
mod key;
mod listing;
mod operations;
mod unsigned;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, S3Error, s3_error};

pub(super) use folder::Folder;

/// The largest object the local S3 takes; it is held in memory while it is written.
const OBJECT_LIMIT_BYTES: usize = 64 * 1024 * 1024;

/// The protocol over a folder.
pub(super) fn service(folder: Folder) -> S3Service {
    S3ServiceBuilder::new(operations::Operations::new(folder)).build()
}

/// Answers one request; credentials are not looked at.
pub(super) async fn answer(service: &S3Service, request: Request<Incoming>) -> Response<Body> {
    match answered(service, request).await {
        Ok(response) => response,
        Err(error) => error.to_http_response().unwrap_or_else(|_| unspeakable()),
    }
}

async fn answered(
    service: &S3Service,
    request: Request<Incoming>,
) -> Result<Response<Body>, S3Error> {
    let (head, body) = request.into_parts();
    let body = collected(body).await?;
    let request = unsigned::without_signature(head, body)?;
    service.call(request).await.map_err(|error| s3_error!(InternalError, "{error:?}"))
}

async fn collected(body: Incoming) -> Result<Bytes, S3Error> {
    match Limited::new(body, OBJECT_LIMIT_BYTES).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(s3_error!(
            EntityTooLarge,
            "the local S3 takes objects of at most {OBJECT_LIMIT_BYTES} bytes"
        )),
        Err(error) => Err(s3_error!(IncompleteBody, "the request broke off: {error}")),
    }
}

/// The answer when not even an error can be written.
fn unspeakable() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
    response
}
