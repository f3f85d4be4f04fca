//! The operations of S3 that the local S3 supports. Each translates between the protocol and the
//! buckets.
//!
//! Separate from the buckets because the protocol has many types, and its rules do not concern
//! files.
//!
//! Promises S3's status codes for conditions:
//!
//! - 412 for a put-if-absent of an existing key, and for a replacement of changed content;
//! - 404 for a replacement of a missing object;
//! - 304 for a get of an unchanged object.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use adapters::storage::{Entry, ListRequest, Page};
use bytes::Bytes;
use http::{Response, StatusCode};
use rustack_s3_core::checksums::compute_etag;
use rustack_s3_core::error::S3ServiceError;
use rustack_s3_core::utils::{is_valid_if_match, is_valid_if_none_match, parse_range_header};
use rustack_s3_core::validation::validate_bucket_name;
use rustack_s3_http::{IntoS3Response, S3ResponseBody};
use rustack_s3_model::error::{S3Error, S3ErrorCode};
use rustack_s3_model::input::{
    CreateBucketInput, DeleteObjectInput, DeleteObjectsInput, GetBucketLocationInput,
    GetObjectInput, HeadBucketInput, HeadObjectInput, ListBucketsInput, ListObjectVersionsInput,
    ListObjectsV2Input, PutObjectInput,
};
use rustack_s3_model::output::{
    CreateBucketOutput, DeleteObjectOutput, DeleteObjectsOutput, GetBucketLocationOutput,
    GetObjectOutput, HeadBucketOutput, HeadObjectOutput, ListBucketsOutput,
    ListObjectVersionsOutput, ListObjectsV2Output, PutObjectOutput,
};
use rustack_s3_model::types::{Bucket, CommonPrefix, DeletedObject, Error, Object, ObjectVersion};

use super::super::REGION;
use super::buckets::{Buckets, ReadObject, failure};

/// Maximum and default number of keys per page (S3 `ListObjectsV2`).
const PAGE_LIMIT: i32 = 1000;

/// The output of `GetObject`. The response has the status 206 if it contains only a byte range.
#[derive(Debug)]
pub(super) struct ReadOutput(GetObjectOutput);

impl IntoS3Response for ReadOutput {
    fn into_s3_response(self) -> Result<Response<S3ResponseBody>, S3Error> {
        let is_part = self.0.content_range.is_some();
        let mut response = self.0.into_s3_response()?;
        if is_part {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        }
        Ok(response)
    }
}

pub(super) async fn create_bucket(
    buckets: Arc<Buckets>,
    input: CreateBucketInput,
) -> Result<CreateBucketOutput, S3Error> {
    validate_bucket_name(&input.bucket).map_err(S3ServiceError::into_s3_error)?;
    buckets.create_bucket(&input.bucket).map_err(failure)?;
    let location = Some(format!("/{}", input.bucket));
    Ok(CreateBucketOutput { location, ..CreateBucketOutput::default() })
}

pub(super) async fn head_bucket(
    buckets: Arc<Buckets>,
    input: HeadBucketInput,
) -> Result<HeadBucketOutput, S3Error> {
    buckets.bucket(&input.bucket)?;
    let bucket_region = Some(REGION.to_owned());
    Ok(HeadBucketOutput { bucket_region, ..HeadBucketOutput::default() })
}

pub(super) async fn get_bucket_location(
    buckets: Arc<Buckets>,
    input: GetBucketLocationInput,
) -> Result<GetBucketLocationOutput, S3Error> {
    buckets.bucket(&input.bucket)?;
    Ok(GetBucketLocationOutput::default())
}

pub(super) async fn list_buckets(
    buckets: Arc<Buckets>,
    _: ListBucketsInput,
) -> Result<ListBucketsOutput, S3Error> {
    let found = buckets.list().map_err(failure)?;
    let buckets = found.into_iter().map(|(name, changed)| Bucket {
        name: Some(name),
        creation_date: Some(changed.into()),
        ..Bucket::default()
    });
    Ok(ListBucketsOutput { buckets: buckets.collect(), ..ListBucketsOutput::default() })
}

pub(super) async fn list_objects(
    buckets: Arc<Buckets>,
    input: ListObjectsV2Input,
) -> Result<ListObjectsV2Output, S3Error> {
    let page = buckets.list_page(&input.bucket, &list_request(&input)?).await?;
    let mut contents = Vec::with_capacity(page.entries.len());
    for entry in page.entries {
        // An object that was deleted after it was listed has no ETag.
        let found = buckets.get(&input.bucket, &entry.key).await.ok();
        contents.push(object(entry, found));
    }
    let folders = page.folders.into_iter().map(|folder| CommonPrefix { prefix: Some(folder) });
    let common_prefixes: Vec<CommonPrefix> = folders.collect();
    Ok(ListObjectsV2Output {
        max_keys: Some(max_keys(&input)),
        name: Some(input.bucket),
        key_count: i32::try_from(contents.len() + common_prefixes.len()).ok(),
        contents,
        common_prefixes,
        continuation_token: input.continuation_token,
        delimiter: input.delimiter,
        is_truncated: Some(page.next.is_some()),
        next_continuation_token: page.next,
        prefix: Some(input.prefix.unwrap_or_default()),
        start_after: input.start_after,
        ..ListObjectsV2Output::default()
    })
}

/// Lists the objects of a bucket as versions. The buckets have no versions, so each object has the
/// version that S3 calls `null`.
pub(super) async fn list_object_versions(
    buckets: Arc<Buckets>,
    input: ListObjectVersionsInput,
) -> Result<ListObjectVersionsOutput, S3Error> {
    let prefix = input.prefix.clone().unwrap_or_default();
    let list = ListRequest { prefix, start_after: input.key_marker, ..ListRequest::default() };
    let Page { entries, next, .. } = buckets.list_page(&input.bucket, &list).await?;
    let next_key_marker = next.as_ref().and(entries.last()).map(|entry| entry.key.clone());
    Ok(ListObjectVersionsOutput {
        is_truncated: Some(next.is_some()),
        name: Some(input.bucket),
        next_key_marker,
        prefix: input.prefix,
        versions: entries.into_iter().map(version).collect(),
        ..ListObjectVersionsOutput::default()
    })
}

pub(super) async fn get_object(
    buckets: Arc<Buckets>,
    input: GetObjectInput,
) -> Result<ReadOutput, S3Error> {
    let object = buckets.get(&input.bucket, &input.key).await?;
    let e_tag = check_read(&object, input.if_match, input.if_none_match)?;
    let (content, content_range) = match input.range {
        Some(range) => byte_range(&object.content, &range)?,
        None => (object.content, None),
    };
    Ok(ReadOutput(GetObjectOutput {
        accept_ranges: Some("bytes".to_owned()),
        content_length: i64::try_from(content.len()).ok(),
        body: Some(content.into()),
        content_range,
        content_type: Some(content_type(&input.key).to_owned()),
        e_tag: Some(e_tag),
        last_modified: Some(time(object.modified_ms).into()),
        ..GetObjectOutput::default()
    }))
}

pub(super) async fn head_object(
    buckets: Arc<Buckets>,
    input: HeadObjectInput,
) -> Result<HeadObjectOutput, S3Error> {
    let object = buckets.get(&input.bucket, &input.key).await?;
    let e_tag = check_read(&object, input.if_match, input.if_none_match)?;
    Ok(HeadObjectOutput {
        accept_ranges: Some("bytes".to_owned()),
        content_length: i64::try_from(object.content.len()).ok(),
        content_type: Some(content_type(&input.key).to_owned()),
        e_tag: Some(e_tag),
        last_modified: Some(time(object.modified_ms).into()),
        ..HeadObjectOutput::default()
    })
}

/// Writes an object. A request may have only one condition, as in S3
/// (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html>).
pub(super) async fn put_object(
    buckets: Arc<Buckets>,
    input: PutObjectInput,
    content: Bytes,
) -> Result<PutObjectOutput, S3Error> {
    let e_tag = Some(compute_etag(&content));
    let (bucket, key, content) = (&input.bucket, &input.key, content.into());
    match (input.if_match.as_deref(), input.if_none_match.as_deref()) {
        (None, None) => buckets.put(bucket, key, content, false).await?,
        (None, Some("*")) => buckets.put(bucket, key, content, true).await?,
        (Some(known), None) if known != "*" => {
            let is_known = |found: &[u8]| is_valid_if_match(&compute_etag(found), known);
            buckets.replace(bucket, key, content, is_known).await?;
        }
        (Some(_), _) | (None, Some(_)) => {
            return Err(S3Error::with_message(
                S3ErrorCode::NotImplemented,
                "the local S3 supports only these conditions of a put: If-None-Match: *, and If-Match with an ETag",
            ));
        }
    }
    Ok(PutObjectOutput { e_tag, ..PutObjectOutput::default() })
}

pub(super) async fn delete_object(
    buckets: Arc<Buckets>,
    input: DeleteObjectInput,
) -> Result<DeleteObjectOutput, S3Error> {
    buckets.delete(&input.bucket, &input.key).await?;
    Ok(DeleteObjectOutput::default())
}

pub(super) async fn delete_objects(
    buckets: Arc<Buckets>,
    input: DeleteObjectsInput,
) -> Result<DeleteObjectsOutput, S3Error> {
    // A missing bucket is an error of the whole request, not of each key.
    buckets.bucket(&input.bucket)?;
    let is_quiet = input.delete.quiet.unwrap_or_default();
    let mut output = DeleteObjectsOutput::default();
    for key in input.delete.objects.into_iter().map(|object| object.key) {
        match buckets.delete(&input.bucket, &key).await {
            Ok(()) if is_quiet => {}
            Ok(()) => {
                output.deleted.push(DeletedObject { key: Some(key), ..DeletedObject::default() });
            }
            Err(error) => output.errors.push(Error {
                code: Some(error.code.as_str().to_owned()),
                message: Some(error.message),
                key: Some(key),
                version_id: None,
            }),
        }
    }
    Ok(output)
}

/// Checks the conditions of a read, and returns the ETag of the object as S3 computes it without
/// multipart upload: the MD5 of the content, in hexadecimal.
fn check_read(
    object: &ReadObject,
    if_match: Option<String>,
    if_none_match: Option<String>,
) -> Result<String, S3Error> {
    let tag = compute_etag(&object.content);
    // RFC 9110, 13.2.2 defines this order: If-Match comes first.
    if if_match.is_some_and(|wanted| !is_valid_if_match(&tag, &wanted)) {
        return Err(S3Error::new(S3ErrorCode::PreconditionFailed));
    }
    if if_none_match.is_some_and(|known| !is_valid_if_none_match(&tag, &known)) {
        return Err(S3Error::new(S3ErrorCode::NotModified));
    }
    Ok(tag)
}

/// Returns the content type for the extension of a key, because files have no content type.
fn content_type(key: &str) -> &'static str {
    match key.rsplit_once('.').map(|(_, extension)| extension) {
        Some("json") => "application/json",
        Some("yaml" | "yml") => "application/yaml",
        Some(_) | None => "application/octet-stream",
    }
}

/// Returns a byte range of the content, and its `Content-Range` header.
fn byte_range(content: &Bytes, range: &str) -> Result<(Bytes, Option<String>), S3Error> {
    let bytes = content.len();
    let (first, last) =
        parse_range_header(range, bytes as u64).map_err(S3ServiceError::into_s3_error)?;
    let position = |at| usize::try_from(at).unwrap_or(usize::MAX).min(bytes);
    let part = content.slice(position(first)..position(last.saturating_add(1)));
    Ok((part, Some(format!("bytes {first}-{last}/{bytes}"))))
}

fn list_request(input: &ListObjectsV2Input) -> Result<ListRequest, S3Error> {
    let delimiter = input.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty());
    if delimiter.is_some_and(|delimiter| delimiter != "/") {
        return Err(S3Error::with_message(
            S3ErrorCode::NotImplemented,
            "the local S3 supports the delimiter / only",
        ));
    }
    let max_keys = u16::try_from(max_keys(input))
        .map_err(|_| S3Error::invalid_argument("max-keys is negative"))?;
    Ok(ListRequest {
        prefix: input.prefix.clone().unwrap_or_default(),
        by_folder: delimiter.is_some(),
        start_after: input.start_after.clone(),
        page_token: input.continuation_token.clone(),
        max_keys: Some(max_keys),
    })
}

fn max_keys(input: &ListObjectsV2Input) -> i32 {
    input.max_keys.unwrap_or(PAGE_LIMIT).min(PAGE_LIMIT)
}

fn version(entry: Entry) -> ObjectVersion {
    ObjectVersion {
        key: Some(entry.key),
        version_id: Some("null".to_owned()),
        is_latest: Some(true),
        size: i64::try_from(entry.bytes).ok(),
        last_modified: Some(time(entry.modified_ms).into()),
        ..ObjectVersion::default()
    }
}

fn object(entry: Entry, found: Option<ReadObject>) -> Object {
    Object {
        key: Some(entry.key),
        e_tag: found.map(|object| compute_etag(&object.content)),
        size: i64::try_from(entry.bytes).ok(),
        last_modified: Some(time(entry.modified_ms).into()),
        ..Object::default()
    }
}

fn time(at_ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(at_ms)
}
