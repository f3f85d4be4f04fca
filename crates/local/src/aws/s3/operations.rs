//! The operations of S3 that the local one supports, each a translation between the protocol and
//! the folder.
//!
//! They are separate from the folder because the protocol has many types and its rules are not about
//! files. They promise S3's status codes for conditions: 412 for a put-if-absent of an existing key,
//! 304 for a get of an unchanged object. Any other operation returns `NotImplemented`.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use s3s::dto::{
    Bucket, CommonPrefix, CreateBucketInput, CreateBucketOutput, DeleteObjectInput,
    DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput, DeletedObject, ETag,
    ETagCondition, GetBucketLocationInput, GetBucketLocationOutput, GetObjectInput,
    GetObjectOutput, HeadBucketInput, HeadBucketOutput, HeadObjectInput, HeadObjectOutput,
    ListBucketsInput, ListBucketsOutput, ListObjectsV2Input, ListObjectsV2Output, Object,
    PutObjectInput, PutObjectOutput, StreamingBlob, Timestamp,
};
use s3s::{Body, S3, S3Error, S3Request, S3Response, S3Result, s3_error};

use super::super::REGION;
use super::folder::{self, Existing, Folder};
use super::listing::{Page, Query};

/// The maximum and the default of keys per page (S3 `ListObjectsV2`).
const PAGE_LIMIT: i32 = 1000;

/// S3 on a folder.
#[derive(Debug)]
pub(super) struct Operations {
    folder: Arc<Folder>,
}

impl Operations {
    /// The operations on one folder.
    pub(super) fn new(folder: Folder) -> Self {
        Self { folder: Arc::new(folder) }
    }

    /// Runs blocking work on the folder in the thread pool for it.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Folder) -> Result<T, S3Error> + Send + 'static,
    ) -> Result<T, S3Error> {
        let folder = Arc::clone(&self.folder);
        let done = tokio::task::spawn_blocking(move || work(&folder)).await;
        done.unwrap_or_else(|error| Err(s3_error!(InternalError, "{error}")))
    }

    /// Reads an object if its conditions hold.
    async fn read(
        &self,
        bucket: String,
        key: String,
        if_match: Option<ETagCondition>,
        if_none_match: Option<ETagCondition>,
    ) -> Result<ReadObject, S3Error> {
        let object = self
            .run_blocking(move |folder| folder.get(&bucket, &key).map(|object| (object, key)))
            .await;
        let (object, key) = object?;
        let tag = ETag::Strong(folder::tag(&object.content));
        // The order of RFC 9110, 13.2.2: If-Match comes first.
        if if_match.is_some_and(|condition| !tag_matches(&condition, &tag)) {
            return Err(s3_error!(PreconditionFailed));
        }
        if if_none_match.is_some_and(|condition| tag_matches(&condition, &tag)) {
            return Err(s3_error!(NotModified));
        }
        let modified = Timestamp::from(object.modified);
        Ok(ReadObject {
            content: Bytes::from(object.content),
            tag,
            modified,
            content_type: content_type(&key),
        })
    }
}

/// An object that was read and whose conditions hold.
struct ReadObject {
    content: Bytes,
    tag: ETag,
    modified: Timestamp,
    content_type: &'static str,
}

#[async_trait::async_trait]
impl S3 for Operations {
    async fn create_bucket(
        &self,
        request: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        let bucket = request.input.bucket;
        let location = Some(format!("/{bucket}"));
        self.run_blocking(move |folder| folder.create_bucket(&bucket)).await?;
        Ok(S3Response::new(CreateBucketOutput { location }))
    }

    async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        self.run_blocking(move |folder| folder.bucket(&request.input.bucket)).await?;
        let bucket_region = Some(REGION.to_owned());
        Ok(S3Response::new(HeadBucketOutput { bucket_region, ..HeadBucketOutput::default() }))
    }

    async fn get_bucket_location(
        &self,
        request: S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        self.run_blocking(move |folder| folder.bucket(&request.input.bucket)).await?;
        Ok(S3Response::new(GetBucketLocationOutput::default()))
    }

    async fn list_buckets(
        &self,
        _: S3Request<ListBucketsInput>,
    ) -> S3Result<S3Response<ListBucketsOutput>> {
        let found = self.run_blocking(Folder::buckets).await?;
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
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let input = request.input;
        let query = query(&input)?;
        let bucket = input.bucket.clone();
        let page = self.run_blocking(move |folder| folder.list(&bucket, &query)).await?;
        Ok(S3Response::new(listed(input, page)))
    }

    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let input = request.input;
        let found = self.read(input.bucket, input.key, input.if_match, input.if_none_match).await?;
        let (content, content_range) = match input.range {
            Some(range) => byte_range(&found.content, range.check(found.content.len() as u64)?),
            None => (found.content, None),
        };
        Ok(S3Response::new(GetObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            content_length: i64::try_from(content.len()).ok(),
            body: Some(StreamingBlob::from(Body::from(content))),
            content_range,
            content_type: Some(found.content_type.to_owned()),
            e_tag: Some(found.tag),
            last_modified: Some(found.modified),
            ..GetObjectOutput::default()
        }))
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let input = request.input;
        let found = self.read(input.bucket, input.key, input.if_match, input.if_none_match).await?;
        Ok(S3Response::new(HeadObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            content_length: i64::try_from(found.content.len()).ok(),
            content_type: Some(found.content_type.to_owned()),
            e_tag: Some(found.tag),
            last_modified: Some(found.modified),
            ..HeadObjectOutput::default()
        }))
    }

    async fn put_object(
        &self,
        request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let input = request.input;
        let existing = existing(input.if_match.as_ref(), input.if_none_match.as_ref())?;
        let content = match input.body {
            Some(body) => read_body(body).await?,
            None => Bytes::new(),
        };
        let tag = self
            .run_blocking(move |folder| folder.put(&input.bucket, &input.key, &content, existing))
            .await?;
        Ok(S3Response::new(PutObjectOutput {
            e_tag: Some(ETag::Strong(tag)),
            ..PutObjectOutput::default()
        }))
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let input = request.input;
        self.run_blocking(move |folder| folder.delete(&input.bucket, &input.key)).await?;
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let input = request.input;
        let quiet = input.delete.quiet.unwrap_or_default();
        let keys = input.delete.objects.into_iter().map(|object| object.key).collect();
        let mut output =
            self.run_blocking(move |folder| delete_each(folder, &input.bucket, keys)).await?;
        output.deleted = output.deleted.filter(|_| !quiet);
        Ok(S3Response::new(output))
    }
}

/// Deletes each key on its own; a failure does not affect the other keys.
fn delete_each(
    folder: &Folder,
    bucket: &str,
    keys: Vec<String>,
) -> Result<DeleteObjectsOutput, S3Error> {
    // A missing bucket fails the request as a whole, not each key.
    folder.bucket(bucket)?;
    let (mut deleted, mut errors) = (Vec::new(), Vec::new());
    for key in keys {
        match folder.delete(bucket, &key) {
            Ok(()) => deleted.push(DeletedObject { key: Some(key), ..DeletedObject::default() }),
            Err(error) => errors.push(s3s::dto::Error {
                code: Some(error.code().as_str().to_owned()),
                message: error.message().map(str::to_owned),
                key: Some(key),
                version_id: None,
            }),
        }
    }
    let errors = Some(errors).filter(|errors| !errors.is_empty());
    Ok(DeleteObjectsOutput { deleted: Some(deleted), errors, ..DeleteObjectsOutput::default() })
}

/// What a put does with an existing object, by its conditions.
fn existing(
    if_match: Option<&ETagCondition>,
    if_none_match: Option<&ETagCondition>,
) -> Result<Existing, S3Error> {
    match (if_match, if_none_match) {
        (None, None) => Ok(Existing::Replace),
        (None, Some(ETagCondition::Any)) => Ok(Existing::Keep),
        (Some(_), _) | (_, Some(ETagCondition::ETag(_))) => Err(s3_error!(
            NotImplemented,
            "of conditional puts the local S3 supports If-None-Match: * only"
        )),
    }
}

fn tag_matches(condition: &ETagCondition, tag: &ETag) -> bool {
    match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(wanted) => wanted.weak_cmp(tag),
    }
}

/// The content type by the extension of the key, because files have no content type.
fn content_type(key: &str) -> &'static str {
    match key.rsplit_once('.').map(|(_, extension)| extension) {
        Some("json") => "application/json",
        Some("yaml" | "yml") => "application/yaml",
        Some(_) | None => "application/octet-stream",
    }
}

/// A byte range of the content, and its `Content-Range` header.
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

fn query(input: &ListObjectsV2Input) -> Result<Query, S3Error> {
    let delimiter = input.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty());
    if delimiter.is_some_and(|delimiter| delimiter != "/") {
        return Err(s3_error!(NotImplemented, "the local S3 supports the delimiter / only"));
    }
    let limit = input.max_keys.unwrap_or(PAGE_LIMIT).min(PAGE_LIMIT);
    let limit =
        usize::try_from(limit).map_err(|_| s3_error!(InvalidArgument, "max-keys is negative"))?;
    // As in S3, a token takes the place of start-after.
    let after = input.continuation_token.as_ref().or(input.start_after.as_ref());
    Ok(Query {
        prefix: input.prefix.clone().unwrap_or_default(),
        after: after.cloned().unwrap_or_default(),
        by_folder: delimiter.is_some(),
        limit,
    })
}

fn listed(input: ListObjectsV2Input, page: Page) -> ListObjectsV2Output {
    let contents: Vec<Object> = page.objects.into_iter().map(object).collect();
    let folders = page.folders.into_iter().map(|folder| CommonPrefix { prefix: Some(folder) });
    let common_prefixes: Vec<CommonPrefix> = folders.collect();
    ListObjectsV2Output {
        name: Some(input.bucket),
        key_count: i32::try_from(contents.len() + common_prefixes.len()).ok(),
        max_keys: Some(input.max_keys.unwrap_or(PAGE_LIMIT).min(PAGE_LIMIT)),
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

fn object(listed: super::listing::ListedObject) -> Object {
    Object {
        key: Some(listed.key),
        size: i64::try_from(listed.size_bytes).ok(),
        last_modified: Some(Timestamp::from(listed.modified)),
        ..Object::default()
    }
}
