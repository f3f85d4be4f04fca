//! Where dead letters are stored, as far as finding and replaying them needs it: list, read, write,
//! remove.
//!
//! One small trait with two implementations: S3, and the folder that `lastmile dev` and `lastmile
//! demo` write. Separate from the ports of the functions because those read whole listings, which
//! takes too long for a person with a million dead letters.
//!
//! Promises: a listing is in the order of the keys' bytes, at most [`PAGE`] entries a page; every
//! call is counted.

mod folder;
mod s3;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use aws_sdk_s3::Client;
use delivery::subscription::sink::Container;
use futures::future::BoxFuture;

use self::folder::Folder;
use self::s3::Bucket;

/// The folder that `lastmile dev` and `lastmile demo` write.
pub const LOCAL_CONTAINER: &str = ".lastmile/s3/dead-letters";
/// A page of a listing has at most so many entries, and one request removes at most so many blobs.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>
pub const PAGE: usize = 1_000;

/// The future of a storage request.
type StorageFuture<'a, T> = BoxFuture<'a, anyhow::Result<T>>;

/// A blob in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blob {
    /// Its key, the container's prefix included.
    pub(crate) key: String,
    /// When it was written.
    pub(crate) modified_ms: u64,
}

/// What is to be listed.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListRequest {
    /// Keys begin with this: nothing, or a path that ends in a slash.
    pub(crate) prefix: String,
    /// Whether keys in the same folder are listed as that folder.
    pub(crate) by_folder: bool,
    /// Keys come after this one.
    pub(crate) start_after: Option<String>,
    /// The `next` of the page before.
    pub(crate) continuation: Option<String>,
}

/// A page of a listing.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) blobs: Vec<Blob>,
    /// Folders, each with its whole prefix and a slash at its end.
    pub(crate) folders: Vec<String>,
    /// Where the next page begins, if there is one.
    pub(crate) next: Option<String>,
}

/// A store of blobs. Keys include the container's prefix.
trait Storage: Send + Sync {
    /// One page of a listing.
    fn list<'a>(&'a self, request: &'a ListRequest) -> StorageFuture<'a, Page>;
    /// A blob's bytes; `None` when there is no such blob.
    fn get<'a>(&'a self, key: &'a str) -> StorageFuture<'a, Option<Vec<u8>>>;
    /// Writes or replaces a blob, whole or not at all.
    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> StorageFuture<'a, ()>;
    /// Writes a blob unless there is one: the first write of a key wins.
    fn put_new<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> StorageFuture<'a, ()>;
    /// Removes blobs; a missing one is not an error.
    fn delete<'a>(&'a self, keys: &'a [String]) -> StorageFuture<'a, ()>;
}

/// A container, and how many requests it was sent.
#[derive(Clone)]
pub struct DeadLetterContainer {
    storage: Arc<dyn Storage>,
    /// As a person names it.
    pub name: String,
    /// What every key begins with, without slashes at its ends; may be empty.
    pub prefix: String,
    requests: Arc<AtomicU64>,
}

impl DeadLetterContainer {
    /// A bucket, or a folder of it, through this client.
    #[must_use]
    pub fn bucket(client: Client, container: Container) -> Self {
        let name = format!("s3://{container}");
        let Container { bucket, prefix } = container;
        Self::new(Bucket::new(client, bucket), &name, prefix)
    }

    /// A folder, as a path or a `file://` address.
    ///
    /// # Errors
    /// When there is no such folder.
    pub fn folder(address: &str) -> anyhow::Result<Self> {
        let address = address.strip_prefix("file://").unwrap_or(address).trim_end_matches('/');
        let folder = Path::new(address);
        let help = "`lastmile demo` and `lastmile dev` write dead letters to .lastmile/s3/dead-letters; \
                    --container names another folder, or s3://BUCKET[/PREFIX]";
        let found = folder.is_dir().then(|| Self::new(Folder::new(folder), address, String::new()));
        found.with_context(|| format!("there is no folder {address}: {help}"))
    }

    fn new(storage: impl Storage + 'static, name: &str, prefix: String) -> Self {
        Self { storage: Arc::new(storage), name: name.to_owned(), prefix, requests: Arc::default() }
    }

    /// What every key of it begins with: nothing, or a path that ends in a slash.
    pub(crate) fn root(&self) -> String {
        if self.prefix.is_empty() { String::new() } else { format!("{}/", self.prefix) }
    }

    /// How many requests there were so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// The storage, for one request that is counted.
    fn counted(&self) -> &dyn Storage {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.storage.as_ref()
    }

    /// One page.
    pub(crate) async fn page(&self, request: &ListRequest) -> anyhow::Result<Page> {
        let page = self.counted().list(request).await;
        page.with_context(|| format!("{} cannot be listed", self.name))
    }

    /// Every page from this one on, as one.
    pub(crate) async fn pages(&self, mut request: ListRequest) -> anyhow::Result<Page> {
        let mut all = Page::default();
        loop {
            let page = self.page(&request).await?;
            all.blobs.extend(page.blobs);
            all.folders.extend(page.folders);
            request.continuation = page.next;
            if request.continuation.is_none() {
                return Ok(all);
            }
        }
    }

    /// A blob's bytes; `None` when there is no such blob.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn get(&self, key: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let bytes = self.counted().get(key).await;
        bytes.with_context(|| format!("{key} of {} cannot be read", self.name))
    }

    /// Writes or replaces a blob.
    pub(crate) async fn put(&self, key: &str, bytes: Vec<u8>) -> anyhow::Result<()> {
        let put = self.counted().put(key, bytes).await;
        put.with_context(|| format!("{key} of {} cannot be written", self.name))
    }

    /// Writes a blob unless there is one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn put_new(&self, key: &str, bytes: Vec<u8>) -> anyhow::Result<()> {
        let put = self.counted().put_new(key, bytes).await;
        put.with_context(|| format!("{key} of {} cannot be written", self.name))
    }

    /// Removes blobs, a page at a time.
    ///
    /// # Errors
    /// When one of them cannot be removed.
    pub async fn delete(&self, keys: &[String]) -> anyhow::Result<()> {
        for page in keys.chunks(PAGE) {
            let deleted = self.counted().delete(page).await;
            deleted.with_context(|| format!("blobs of {} cannot be removed", self.name))?;
        }
        Ok(())
    }
}
