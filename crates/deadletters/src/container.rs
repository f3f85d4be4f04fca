//! The container of dead letters: a bucket, a folder of a bucket, or a local folder.
//!
//! Separate from [`adapters::storage`], which reads and writes objects. This module also counts
//! requests, because commands print their number, and names the container in every error.
//!
//! Promises: every request is counted, and every read has a size limit. This module does not cache
//! and does not parse dead letters.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adapters::storage::{Fetched, ListRequest, PAGE_MAX, Page, PutOutcome, Storage, StorageError};
use anyhow::{Context as _, ensure};
use aws_sdk_s3::Client;
use delivery::subscription::sink::Container;

/// The folder into which `lastmile dev` and `lastmile demo` write dead letters.
pub const LOCAL_CONTAINER: &str = ".lastmile/s3/dead-letters";

/// Maximum size of a blob that is read. The functions write blobs of less than half this size: an
/// event has at most 1 MiB. A format contains an event at most three times, and an escape has at
/// most six bytes. A larger blob has another writer, and could use up the memory of the reader.
pub const BLOB_MAX_BYTES: u64 = 64 << 20;
/// Maximum size of a ledger file that is read. A plan of this size has about 1,000,000 dead
/// letters.
pub(crate) const LEDGER_MAX_BYTES: u64 = 256 << 20;

/// The error for a blob that exceeds the size limit of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge {
    bytes: u64,
    max_bytes: u64,
}

impl TooLarge {
    /// Compares the size of a blob with a limit.
    ///
    /// # Errors
    /// Fails if the blob is larger than the limit.
    pub(crate) fn check(bytes: u64, max_bytes: u64) -> Result<(), Self> {
        if bytes > max_bytes { Err(Self { bytes, max_bytes }) } else { Ok(()) }
    }
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the object has {} bytes; the limit is {} bytes", self.bytes, self.max_bytes)
    }
}

impl std::error::Error for TooLarge {}

/// A container of dead letters that counts the requests to its storage.
#[derive(Clone)]
pub struct DeadLetterContainer {
    storage: Storage,
    /// The path of a local folder; `None` for a bucket.
    folder: Option<PathBuf>,
    /// The name of the container for people: an `s3://` URL or a path.
    pub name: String,
    /// The prefix of every key, without slashes at its ends; may be empty.
    pub prefix: String,
    requests: Arc<AtomicU64>,
}

impl DeadLetterContainer {
    /// Opens a bucket, or a folder of a bucket, with this client.
    #[must_use]
    pub fn bucket(client: Client, container: Container) -> Self {
        let name = format!("s3://{container}");
        let Container { bucket, prefix } = container;
        Self::new(Storage::bucket(client, bucket), &name, prefix)
    }

    /// Opens a local folder, given as a path or a `file://` URL.
    ///
    /// # Errors
    /// Fails if the folder does not exist.
    pub fn folder(address: &str) -> anyhow::Result<Self> {
        let address = address.strip_prefix("file://").unwrap_or(address).trim_end_matches('/');
        let folder = Path::new(address);
        let help = "use --container with another folder or s3://BUCKET[/PREFIX]; `lastmile demo` \
                    and `lastmile dev` write to .lastmile/s3/dead-letters";
        let found =
            folder.is_dir().then(|| Self::new(Storage::folder(folder), address, String::new()));
        let found = found.map(|found| Self { folder: Some(folder.to_owned()), ..found });
        found.with_context(|| format!("there is no folder {address}: {help}"))
    }

    fn new(storage: Storage, name: &str, prefix: String) -> Self {
        Self { storage, folder: None, name: name.to_owned(), prefix, requests: Arc::default() }
    }

    /// Returns the prefix of every key: empty, or a path that ends in a slash.
    pub(crate) fn root(&self) -> String {
        if self.prefix.is_empty() { String::new() } else { format!("{}/", self.prefix) }
    }

    /// Returns the number of requests that have been sent so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Adds to the number of requests, and returns the storage to which they are sent.
    fn counted(&self, requests: usize) -> &Storage {
        // Count first, so that failing requests are included.
        self.requests.fetch_add(requests as u64, Ordering::Relaxed);
        &self.storage
    }

    /// Returns one page of a listing.
    ///
    /// # Errors
    /// Fails if the container cannot be listed. A folder that was removed is an error, not an empty
    /// container.
    pub(crate) async fn page(&self, request: &ListRequest) -> anyhow::Result<Page> {
        let is_there = self.folder.as_ref().is_none_or(|folder| folder.is_dir());
        ensure!(is_there, "the folder {} no longer exists", self.name);
        let page = self.counted(1).list_page(request).await;
        page.with_context(|| format!("{} cannot be listed", self.name))
    }

    /// Returns all pages from this request on, merged into one.
    pub(crate) async fn pages(&self, mut request: ListRequest) -> anyhow::Result<Page> {
        let mut all = Page::default();
        loop {
            let page = self.page(&request).await?;
            all.entries.extend(page.entries);
            all.folders.extend(page.folders);
            request.page_token = page.next;
            if request.page_token.is_none() {
                return Ok(all);
            }
        }
    }

    /// Returns the bytes of a blob; `None` if the blob does not exist.
    ///
    /// # Errors
    /// Fails if the blob cannot be read, or is larger than [`BLOB_MAX_BYTES`].
    pub async fn get(&self, key: &str) -> anyhow::Result<Option<Vec<u8>>> {
        self.get_at_most(BLOB_MAX_BYTES, key).await?.with_context(|| self.unread(key))
    }

    /// Returns the bytes of a blob, or [`TooLarge`] if the blob exceeds `max_bytes`.
    ///
    /// # Errors
    /// Fails if the blob cannot be read.
    pub(crate) async fn get_at_most(
        &self,
        max_bytes: u64,
        key: &str,
    ) -> anyhow::Result<Result<Option<Vec<u8>>, TooLarge>> {
        let fetched = self.fetch_at_most(max_bytes, key, None).await?;
        Ok(fetched.map(|fetched| match fetched {
            Fetched::Changed { bytes, .. } => Some(bytes),
            // `Unchanged` is only possible for a read with an ETag.
            Fetched::Missing | Fetched::Unchanged => None,
        }))
    }

    /// Returns the bytes of a blob, or [`Fetched::Unchanged`] if the blob still has this ETag.
    /// Returns [`TooLarge`] if the blob exceeds `max_bytes`.
    ///
    /// # Errors
    /// Fails if the blob cannot be read.
    pub(crate) async fn fetch_at_most(
        &self,
        max_bytes: u64,
        key: &str,
        known_etag: Option<&str>,
    ) -> anyhow::Result<Result<Fetched, TooLarge>> {
        match self.counted(1).get_at_most(max_bytes, key, known_etag).await {
            Ok(fetched) => Ok(Ok(fetched)),
            Err(StorageError::TooLarge { bytes, max_bytes }) => {
                Ok(Err(TooLarge { bytes, max_bytes }))
            }
            Err(error) => Err(error).with_context(|| self.unread(key)),
        }
    }

    fn unread(&self, key: &str) -> String {
        format!("{key} of {} cannot be read", self.name)
    }

    /// Writes or replaces a blob.
    pub(crate) async fn put(&self, key: &str, bytes: Vec<u8>) -> anyhow::Result<()> {
        let put = self.counted(1).put(key, bytes).await;
        put.with_context(|| format!("{key} of {} cannot be written", self.name))
    }

    /// Writes a blob, unless a blob with this key exists. The result distinguishes these cases.
    ///
    /// # Errors
    /// Fails if the blob cannot be written.
    pub async fn put_if_absent(
        &self,
        key: &str,
        bytes: Vec<u8>,
        tag: Option<&str>,
    ) -> anyhow::Result<PutOutcome> {
        let put = self.counted(1).put_if_absent(key, bytes, tag).await;
        put.with_context(|| format!("{key} of {} cannot be written", self.name))
    }

    /// Removes blobs, at most [`PAGE_MAX`] per request. A missing blob counts as removed.
    ///
    /// # Errors
    /// Fails if one of the blobs cannot be removed.
    pub async fn delete(&self, keys: &[String]) -> anyhow::Result<()> {
        let deleted = self.counted(keys.len().div_ceil(PAGE_MAX)).delete(keys).await;
        deleted.with_context(|| format!("blobs of {} cannot be deleted", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_that_was_removed_is_no_empty_container() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("letters");
        std::fs::create_dir(&folder).unwrap();
        let container = DeadLetterContainer::folder(folder.to_str().unwrap()).unwrap();
        let request = ListRequest::default();
        assert!(container.page(&request).await.unwrap().entries.is_empty());
        std::fs::remove_dir(&folder).unwrap();
        let error = container.page(&request).await.err().unwrap().to_string();
        assert_eq!(error, format!("the folder {} no longer exists", folder.display()));
    }
}
