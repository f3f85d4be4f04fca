//! Removes the signature from a request, so that any credentials, or none, are accepted.
//!
//! Separate because `s3s` either verifies signatures or rejects signed requests, and a developer's
//! credentials can be anything.
//!
//! Promises: signed, presigned and streamed requests become the same anonymous request. Verifies
//! neither signatures nor checksums.

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Request, Uri};
use s3s::{Body, HttpRequest, S3Error, s3_error};

use super::chunked;

/// Prefix of the header `x-amz-content-sha256` for a streamed body.
const STREAMING: &[u8] = b"STREAMING-";

/// Query parameters of presigned URLs that do not begin with `X-Amz-`.
const PRESIGNED_PARAMETERS: [&str; 3] = ["Signature", "Expires", "AWSAccessKeyId"];

/// Removes the signature from a request, and the framing from its body.
pub(super) fn without_signature(mut head: Parts, body: Bytes) -> Result<HttpRequest, S3Error> {
    head.headers.remove(AUTHORIZATION);
    if let Some(uri) = without_presigning(&head.uri) {
        head.uri = uri.parse().map_err(|error| s3_error!(InvalidURI, "{error}"))?;
    }
    let content_sha256 = head.headers.remove("x-amz-content-sha256");
    let streamed = content_sha256.is_some_and(|value| value.as_bytes().starts_with(STREAMING));
    let body = if streamed { unchunked(&mut head.headers, &body)? } else { body };
    Ok(Request::from_parts(head, Body::from(body)))
}

/// Removes the parameters of a presigned URL; returns `None` if the URI has none.
fn without_presigning(uri: &Uri) -> Option<String> {
    let query = uri.query()?;
    let kept: Vec<&str> = query.split('&').filter(|pair| !is_presigning(pair)).collect();
    (kept.len() < query.split('&').count()).then(|| format!("{}?{}", uri.path(), kept.join("&")))
}

fn is_presigning(pair: &str) -> bool {
    let name = pair.split('=').next().unwrap_or_default();
    name.to_ascii_lowercase().starts_with("x-amz-") || PRESIGNED_PARAMETERS.contains(&name)
}

/// Removes the framing from a streamed body, and adapts the headers.
fn unchunked(headers: &mut HeaderMap, body: &[u8]) -> Result<Bytes, S3Error> {
    let content = chunked::content(body)
        .ok_or_else(|| s3_error!(IncompleteBody, "the chunks of the body are invalid"))?;
    headers.remove("x-amz-decoded-content-length");
    headers.remove("x-amz-trailer");
    headers.remove(CONTENT_ENCODING);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(content.len()));
    Ok(Bytes::from(content))
}
