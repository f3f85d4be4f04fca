//! One object of a storage, by its key: what `s3://bucket/key` or a path names.

use std::fmt;
use std::path::Path;

use aws_sdk_s3::Client;

use super::{ContentType, Fetched, Storage, StorageError, Version};

/// One object of a storage.
#[derive(Debug, Clone)]
pub struct StoredObject {
    storage: Storage,
    key: String,
}

impl StoredObject {
    /// An object of a bucket.
    #[must_use]
    pub fn in_bucket(client: Client, bucket: &str, key: &str) -> Self {
        Self { storage: Storage::bucket(client, bucket), key: key.to_owned() }
    }

    /// A file. A path that names none, such as `/`, has no valid key: every operation fails.
    #[must_use]
    pub fn file(path: &Path) -> Self {
        let key = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        Self {
            storage: Storage::folder(path.parent().unwrap_or(Path::new("/"))),
            key: key.to_owned(),
        }
    }

    /// The bucket or folder that holds it.
    #[must_use]
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Its content; see [`Storage::get`].
    ///
    /// # Errors
    /// As [`Storage::get`].
    pub async fn get(&self) -> Result<Option<Vec<u8>>, StorageError> {
        self.storage.get(&self.key).await
    }

    /// Its content, unless it still has this ETag.
    ///
    /// # Errors
    /// As [`Storage::get_if_changed`].
    pub async fn get_if_changed(&self, known_etag: Option<&str>) -> Result<Fetched, StorageError> {
        self.storage.get_if_changed(&self.key, known_etag).await
    }

    /// Replaces its content and keeps what was there as an earlier version.
    ///
    /// # Errors
    /// As [`Storage::put_version`].
    pub async fn put_version(
        &self,
        bytes: Vec<u8>,
        content_type: ContentType,
    ) -> Result<(), StorageError> {
        self.storage.put_version(&self.key, bytes, content_type).await
    }

    /// Its versions, newest first.
    ///
    /// # Errors
    /// As [`Storage::versions`].
    pub async fn versions(&self) -> Result<Vec<Version>, StorageError> {
        self.storage.versions(&self.key).await
    }

    /// The content of a version.
    ///
    /// # Errors
    /// As [`Storage::get_version`].
    pub async fn get_version(&self, id: &str) -> Result<Option<Vec<u8>>, StorageError> {
        self.storage.get_version(&self.key, id).await
    }
}

/// `s3://bucket/key`, or the file's path.
impl fmt::Display for StoredObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.storage {
            Storage::Bucket(bucket) => write!(f, "{bucket}/{}", self.key),
            Storage::Folder(folder) => folder.root.join(&self.key).display().fmt(f),
        }
    }
}
