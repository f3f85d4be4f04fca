//! S3 on a plain folder: the file `<data>/<bucket>/<key>` is an object.
//!
//! Separate from the queues because they only share the port. The crate `s3s` implements the
//! protocol, and `adapters::storage` stores the objects.
//!
//! Promises: conditional reads and writes. Has no versions, multipart uploads, copies, metadata,
//! virtual-hosted addresses or access control.

mod buckets;
mod chunked;
mod operations;
mod unsigned;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, S3Error, s3_error};

pub(super) use buckets::Buckets;

/// Maximum size of an object, because an object is held in memory during a write.
const OBJECT_LIMIT_BYTES: usize = 64 * 1024 * 1024;

/// Creates the S3 service for these buckets.
pub(super) fn service(buckets: Buckets) -> S3Service {
    S3ServiceBuilder::new(operations::Operations(buckets)).build()
}

/// Responds to one request. Ignores credentials.
pub(super) async fn respond(service: &S3Service, request: Request<Incoming>) -> Response<Body> {
    match call(service, request).await {
        Ok(response) => response,
        Err(error) => error.to_http_response().unwrap_or_else(|_| empty_error()),
    }
}

async fn call(service: &S3Service, request: Request<Incoming>) -> Result<Response<Body>, S3Error> {
    let (head, body) = request.into_parts();
    let body = read_body(body).await?;
    let request = unsigned::without_signature(head, body)?;
    service.call(request).await.map_err(|error| s3_error!(InternalError, "{error:?}"))
}

async fn read_body(body: Incoming) -> Result<Bytes, S3Error> {
    match Limited::new(body, OBJECT_LIMIT_BYTES).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(s3_error!(
            EntityTooLarge,
            "the local S3 accepts objects of at most {OBJECT_LIMIT_BYTES} bytes"
        )),
        Err(error) => Err(s3_error!(IncompleteBody, "the request ended early: {error}")),
    }
}

/// Returns the response for an error that itself cannot be serialized.
fn empty_error() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
    response
}
