//! The operations of S3 that the local S3 supports. Each translates between the protocol and the
//! buckets.
//!
//! Separate from the buckets because the protocol has many types, and its rules do not concern
//! files.
//!
//! Promises S3's status codes for conditions:
//!
//! - 412 for a put-if-absent of an existing key, and for a replacement of other content;
//! - 404 for a replacement of a missing object;
//! - 304 for a get of an unchanged object.
//!
//! Any other operation returns `NotImplemented`.

use std::time::{Duration, UNIX_EPOCH};

use adapters::storage::{Entry, ListRequest, Page};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use md5::{Digest as _, Md5};
use s3s::dto::{
    Bucket, CommonPrefix, CreateBucketInput, CreateBucketOutput, DeleteObjectInput,
    DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput, DeletedObject, ETag,
    ETagCondition, GetBucketLocationInput, GetBucketLocationOutput, GetObjectInput,
    GetObjectOutput, HeadBucketInput, HeadBucketOutput, HeadObjectInput, HeadObjectOutput,
    ListBucketsInput, ListBucketsOutput, ListObjectVersionsInput, ListObjectVersionsOutput,
    ListObjectsV2Input, ListObjectsV2Output, Object, ObjectVersion, PutObjectInput,
    PutObjectOutput, StreamingBlob, Timestamp,
};
use s3s::{Body, S3, S3Error, S3Request, S3Response, S3Result, s3_error};

use super::super::REGION;
use super::buckets::{Buckets, ReadObject, failure};

/// Maximum and default number of keys per page (S3 `ListObjectsV2`).
const PAGE_LIMIT: i32 = 1000;

/// The response of an S3 operation.
type Answer<T> = S3Result<S3Response<T>>;

/// The S3 operations on buckets that are folders.
#[derive(Debug)]
pub(super) struct Operations(pub(super) Buckets);

impl Operations {
    /// Reads an object and its ETag, if the conditions of the request are met.
    async fn read(
        &self,
        bucket: &str,
        key: &str,
        if_match: Option<ETagCondition>,
        if_none_match: Option<ETagCondition>,
    ) -> Result<(ReadObject, ETag), S3Error> {
        let object = self.0.get(bucket, key).await?;
        let tag = tag(&object.content);
        // RFC 9110, 13.2.2 defines this order: If-Match comes first.
        if if_match.is_some_and(|condition| !tag_matches(&condition, &tag)) {
            return Err(s3_error!(PreconditionFailed));
        }
        if if_none_match.is_some_and(|condition| tag_matches(&condition, &tag)) {
            return Err(s3_error!(NotModified));
        }
        Ok((object, tag))
    }
}

#[async_trait::async_trait]
impl S3 for Operations {
    async fn create_bucket(
        &self,
        request: S3Request<CreateBucketInput>,
    ) -> Answer<CreateBucketOutput> {
        let bucket = request.input.bucket;
        let location = Some(format!("/{bucket}"));
        self.0.create_bucket(&bucket).map_err(failure)?;
        Ok(S3Response::new(CreateBucketOutput { location }))
    }

    async fn head_bucket(&self, request: S3Request<HeadBucketInput>) -> Answer<HeadBucketOutput> {
        self.0.bucket(&request.input.bucket)?;
        let bucket_region = Some(REGION.to_owned());
        Ok(S3Response::new(HeadBucketOutput { bucket_region, ..HeadBucketOutput::default() }))
    }

    async fn get_bucket_location(
        &self,
        request: S3Request<GetBucketLocationInput>,
    ) -> Answer<GetBucketLocationOutput> {
        self.0.bucket(&request.input.bucket)?;
        Ok(S3Response::new(GetBucketLocationOutput::default()))
    }

    async fn list_buckets(&self, _: S3Request<ListBucketsInput>) -> Answer<ListBucketsOutput> {
        let found = self.0.list().map_err(failure)?;
        let buckets = found.into_iter().map(|(name, changed)| Bucket {
            name: Some(name),
            creation_date: Some(Timestamp::from(changed)),
            bucket_region: Some(REGION.to_owned()),
        });
        Ok(S3Response::new(ListBucketsOutput {
            buckets: Some(buckets.collect()),
            ..ListBucketsOutput::default()
        }))
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> Answer<ListObjectsV2Output> {
        let input = request.input;
        let page = self.0.list_page(&input.bucket, &list_request(&input)?).await?;
        let mut tags = Vec::with_capacity(page.entries.len());
        for entry in &page.entries {
            // An object that was removed after it was listed has no tag.
            let object = self.0.get(&input.bucket, &entry.key).await.ok();
            tags.push(object.map(|object| tag(&object.content)));
        }
        Ok(S3Response::new(listed(input, page, tags)))
    }

    /// Lists the objects of a bucket as versions. The buckets have no versions, so each object has
    /// the version that S3 calls `null`.
    async fn list_object_versions(
        &self,
        request: S3Request<ListObjectVersionsInput>,
    ) -> Answer<ListObjectVersionsOutput> {
        let input = request.input;
        let prefix = input.prefix.clone().unwrap_or_default();
        let list = ListRequest { prefix, start_after: input.key_marker, ..ListRequest::default() };
        let page = self.0.list_page(&input.bucket, &list).await?;
        let next_key_marker =
            page.next.as_ref().and(page.entries.last()).map(|entry| entry.key.clone());
        Ok(S3Response::new(ListObjectVersionsOutput {
            is_truncated: Some(page.next.is_some()),
            name: Some(input.bucket),
            next_key_marker,
            prefix: input.prefix,
            versions: Some(page.entries.into_iter().map(version).collect()),
            ..ListObjectVersionsOutput::default()
        }))
    }

    async fn get_object(&self, request: S3Request<GetObjectInput>) -> Answer<GetObjectOutput> {
        let input = request.input;
        let (object, tag) =
            self.read(&input.bucket, &input.key, input.if_match, input.if_none_match).await?;
        let (content, content_range) = match input.range {
            Some(range) => byte_range(&object.content, range.check(object.content.len() as u64)?),
            None => (object.content, None),
        };
        Ok(S3Response::new(GetObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            content_length: i64::try_from(content.len()).ok(),
            body: Some(StreamingBlob::from(Body::from(content))),
            content_range,
            content_type: Some(content_type(&input.key).to_owned()),
            e_tag: Some(tag),
            last_modified: Some(timestamp(object.modified_ms)),
            ..GetObjectOutput::default()
        }))
    }

    async fn head_object(&self, request: S3Request<HeadObjectInput>) -> Answer<HeadObjectOutput> {
        let input = request.input;
        let (object, tag) =
            self.read(&input.bucket, &input.key, input.if_match, input.if_none_match).await?;
        Ok(S3Response::new(HeadObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            content_length: i64::try_from(object.content.len()).ok(),
            content_type: Some(content_type(&input.key).to_owned()),
            e_tag: Some(tag),
            last_modified: Some(timestamp(object.modified_ms)),
            ..HeadObjectOutput::default()
        }))
    }

    async fn put_object(&self, request: S3Request<PutObjectInput>) -> Answer<PutObjectOutput> {
        let input = request.input;
        let condition = put_condition(input.if_match, input.if_none_match)?;
        let content = match input.body {
            Some(body) => read_body(body).await?,
            None => Bytes::new(),
        };
        let e_tag = Some(tag(&content));
        let (bucket, key, content) = (&input.bucket, &input.key, content.into());
        match condition {
            PutCondition::None => self.0.put(bucket, key, content, false).await?,
            PutCondition::Absent => self.0.put(bucket, key, content, true).await?,
            PutCondition::Tag(known) => {
                let is_known = |found: &[u8]| known.strong_cmp(&tag(found));
                self.0.replace(bucket, key, content, is_known).await?;
            }
        }
        Ok(S3Response::new(PutObjectOutput { e_tag, ..PutObjectOutput::default() }))
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> Answer<DeleteObjectOutput> {
        self.0.delete(&request.input.bucket, &request.input.key).await?;
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> Answer<DeleteObjectsOutput> {
        let input = request.input;
        // A missing bucket is an error of the whole request, not of each key.
        self.0.bucket(&input.bucket)?;
        let (mut deleted, mut errors) = (Vec::new(), Vec::new());
        for key in input.delete.objects.into_iter().map(|object| object.key) {
            match self.0.delete(&input.bucket, &key).await {
                Ok(()) => {
                    deleted.push(DeletedObject { key: Some(key), ..DeletedObject::default() });
                }
                Err(error) => errors.push(s3s::dto::Error {
                    code: Some(error.code().as_str().to_owned()),
                    message: error.message().map(str::to_owned),
                    key: Some(key),
                    version_id: None,
                }),
            }
        }
        let is_quiet = input.delete.quiet.unwrap_or_default();
        Ok(S3Response::new(DeleteObjectsOutput {
            deleted: Some(deleted).filter(|_| !is_quiet),
            errors: Some(errors).filter(|errors| !errors.is_empty()),
            ..DeleteObjectsOutput::default()
        }))
    }
}

#[derive(Debug)]
enum PutCondition {
    None,
    /// The object must not exist before the put.
    Absent,
    /// The object must have this ETag before the put.
    Tag(ETag),
}

/// Returns the condition of a put, of which S3 permits only one.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html>
fn put_condition(
    if_match: Option<ETagCondition>,
    if_none_match: Option<ETagCondition>,
) -> Result<PutCondition, S3Error> {
    match (if_match, if_none_match) {
        (None, None) => Ok(PutCondition::None),
        (None, Some(ETagCondition::Any)) => Ok(PutCondition::Absent),
        (Some(ETagCondition::ETag(known)), None) => Ok(PutCondition::Tag(known)),
        (Some(_), Some(_))
        | (Some(ETagCondition::Any), None)
        | (None, Some(ETagCondition::ETag(_))) => Err(s3_error!(
            NotImplemented,
            "for conditional puts, the local S3 supports only If-None-Match: * and If-Match with \
             an ETag"
        )),
    }
}

/// Returns the ETag of an object as S3 computes it without multipart upload: the MD5 of the
/// content, in hexadecimal.
fn tag(content: &[u8]) -> ETag {
    ETag::Strong(hex::encode(Md5::digest(content)))
}

fn tag_matches(condition: &ETagCondition, tag: &ETag) -> bool {
    match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(wanted) => wanted.weak_cmp(tag),
    }
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
fn byte_range(content: &Bytes, range: std::ops::Range<u64>) -> (Bytes, Option<String>) {
    let content_range =
        format!("bytes {}-{}/{}", range.start, range.end.saturating_sub(1), content.len());
    let at = |position| usize::try_from(position).unwrap_or(usize::MAX).min(content.len());
    (content.slice(at(range.start)..at(range.end)), Some(content_range))
}

async fn read_body(body: StreamingBlob) -> Result<Bytes, S3Error> {
    let collected = Body::from(body).collect().await;
    Ok(collected
        .map_err(|error| s3_error!(IncompleteBody, "the request ended early: {error}"))?
        .to_bytes())
}

fn list_request(input: &ListObjectsV2Input) -> Result<ListRequest, S3Error> {
    let delimiter = input.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty());
    if delimiter.is_some_and(|delimiter| delimiter != "/") {
        return Err(s3_error!(NotImplemented, "the local S3 supports only the delimiter /"));
    }
    let max_keys = u16::try_from(max_keys(input))
        .map_err(|_| s3_error!(InvalidArgument, "max-keys is negative"))?;
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

fn listed(input: ListObjectsV2Input, page: Page, tags: Vec<Option<ETag>>) -> ListObjectsV2Output {
    let contents: Vec<Object> = page.entries.into_iter().zip(tags).map(object).collect();
    let folders = page.folders.into_iter().map(|folder| CommonPrefix { prefix: Some(folder) });
    let common_prefixes: Vec<CommonPrefix> = folders.collect();
    ListObjectsV2Output {
        max_keys: Some(max_keys(&input)),
        name: Some(input.bucket),
        key_count: i32::try_from(contents.len() + common_prefixes.len()).ok(),
        contents: Some(contents),
        common_prefixes: Some(common_prefixes),
        continuation_token: input.continuation_token,
        delimiter: input.delimiter,
        is_truncated: Some(page.next.is_some()),
        next_continuation_token: page.next,
        prefix: Some(input.prefix.unwrap_or_default()),
        start_after: input.start_after,
        ..ListObjectsV2Output::default()
    }
}

fn version(entry: Entry) -> ObjectVersion {
    ObjectVersion {
        key: Some(entry.key),
        version_id: Some("null".to_owned()),
        is_latest: Some(true),
        size: i64::try_from(entry.bytes).ok(),
        last_modified: Some(timestamp(entry.modified_ms)),
        ..ObjectVersion::default()
    }
}

fn object((entry, e_tag): (Entry, Option<ETag>)) -> Object {
    Object {
        key: Some(entry.key),
        e_tag,
        size: i64::try_from(entry.bytes).ok(),
        last_modified: Some(timestamp(entry.modified_ms)),
        ..Object::default()
    }
}

fn timestamp(at_ms: u64) -> Timestamp {
    Timestamp::from(UNIX_EPOCH + Duration::from_millis(at_ms))
}
