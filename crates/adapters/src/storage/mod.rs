//! Objects in an S3 bucket or files in a folder, behind one type.
//!
//! Separate because subscriptions, dead letters and public keys are all read and written this way,
//! on AWS and on a developer's machine. Keys are complete: they include a container's prefix.
//!
//! Promises, which one contract test checks for both kinds:
//!
//! - An object is read whole or not at all, even while it is being replaced.
//! - [`Storage::put_if_absent`]: the first write of a key wins, and the result shows whether this
//!   write was the first.
//! - [`Storage::replace`]: if several writers replace the same state of an object, at most one
//!   succeeds.
//! - A listing is in the order of the keys' bytes, at most [`PAGE_MAX`] entries per page.
//! - A missing object is not an error, and no error means "missing".
//! - No key leads out of the bucket or folder.
//!
//! If two unconditional writes use one key, the later wins. Unlike a bucket, a folder cannot
//! contain both `a` and `a/b`, and accepts no key with an empty segment.

mod bucket;
mod folder;
mod listing;
mod lock;
mod object;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use aws_sdk_s3::Client;
pub use bucket::Bucket;
pub use folder::Folder;
pub use object::StoredObject;
use thiserror::Error;

/// Maximum number of entries on one page.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>
pub const PAGE_MAX: usize = 1_000;
/// Maximum size of the metadata of an object, names and values together.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html>
pub const METADATA_MAX_BYTES: usize = 2_048;

/// A storage of objects: a bucket or a folder.
#[derive(Debug, Clone)]
pub enum Storage {
    /// Objects of an S3 bucket.
    Bucket(Bucket),
    /// Files of a folder on this machine.
    Folder(Folder),
}

/// The reason why a storage operation failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StorageError {
    /// No object of this storage can have this key.
    #[error("{0:?} is not a valid key")]
    InvalidKey(String),
    /// The bucket does not exist.
    #[error("{0}")]
    NoSuchBucket(String),
    /// The request was refused, and repeating the request does not help. Example: access is denied.
    #[error("{0}")]
    Refused(String),
    /// The object exceeds the caller's size limit.
    #[error("the object has {bytes} bytes; the limit is {max_bytes} bytes")]
    TooLarge {
        /// The size of the object in bytes.
        bytes: u64,
        /// The caller's limit in bytes.
        max_bytes: u64,
    },
    /// The storage was unreachable or failed. Repeating the request may help.
    #[error("{0}")]
    Unavailable(String),
}

/// The result of [`Storage::put_if_absent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// The object was written.
    Written,
    /// An object with this key already exists, and is unchanged.
    AlreadyExists,
}

/// The result of [`Storage::replace`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replaced {
    /// The object was written.
    Written {
        /// The ETag of the written object.
        etag: String,
    },
    /// The object was written or removed after the caller read it, perhaps by this very call: see
    /// [`Storage::replace`].
    Changed,
}

/// The result of a read that compares the ETag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// The object does not exist.
    Missing,
    /// The object still has the known ETag.
    Unchanged,
    /// The object is new, or has changed.
    Changed {
        /// The content of the object.
        bytes: Vec<u8>,
        /// The ETag of the object; for a file, its modification time and length.
        etag: String,
        /// Time at which the object was last written.
        modified_ms: u64,
    },
}

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The complete key, including the prefix of a container.
    pub key: String,
    /// The size of the object in bytes.
    pub bytes: u64,
    /// Time at which the object was last written.
    pub modified_ms: u64,
    /// The ETag that reading the object returns.
    pub etag: String,
}

/// Parameters of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListRequest {
    /// Lists only keys with this prefix.
    pub prefix: String,
    /// If true, lists each folder once instead of the keys in it. The name of a folder ends at the
    /// first slash after the prefix.
    pub by_folder: bool,
    /// Lists only keys after this one, in byte order.
    pub start_after: Option<String>,
    /// [`Page::next`] of the previous page; `None` for the first page.
    pub page_token: Option<String>,
    /// Maximum number of keys and folders on the page; never more than [`PAGE_MAX`].
    pub max_keys: Option<u16>,
}

/// One page of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The objects on the page.
    pub entries: Vec<Entry>,
    /// The folders on the page, each with its complete prefix and a slash at its end.
    pub folders: Vec<String>,
    /// The token of the next page, if there is one.
    pub next: Option<String>,
}

/// A version of an object, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The id with which [`Storage::get_version`] reads the version.
    pub id: String,
    /// Time at which the version was written.
    pub modified_ms: u64,
    /// A description of the version for people: the time of writing, or the path of a file.
    pub description: String,
    /// True if reading the object returns this version.
    pub is_current: bool,
}

/// Metadata of an object, by lower-case name. In a bucket it is user metadata, `x-amz-meta-NAME`.
pub type Metadata = BTreeMap<String, String>;

/// The content of a version of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredVersion {
    /// The content of the object in this version.
    pub bytes: Vec<u8>,
    /// The metadata of the version; empty for a folder.
    pub metadata: Metadata,
}

/// Metadata and a tag to store with an object in a bucket. A folder stores neither.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels<'l> {
    /// Metadata values by name. Values may contain any characters.
    pub metadata: Metadata,
    /// A tag `name=value`, by which lifecycle rules select objects.
    pub tag: Option<&'l str>,
}

/// Calls the same method on a bucket or a folder.
macro_rules! of_either {
    ($storage:expr, $backend:ident => $result:expr) => {
        match $storage {
            Storage::Bucket($backend) => $result,
            Storage::Folder($backend) => $result,
        }
    };
}

impl Storage {
    /// Returns the storage of the bucket with this name.
    #[must_use]
    pub fn bucket(client: Client, name: impl Into<String>) -> Self {
        Self::Bucket(Bucket { client, name: name.into() })
    }

    /// Returns the storage of the files in this folder.
    #[must_use]
    pub fn folder(root: impl AsRef<Path>) -> Self {
        Self::folder_with_names(root, |_| true)
    }

    /// Returns the storage of the files in this folder. Only names for which `is_name` returns true
    /// can be part of a key.
    #[must_use]
    pub fn folder_with_names(root: impl AsRef<Path>, is_name: fn(&str) -> bool) -> Self {
        Self::Folder(Folder { root: root.as_ref().into(), is_name })
    }

    /// Returns the content of an object; `None` if the object does not exist.
    ///
    /// # Errors
    /// [`StorageError`] if the object could not be read.
    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StorageError> {
        of_either!(self, backend => backend.get(key).await)
    }

    /// Returns the content of an object, unless it still has the ETag `known_etag`.
    ///
    /// # Errors
    /// [`StorageError`] if the object could not be read.
    pub async fn get_if_changed(
        &self,
        key: &str,
        known_etag: Option<&str>,
    ) -> Result<Fetched, StorageError> {
        self.get_at_most(u64::MAX, key, known_etag).await
    }

    /// Returns the content of an object, unless the object still has the ETag `known_etag`. Fails
    /// with [`StorageError::TooLarge`] if the object exceeds `max_bytes`.
    ///
    /// # Errors
    /// [`StorageError`] if the object could not be read.
    pub async fn get_at_most(
        &self,
        max_bytes: u64,
        key: &str,
        known_etag: Option<&str>,
    ) -> Result<Fetched, StorageError> {
        of_either!(self, backend => backend.get_at_most(max_bytes, key, known_etag).await)
    }

    /// Writes an object, and replaces an existing one. A bucket stores a key that ends in `.json`
    /// as `application/json`, and any other key without a content type.
    ///
    /// # Errors
    /// [`StorageError`] if the object may not have been written.
    pub async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), StorageError> {
        of_either!(self, backend => backend.put(key, bytes).await)
    }

    /// Writes an object unless the object already exists. Sets the same content type as
    /// [`Self::put`]. A bucket adds `tag` to the object; a folder ignores `tag`.
    ///
    /// # Errors
    /// [`StorageError`] if it is unknown whether the object exists now.
    pub async fn put_if_absent(
        &self,
        key: &str,
        bytes: Vec<u8>,
        tag: Option<&str>,
    ) -> Result<PutOutcome, StorageError> {
        of_either!(self, backend => backend.put_if_absent(key, bytes, tag).await)
    }

    /// Writes an object only if it has not changed. `known_etag` is the ETag that the caller read,
    /// or `None` if there was no object. Sets the same content type as [`Self::put`].
    ///
    /// [`Replaced::Changed`] may be the result of this call's own write: the client of a bucket
    /// repeats a put whose response was lost, and the second put finds the object of the first.
    /// Therefore the caller must read again, and recognise its own write by unique content.
    ///
    /// A bucket's ETag is usually a digest, so writing earlier content again restores its ETag. A
    /// folder's ETag never recurs: if the clock has not advanced, the new file gets a later
    /// modification time than all earlier files. In a folder, puts and deletes through this type
    /// wait for a replacement in progress, except while the first replacement creates the folder's
    /// lock. Editors do not wait.
    ///
    /// # Errors
    /// [`StorageError`] if it is unknown whether the object was written, or with which ETag.
    pub async fn replace(
        &self,
        key: &str,
        bytes: Vec<u8>,
        known_etag: Option<&str>,
    ) -> Result<Replaced, StorageError> {
        self.replace_labelled(key, bytes, known_etag, &Labels::default()).await
    }

    /// Replaces an object as [`Self::replace`] does, and sets its labels. The next write removes
    /// the labels. After percent-encoding, all metadata together must not exceed
    /// [`METADATA_MAX_BYTES`] bytes.
    ///
    /// # Errors
    /// Fails as [`Self::replace`] does. A tag also requires the permission `s3:PutObjectTagging` on
    /// a bucket.
    pub async fn replace_labelled(
        &self,
        key: &str,
        bytes: Vec<u8>,
        known_etag: Option<&str>,
        labels: &Labels<'_>,
    ) -> Result<Replaced, StorageError> {
        match self {
            Self::Bucket(bucket) => bucket.replace(key, bytes, known_etag, labels).await,
            Self::Folder(folder) => folder.replace(key, bytes, known_etag).await,
        }
    }

    /// Returns at most a hundred versions of an object, newest first. A folder has only the current
    /// version.
    ///
    /// # Errors
    /// [`StorageError`] if the versions cannot be listed.
    pub async fn versions(&self, key: &str) -> Result<Vec<Version>, StorageError> {
        of_either!(self, backend => backend.versions(key).await)
    }

    /// Returns the content of a version; `None` if the version does not exist. Fails with
    /// [`StorageError::TooLarge`] if the content exceeds `max_bytes`.
    ///
    /// # Errors
    /// [`StorageError`] if the version could not be read.
    pub async fn get_version(
        &self,
        max_bytes: u64,
        key: &str,
        id: &str,
    ) -> Result<Option<StoredVersion>, StorageError> {
        of_either!(self, backend => backend.get_version(max_bytes, key, id).await)
    }

    /// Returns one page of a listing.
    ///
    /// # Errors
    /// [`StorageError`] if the objects cannot be listed.
    pub async fn list_page(&self, request: &ListRequest) -> Result<Page, StorageError> {
        of_either!(self, backend => backend.list_page(request).await)
    }

    /// Deletes objects. A missing object counts as deleted.
    ///
    /// # Errors
    /// [`StorageError`] if some objects may still exist.
    pub async fn delete(&self, keys: &[String]) -> Result<(), StorageError> {
        of_either!(self, backend => backend.delete(keys).await)
    }
}

/// Formats the storage as `s3://bucket`, or as the path of the folder.
impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        of_either!(self, backend => backend.fmt(f))
    }
}
