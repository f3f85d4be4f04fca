//! Takes the signature off a request, so that any credentials, or none, are accepted.
//!
//! It is separate because `s3s` either checks a signature or refuses to see one, and a developer's
//! credentials are whatever the machine has. It promises that a signed, a presigned and a streamed
//! request come out as the same anonymous one. It verifies nothing: neither signature nor checksum.

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Request, Uri};
use s3s::{Body, HttpRequest, S3Error, s3_error};

use super::chunked;

/// How the `x-amz-content-sha256` of a streamed body begins.
const STREAMING: &[u8] = b"STREAMING-";

/// Query parameters of presigned URLs besides those that begin with `X-Amz-`.
const PRESIGNED_PARAMETERS: [&str; 3] = ["Signature", "Expires", "AWSAccessKeyId"];

/// The same request without a signature, its body as the client's program gave it.
pub(super) fn without_signature(mut head: Parts, body: Bytes) -> Result<HttpRequest, S3Error> {
    head.headers.remove(AUTHORIZATION);
    if let Some(uri) = without_presigning(&head.uri) {
        head.uri = uri.parse().map_err(|error| s3_error!(InvalidURI, "{error}"))?;
    }
    let sent_as = head.headers.remove("x-amz-content-sha256");
    let streamed = sent_as.is_some_and(|value| value.as_bytes().starts_with(STREAMING));
    let body = if streamed { unchunked(&mut head.headers, &body)? } else { body };
    Ok(Request::from_parts(head, Body::from(body)))
}

/// The address without the parameters of a presigned URL, if it has any.
fn without_presigning(uri: &Uri) -> Option<String> {
    let query = uri.query()?;
    let kept: Vec<&str> = query.split('&').filter(|pair| !is_presigning(pair)).collect();
    (kept.len() < query.split('&').count()).then(|| format!("{}?{}", uri.path(), kept.join("&")))
}

fn is_presigning(pair: &str) -> bool {
    let name = pair.split('=').next().unwrap_or_default();
    name.to_ascii_lowercase().starts_with("x-amz-") || PRESIGNED_PARAMETERS.contains(&name)
}

/// The content of a streamed body, and headers that say so.
fn unchunked(headers: &mut HeaderMap, body: &[u8]) -> Result<Bytes, S3Error> {
    let content = chunked::content(body)
        .ok_or_else(|| s3_error!(IncompleteBody, "the chunks of the body are broken"))?;
    headers.remove("x-amz-decoded-content-length");
    headers.remove("x-amz-trailer");
    headers.remove(CONTENT_ENCODING);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(content.len()));
    Ok(Bytes::from(content))
}
