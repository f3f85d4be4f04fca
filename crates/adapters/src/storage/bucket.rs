//! Objects of an S3 bucket, for [`super::Storage`].
//!
//! Separate because it maps the protocol of S3 to the promises of storage: conditional headers,
//! error codes, metadata in headers. Errors are classified by S3's error code, because a proxy may
//! respond with any status.

use std::fmt;

use aws_sdk_s3::Client;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::get_object::GetObjectOutput;
use aws_sdk_s3::primitives::{ByteStream, DateTime, SdkBody};
use aws_sdk_s3::types::{Delete, Object, ObjectIdentifier, ObjectVersion};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::aws_error::{interrupted, sentence};

use super::{
    Entry, Fetched, Labels, ListRequest, Metadata, PAGE_MAX, Page, PutOutcome, Replaced,
    StorageError, StoredVersion, Version,
};

/// Maximum number of retries of a conditional write that conflicts with a concurrent one.
const RACES_MAX: u32 = 3;
/// Error code of S3 for a missing object.
const NO_SUCH_KEY: &str = "NoSuchKey";
/// Error code of S3 for a missing bucket.
const NO_SUCH_BUCKET: &str = "NoSuchBucket";
/// Maximum number of versions of an object that are listed.
const VERSIONS_MAX: i32 = 100;
/// The ASCII characters that are percent-encoded in metadata. Non-ASCII characters are always
/// encoded, because metadata is sent in headers.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

/// An S3 bucket.
#[derive(Debug, Clone)]
pub struct Bucket {
    pub(super) client: Client,
    pub(super) name: String,
}

impl Bucket {
    pub(super) async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StorageError> {
        let get = self.client.get_object().bucket(&self.name).key(valid(key)?);
        content(get.send().await).await
    }

    pub(super) async fn get_at_most(
        &self,
        max_bytes: u64,
        key: &str,
        known_etag: Option<&str>,
    ) -> Result<Fetched, StorageError> {
        let get = self.client.get_object().bucket(&self.name).key(valid(key)?);
        let response = match get.set_if_none_match(known_etag.map(str::to_owned)).send().await {
            // The client returns status 304 as an error.
            Err(error) if status(&error) == Some(304) => return Ok(Fetched::Unchanged),
            response => response,
        };
        // Read size, ETag and time first, because reading the content consumes the response.
        let found = response.as_ref().ok();
        check_size(found, max_bytes)?;
        let etag = found.and_then(GetObjectOutput::e_tag).unwrap_or_default().to_owned();
        let modified_ms = millis(found.and_then(GetObjectOutput::last_modified));
        let content = content(response).await?;
        Ok(content.map_or(Fetched::Missing, |bytes| Fetched::Changed { bytes, etag, modified_ms }))
    }

    pub(super) async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), StorageError> {
        let put = self.client.put_object().bucket(&self.name).key(valid(key)?);
        let put = put.set_content_type(content_type(key).map(str::to_owned));
        let put = put.body(ByteStream::from(bytes)).send().await;
        put.map(drop).map_err(|error| failure(&error))
    }

    /// Writes an object with `If-None-Match: *`, so that the first write of a key wins. S3 may
    /// respond 409 to one of two concurrent writes; repeating that write shows which one won.
    /// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html>
    pub(super) async fn put_if_absent(
        &self,
        key: &str,
        bytes: Vec<u8>,
        tag: Option<&str>,
    ) -> Result<PutOutcome, StorageError> {
        // One buffer for all tries: cloning it copies no bytes.
        let body = SdkBody::from(bytes);
        let mut races = 0;
        loop {
            let put = self.client.put_object().bucket(&self.name).key(valid(key)?);
            let put = put.set_content_type(content_type(key).map(str::to_owned));
            let put = put.set_tagging(tag.map(str::to_owned));
            let body = body.try_clone().expect("a body in memory can be cloned");
            let Err(error) = put.if_none_match("*").body(ByteStream::new(body)).send().await else {
                return Ok(PutOutcome::Written);
            };
            match status(&error) {
                Some(412) => return Ok(PutOutcome::AlreadyExists),
                Some(409) if races < RACES_MAX => races += 1,
                _ => return Err(failure(&error)),
            }
        }
    }

    /// Replaces an object with `If-Match`. S3 responds 404 if the object no longer exists; a
    /// missing bucket has a different error code. After a 409, only a read shows which write won.
    pub(super) async fn replace(
        &self,
        key: &str,
        bytes: Vec<u8>,
        known_etag: Option<&str>,
        labels: &Labels<'_>,
    ) -> Result<Replaced, StorageError> {
        let put = self.client.put_object().bucket(&self.name).key(valid(key)?);
        let put = put.set_content_type(content_type(key).map(str::to_owned));
        let put = put.set_tagging(labels.tag.map(str::to_owned));
        let put = labels.metadata.iter().fold(put, |put, (name, value)| {
            put.metadata(name, utf8_percent_encode(value, ENCODED).to_string())
        });
        let put = match known_etag {
            // S3 might ignore an empty header, and write unconditionally.
            Some("") => return Err(without_etag()),
            Some(etag) => put.if_match(etag),
            None => put.if_none_match("*"),
        };
        match put.body(ByteStream::from(bytes)).send().await {
            Ok(put) => match put.e_tag {
                Some(etag) => Ok(Replaced::Written { etag }),
                None => Err(without_etag()),
            },
            Err(error) if matches!(status(&error), Some(409 | 412)) => Ok(Replaced::Changed),
            Err(error) if error.code() == Some(NO_SUCH_KEY) => Ok(Replaced::Changed),
            Err(error) => Err(failure(&error)),
        }
    }

    pub(super) async fn versions(&self, key: &str) -> Result<Vec<Version>, StorageError> {
        let list = self.client.list_object_versions().bucket(&self.name).prefix(valid(key)?);
        let list = list.max_keys(VERSIONS_MAX).send().await.map_err(|error| failure(&error))?;
        let version = |version: &ObjectVersion| Version {
            // `null` is S3's id of objects that were written without versioning.
            id: version.version_id().unwrap_or("null").to_owned(),
            modified_ms: millis(version.last_modified()),
            description: version.last_modified().map(ToString::to_string).unwrap_or_default(),
            // After a deletion the newest version is a delete marker, which this list does not
            // contain. Then no listed version is current.
            is_current: version.is_latest() == Some(true),
        };
        // S3 lists the versions of a key from the newest to the oldest, before those of longer keys
        // with the same prefix.
        let of_key = list.versions().iter().filter(|version| version.key() == Some(key));
        let versions: Vec<Version> = of_key.map(version).collect();
        if versions.is_empty() && list.is_truncated() == Some(true) {
            // The page contains only delete markers.
            return Err(StorageError::Unavailable(format!(
                "the newest versions of {key} are all delete markers"
            )));
        }
        Ok(versions)
    }

    pub(super) async fn get_version(
        &self,
        max_bytes: u64,
        key: &str,
        id: &str,
    ) -> Result<Option<StoredVersion>, StorageError> {
        let get = self.client.get_object().bucket(&self.name).key(valid(key)?).version_id(id);
        let response = get.send().await;
        check_size(response.as_ref().ok(), max_bytes)?;
        let metadata = response.as_ref().map(metadata).unwrap_or_default();
        let content = content(response).await?;
        Ok(content.map(|bytes| StoredVersion { bytes, metadata }))
    }

    pub(super) async fn list_page(&self, request: &ListRequest) -> Result<Page, StorageError> {
        let list = self.client.list_objects_v2().bucket(&self.name).prefix(&request.prefix);
        let list = list.set_delimiter(request.by_folder.then(|| "/".to_owned()));
        let list = list.set_max_keys(request.max_keys.map(i32::from));
        let list = list.set_start_after(request.start_after.clone());
        let list = list.set_continuation_token(request.page_token.clone());
        let page = list.send().await.map_err(|error| failure(&error))?;
        let folders = page.common_prefixes().iter().filter_map(|folder| folder.prefix());
        Ok(Page {
            entries: page.contents().iter().map(entry).collect(),
            folders: folders.map(str::to_owned).collect(),
            next: page.next_continuation_token().map(str::to_owned),
        })
    }

    /// Deletes objects. A request deletes at most [`PAGE_MAX`] objects, which is the limit of S3.
    /// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html>
    pub(super) async fn delete(&self, keys: &[String]) -> Result<(), StorageError> {
        for keys in keys.chunks(PAGE_MAX) {
            // In quiet mode the response lists failures only.
            let mut delete = Delete::builder().quiet(true);
            for key in keys {
                let object = ObjectIdentifier::builder().key(valid(key)?).build();
                delete = delete.objects(object.expect("the key is set"));
            }
            let delete = delete.build().expect("the objects are set");
            let deleted = self.client.delete_objects().bucket(&self.name).delete(delete);
            let deleted = deleted.send().await.map_err(|error| failure(&error))?;
            // The response is 200 even if some keys were not removed.
            if let [first, ..] = deleted.errors() {
                return Err(StorageError::Unavailable(format!(
                    "{} objects were not removed; the first error is for {}: {}",
                    deleted.errors().len(),
                    first.key().unwrap_or_default(),
                    first.message().unwrap_or_default()
                )));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}", self.name)
    }
}

/// Returns the content type of a JSON object, for which S3 would assume `binary/octet-stream`.
/// Returns `None` for other objects, such as ledgers: NDJSON has no registered type.
fn content_type(key: &str) -> Option<&'static str> {
    key.ends_with(".json").then_some("application/json")
}

/// Checks the size of an object before reading its content.
fn check_size(found: Option<&GetObjectOutput>, max_bytes: u64) -> Result<(), StorageError> {
    let bytes = found.and_then(GetObjectOutput::content_length).unwrap_or_default();
    match u64::try_from(bytes) {
        Ok(bytes) if bytes > max_bytes => Err(StorageError::TooLarge { bytes, max_bytes }),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn metadata(object: &GetObjectOutput) -> Metadata {
    let decoded = |value: &str| percent_decode_str(value).decode_utf8_lossy().into_owned();
    let all = object.metadata().into_iter().flatten();
    all.map(|(name, value)| (name.to_ascii_lowercase(), decoded(value))).collect()
}

/// Checks a key. Any key that is not empty is valid: keys of a bucket are flat, so `..` has no
/// meaning.
fn valid(key: &str) -> Result<&str, StorageError> {
    if key.is_empty() { Err(StorageError::InvalidKey(key.to_owned())) } else { Ok(key) }
}

fn entry(object: &Object) -> Entry {
    Entry {
        key: object.key().unwrap_or_default().to_owned(),
        bytes: object.size().and_then(|size| size.try_into().ok()).unwrap_or(0),
        modified_ms: millis(object.last_modified()),
        etag: object.e_tag().unwrap_or_default().to_owned(),
    }
}

fn millis(at: Option<&DateTime>) -> u64 {
    at.and_then(|at| at.to_millis().ok()?.try_into().ok()).unwrap_or(0)
}

/// Reads the content in a response; returns `None` if the object or version does not exist.
async fn content<E: ProvideErrorMetadata + std::error::Error + 'static>(
    response: Result<GetObjectOutput, SdkError<E>>,
) -> Result<Option<Vec<u8>>, StorageError> {
    match response {
        Ok(object) => match object.body.collect().await {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(error) => Err(StorageError::Unavailable(interrupted(&error))),
        },
        // Compare the code, not the status: a missing bucket, or a 404 from a server other than S3,
        // must not count as a missing object.
        Err(error) if matches!(error.code(), Some(NO_SUCH_KEY | "NoSuchVersion")) => Ok(None),
        Err(error) => Err(failure(&error)),
    }
}

/// Classifies an error by its S3 code. If S3 did not respond, describes the cause.
fn failure<E: ProvideErrorMetadata + std::error::Error + 'static>(
    error: &SdkError<E>,
) -> StorageError {
    let text = sentence(error);
    match error.code() {
        Some(NO_SUCH_BUCKET) => StorageError::NoSuchBucket(text),
        // `PermanentRedirect`: the bucket is in a different region from the client's.
        Some("AccessDenied" | "AllAccessDisabled" | "PermanentRedirect" | "InvalidBucketName") => {
            StorageError::Refused(text)
        }
        _ => StorageError::Unavailable(text),
    }
}

fn without_etag() -> StorageError {
    StorageError::Unavailable("the response of S3 has no ETag".to_owned())
}

fn status<E>(error: &SdkError<E>) -> Option<u16> {
    error.raw_response().map(|response| response.status().as_u16())
}
