//! Buckets as folders, with the errors of S3.
//!
//! Objects are files of `adapters::storage`, which keeps keys inside their folder and lists them in
//! S3's order. If several writers concurrently put the same absent key, exactly one succeeds, even
//! across processes. If several writers replace the same content, one succeeds. A concurrent write
//! by another process is a conflict, as in S3. S3 itself accepts more keys than a file system.

use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io, iter};

use adapters::storage::{Fetched, ListRequest, Page, PutOutcome, Replaced, Storage, StorageError};
use anyhow::Context as _;
use bytes::Bytes;
use rustack_s3_model::error::{S3Error, S3ErrorCode};
use tokio::sync::RwLock;

/// Maximum length of a file name, in bytes, on common file systems.
const SEGMENT_LIMIT_BYTES: usize = 255;

/// The folder that contains the buckets.
#[derive(Debug)]
pub(in super::super) struct Buckets {
    root: PathBuf,
    /// Held exclusively while an object is read and replaced. All other writes hold the lock in
    /// shared mode.
    writes: RwLock<()>,
}

#[derive(Debug)]
pub(super) struct ReadObject {
    pub(super) content: Bytes,
    /// Time at which the object was last written.
    pub(super) modified_ms: u64,
    /// The ETag of the file, which differs from the ETag that S3 would compute.
    file_etag: String,
}

impl Buckets {
    /// Creates the root folder, and the given buckets in it.
    pub(in super::super) fn create(root: &Path, buckets: &[String]) -> anyhow::Result<Self> {
        let folders = buckets.iter().map(|bucket| root.join(bucket));
        for folder in iter::once(root.to_path_buf()).chain(folders) {
            fs::create_dir_all(&folder)
                .with_context(|| format!("cannot create the bucket folder {}", folder.display()))?;
        }
        Ok(Self { root: root.to_path_buf(), writes: RwLock::new(()) })
    }

    /// Returns the buckets sorted by name, with their modification times.
    pub(super) fn list(&self) -> io::Result<Vec<(String, SystemTime)>> {
        let mut buckets = Vec::new();
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if let Ok(name) = entry.file_name().into_string()
                && metadata.is_dir()
                && !name.starts_with('.')
            {
                buckets.push((name, metadata.modified()?));
            }
        }
        buckets.sort();
        Ok(buckets)
    }

    /// Creates a bucket. Succeeds without a change if the bucket exists, because every local bucket
    /// has the same owner.
    pub(super) fn create_bucket(&self, bucket: &str) -> io::Result<()> {
        fs::create_dir_all(self.root.join(bucket))
    }

    /// Returns the objects of an existing bucket.
    pub(super) fn bucket(&self, bucket: &str) -> Result<Storage, S3Error> {
        let folder = self.root.join(bucket);
        let is_hidden = bucket.is_empty() || bucket.starts_with('.');
        if is_hidden || bucket.contains(std::path::is_separator) || !folder.is_dir() {
            let message = format!("there is no bucket {bucket:?}");
            return Err(S3Error::with_message(S3ErrorCode::NoSuchBucket, message));
        }
        Ok(Storage::folder_with_names(folder, is_name))
    }

    /// Lists one page of the keys of a bucket.
    pub(super) async fn list_page(
        &self,
        bucket: &str,
        request: &ListRequest,
    ) -> Result<Page, S3Error> {
        match self.bucket(bucket)?.list_page(request).await {
            // An invalid key (such as `../`) cannot be the prefix of any key.
            Err(StorageError::InvalidKey(_)) => Ok(Page::default()),
            listed => listed.map_err(failure),
        }
    }

    pub(super) async fn get(&self, bucket: &str, key: &str) -> Result<ReadObject, S3Error> {
        match self.bucket(bucket)?.get_if_changed(key, None).await {
            Ok(Fetched::Changed { bytes, etag, modified_ms }) => {
                Ok(ReadObject { content: bytes.into(), modified_ms, file_etag: etag })
            }
            Ok(Fetched::Missing | Fetched::Unchanged) => {
                let message = format!("there is no object {key:?} in {bucket:?}");
                Err(S3Error::with_message(S3ErrorCode::NoSuchKey, message))
            }
            Err(error) => Err(self.key_error(bucket, key, error)),
        }
    }

    /// Writes an object. An existing object is replaced, or is an error if `only_if_absent` is
    /// true.
    pub(super) async fn put(
        &self,
        bucket: &str,
        key: &str,
        content: Vec<u8>,
        only_if_absent: bool,
    ) -> Result<(), S3Error> {
        let objects = self.bucket(bucket)?;
        let _shared = self.writes.read().await;
        let put = match only_if_absent {
            true => objects.put_if_absent(key, content, None).await,
            false => objects.put(key, content).await.map(|()| PutOutcome::Written),
        };
        match put {
            Ok(PutOutcome::Written) => Ok(()),
            Ok(PutOutcome::AlreadyExists) => {
                let message = format!("the object {key:?} already exists");
                Err(S3Error::with_message(S3ErrorCode::PreconditionFailed, message))
            }
            Err(error) => Err(self.key_error(bucket, key, error)),
        }
    }

    /// Replaces an object if its content has not changed since the writer read it.
    pub(super) async fn replace(
        &self,
        bucket: &str,
        key: &str,
        content: Vec<u8>,
        is_known: impl FnOnce(&[u8]) -> bool,
    ) -> Result<(), S3Error> {
        let objects = self.bucket(bucket)?;
        let _alone = self.writes.write().await;
        let found = self.get(bucket, key).await?;
        if !is_known(&found.content) {
            let message = format!("the ETag of the object {key:?} does not match If-Match");
            return Err(S3Error::with_message(S3ErrorCode::PreconditionFailed, message));
        }
        match objects.replace(key, content, Some(&found.file_etag)).await {
            Ok(Replaced::Written { .. }) => Ok(()),
            Ok(Replaced::Changed) => Err(S3Error::with_message(
                S3ErrorCode::ConditionalRequestConflict,
                format!("another process wrote or deleted {key:?} at the same time"),
            )),
            Err(error) => Err(self.key_error(bucket, key, error)),
        }
    }

    /// Deletes an object. Deleting a missing object succeeds, as in S3.
    pub(super) async fn delete(&self, bucket: &str, key: &str) -> Result<(), S3Error> {
        let objects = self.bucket(bucket)?;
        let _shared = self.writes.read().await;
        let deleted = objects.delete(&[key.to_owned()]).await;
        deleted.map_err(|error| self.key_error(bucket, key, error))
    }

    /// Converts an error of reading, writing or deleting an object to an S3 error.
    fn key_error(&self, bucket: &str, key: &str, error: StorageError) -> S3Error {
        if matches!(error, StorageError::InvalidKey(_)) {
            let mut segments = key.split('/');
            let invalid = segments.find(|part| matches!(*part, "" | "." | "..") || !is_name(part));
            let bytes = invalid.map_or(0, str::len);
            if bytes > SEGMENT_LIMIT_BYTES {
                let message = format!(
                    "each segment of a key is a file name in the local S3; the limit is {SEGMENT_LIMIT_BYTES} bytes, but this \
                     segment has {bytes}"
                );
                return S3Error::with_message(S3ErrorCode::KeyTooLongError, message);
            }
            return S3Error::invalid_argument(format!(
                "the key {key:?} is not valid in the local S3: a segment cannot be empty, '.' or '..', or contain a \
                 control character"
            ));
        }
        let path = self.root.join(bucket).join(key);
        if path.is_dir() || path.ancestors().skip(1).any(Path::is_file) {
            return S3Error::invalid_argument(format!(
                "the key {key:?} conflicts with another key in the local S3: a file cannot also be a folder"
            ));
        }
        failure(error)
    }
}

/// True if the name is short enough for a file and has no control characters. Most of them are
/// invalid in the XML of a listing.
fn is_name(name: &str) -> bool {
    name.len() <= SEGMENT_LIMIT_BYTES && !name.contains(char::is_control)
}

pub(super) fn failure(error: impl std::error::Error) -> S3Error {
    S3Error::internal_error(format!("the folder of the local S3 cannot be used: {error}"))
}
