//! Objects in an S3 bucket or files in a folder, behind one type.
//!
//! Separate because consents, subscription files and dead letters are all read and written this
//! way, on AWS and on a developer's machine. Keys are whole keys: a container's prefix is part of
//! them.
//!
//! Promises, checked for both kinds by one contract test:
//!
//! - An object is read whole or not at all, also while it is being replaced.
//! - [`Storage::put_if_absent`]: the first write of a key wins, and the result says which it was.
//! - [`Storage::replace`]: of several that replace one state of an object, at most one succeeds.
//! - A listing is in the order of the keys' bytes, at most [`PAGE_MAX`] entries per page.
//! - A missing object is not an error, and no error means "missing".
//! - No key leads out of the bucket or folder.
//!
//! Of two unconditional writes of one key, the later wins. A folder cannot hold both `a` and `a/b`,
//! and takes no key with an empty segment; a bucket can.

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

/// The most entries of one page.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>
pub const PAGE_MAX: usize = 1_000;
/// The most bytes of the names and values of an object's metadata.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html>
pub const METADATA_MAX_BYTES: usize = 2_048;

/// A bucket or a folder.
#[derive(Debug, Clone)]
pub enum Storage {
    /// Objects of an S3 bucket.
    Bucket(Bucket),
    /// Files below a folder of this machine.
    Folder(Folder),
}

/// Why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StorageError {
    /// No object can have this key here.
    #[error("{0:?} is not a valid key")]
    InvalidKey(String),
    /// The bucket does not exist.
    #[error("{0}")]
    NoSuchBucket(String),
    /// The request was refused, and repeating it will not help: access is denied, say.
    #[error("{0}")]
    Refused(String),
    /// It is larger than the caller reads.
    #[error("it has {bytes} bytes, and only {max_bytes} are expected at most")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// What the caller reads.
        max_bytes: u64,
    },
    /// Storage could not be reached or could not do its work; repeating the request may help.
    #[error("{0}")]
    Unavailable(String),
}

/// What became of a conditional write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// The object was written.
    Written,
    /// There was an object of this key already; it is unchanged.
    AlreadyExists,
}

/// What became of a conditional replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replaced {
    /// The object was written.
    Written {
        /// Its ETag now.
        etag: String,
    },
    /// Somebody wrote or removed the object in the meantime, perhaps this very call: see
    /// [`Storage::replace`].
    Changed,
}

/// What a conditional read found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// There is no such object.
    Missing,
    /// The object still has the ETag that the caller knows.
    Unchanged,
    /// The object is new, or has changed.
    Changed {
        /// Its content.
        bytes: Vec<u8>,
        /// Its ETag; of a file, its modification time and length.
        etag: String,
        /// When it was written.
        modified_ms: u64,
    },
}

/// An object of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: String,
    /// Its size.
    pub bytes: u64,
    /// When it was written.
    pub modified_ms: u64,
    /// Its ETag, as a read of it has it.
    pub etag: String,
}

/// What to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListRequest {
    /// Only keys that begin with this.
    pub prefix: String,
    /// Whether keys with a further slash after the prefix are listed once, as their folder.
    pub by_folder: bool,
    /// Only keys after this one, in the order of their bytes.
    pub start_after: Option<String>,
    /// [`Page::next`] of the page before.
    pub page_token: Option<String>,
    /// At most this many keys and folders; more than [`PAGE_MAX`] are never listed.
    pub max_keys: Option<u16>,
}

/// One page of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The objects.
    pub entries: Vec<Entry>,
    /// The folders, each with its whole prefix and a slash at its end.
    pub folders: Vec<String>,
    /// The token of the next page, if there is one.
    pub next: Option<String>,
}

/// A version of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Its id.
    pub id: String,
    /// When it was written.
    pub modified_ms: u64,
    /// For people: when it was written; of a file, its path.
    pub description: String,
    /// Whether reading the object yields this version.
    pub is_current: bool,
}

/// Notes beside the content of an object, by lower-case name. In a bucket they are its user metadata, `x-amz-meta-NAME`.
pub type Metadata = BTreeMap<String, String>;

/// A version that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredVersion {
    /// Its content.
    pub bytes: Vec<u8>,
    /// Its metadata; none in a folder.
    pub metadata: Metadata,
}

/// Metadata that a bucket stores beside the content of an object. A folder stores none of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels<'l> {
    /// Values by name, which may have any characters.
    pub metadata: Metadata,
    /// `name=value`: lifecycle rules select objects by it.
    pub tag: Option<&'l str>,
}

/// The same for a bucket and for a folder.
macro_rules! of_either {
    ($storage:expr, $it:ident => $result:expr) => {
        match $storage {
            Storage::Bucket($it) => $result,
            Storage::Folder($it) => $result,
        }
    };
}

impl Storage {
    /// The bucket of this name, reached through this client.
    #[must_use]
    pub fn bucket(client: Client, name: impl Into<String>) -> Self {
        Self::Bucket(Bucket { client, name: name.into() })
    }

    /// The files below this folder.
    #[must_use]
    pub fn folder(root: impl AsRef<Path>) -> Self {
        Self::folder_with_names(root, |_| true)
    }

    /// The same, but only of files and folders with names that follow a rule.
    #[must_use]
    pub fn folder_with_names(root: impl AsRef<Path>, is_name: fn(&str) -> bool) -> Self {
        Self::Folder(Folder { root: root.as_ref().into(), is_name })
    }

    /// The content of an object; `None` when there is none.
    ///
    /// # Errors
    /// [`StorageError`] when it could not be read.
    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StorageError> {
        of_either!(self, it => it.get(key).await)
    }

    /// The content of an object, unless it still has this ETag.
    ///
    /// # Errors
    /// [`StorageError`] when it could not be read.
    pub async fn get_if_changed(
        &self,
        key: &str,
        known_etag: Option<&str>,
    ) -> Result<Fetched, StorageError> {
        self.get_at_most(u64::MAX, key, known_etag).await
    }

    /// The same of an object that has at most so many bytes: a larger one is not read, but an error.
    ///
    /// # Errors
    /// [`StorageError`] when it could not be read.
    pub async fn get_at_most(
        &self,
        max_bytes: u64,
        key: &str,
        known_etag: Option<&str>,
    ) -> Result<Fetched, StorageError> {
        of_either!(self, it => it.get_at_most(max_bytes, key, known_etag).await)
    }

    /// Writes an object, and replaces one that is there. A bucket stores a `.json` as
    /// `application/json` and anything else without a content type.
    ///
    /// # Errors
    /// [`StorageError`] when it is not certain that the object was written.
    pub async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), StorageError> {
        of_either!(self, it => it.put(key, bytes).await)
    }

    /// Writes an object unless there is one, with the content type of [`Self::put`]. A folder has no tags.
    ///
    /// # Errors
    /// [`StorageError`] when it is not certain that there is one now.
    pub async fn put_if_absent(
        &self,
        key: &str,
        bytes: Vec<u8>,
        tag: Option<&str>,
    ) -> Result<PutOutcome, StorageError> {
        of_either!(self, it => it.put_if_absent(key, bytes, tag).await)
    }

    /// Writes an object only if nobody wrote it since: `known_etag` is the ETag that the caller
    /// read, `None` if there was no object. With the content type of [`Self::put`].
    ///
    /// [`Replaced::Changed`] may be about this call's own write: the client of a bucket repeats a
    /// put whose answer was lost, and the second one finds what the first one wrote. So the caller
    /// reads again, and recognises its own write by something in the object that only it writes.
    ///
    /// A bucket's ETag is usually a digest of the content: who writes again what was there before
    /// brings it back. A folder's never comes back: where the clock has not moved on, the
    /// modification time of the new file is set later than that of any before it. Puts and deletes
    /// through this type wait for a replacement under way, except while the first one makes the
    /// folder's lock; an editor waits for nothing.
    ///
    /// # Errors
    /// [`StorageError`] when it is not certain whether the object was written, or with which ETag.
    pub async fn replace(
        &self,
        key: &str,
        bytes: Vec<u8>,
        known_etag: Option<&str>,
    ) -> Result<Replaced, StorageError> {
        self.replace_labelled(key, bytes, known_etag, &Labels::default()).await
    }

    /// Does the same, and labels the object. The next write removes its labels. Percent-encoded, all metadata has at most
    /// [`METADATA_MAX_BYTES`].
    ///
    /// # Errors
    /// Those of [`Self::replace`]; with a tag, a bucket asks for the permission `s3:PutObjectTagging` too.
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

    /// The versions of an object, newest first; at most a hundred. A folder has the current one only.
    ///
    /// # Errors
    /// [`StorageError`] when they cannot be listed.
    pub async fn versions(&self, key: &str) -> Result<Vec<Version>, StorageError> {
        of_either!(self, it => it.versions(key).await)
    }

    /// The content of a version that has at most so many bytes; `None` when there is none.
    ///
    /// # Errors
    /// [`StorageError`] when it could not be read.
    pub async fn get_version(
        &self,
        max_bytes: u64,
        key: &str,
        id: &str,
    ) -> Result<Option<StoredVersion>, StorageError> {
        of_either!(self, it => it.get_version(max_bytes, key, id).await)
    }

    /// One page of a listing.
    ///
    /// # Errors
    /// [`StorageError`] when it cannot be listed.
    pub async fn list_page(&self, request: &ListRequest) -> Result<Page, StorageError> {
        of_either!(self, it => it.list_page(request).await)
    }

    /// Removes objects; one that does not exist counts as removed.
    ///
    /// # Errors
    /// [`StorageError`] when some may still be there.
    pub async fn delete(&self, keys: &[String]) -> Result<(), StorageError> {
        of_either!(self, it => it.delete(keys).await)
    }
}

/// `s3://bucket`, or the path of the folder.
impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        of_either!(self, it => it.fmt(f))
    }
}
