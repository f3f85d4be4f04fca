//! Where dead letters are kept, as far as the command line needs it: list, read, write, remove.
//!
//! One small trait and two places that keep it: S3, and the folder that `dev` and `demo` leave.
//! Separate from the ports of the functions because those read whole listings, which is what a
//! person with a million letters must not wait for.
//!
//! Promises: a listing is in the order of the keys' bytes, at most [`PAGE`] entries a page; every
//! call is counted.

mod folder;
mod s3;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use delivery::subscription::sink::Container;
pub(crate) use folder::Folder;
use futures::future::BoxFuture;
pub(crate) use s3::Bucket;

use crate::store;

/// What `lastmile dev` and `lastmile demo` leave.
pub(crate) const LOCAL_CONTAINER: &str = ".lastmile/s3/dead-letters";
/// A page of a listing has at most so many entries.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>
pub(crate) const PAGE: usize = 1_000;

/// An answer that takes its time.
pub(crate) type Answer<'a, T> = BoxFuture<'a, anyhow::Result<T>>;

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
pub(crate) struct Ask {
    /// Keys begin with this: nothing, or a path that ends in a slash.
    pub(crate) prefix: String,
    /// Whether keys that share a folder are told as that folder.
    pub(crate) by_folder: bool,
    /// Keys come after this one.
    pub(crate) start: Option<String>,
    /// Where the page before ended.
    pub(crate) after: Option<String>,
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

/// A place of blobs. Keys include the container's prefix.
pub(crate) trait Storage: Send + Sync {
    /// One page of a listing.
    fn list<'a>(&'a self, ask: &'a Ask) -> Answer<'a, Page>;
    /// A blob's bytes; nothing when there is none.
    fn get<'a>(&'a self, key: &'a str) -> Answer<'a, Option<Vec<u8>>>;
    /// Writes a blob, whole or not at all, in the place of one that is there.
    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> Answer<'a, ()>;
    /// Writes a blob unless there is one: the first write of a key wins.
    fn put_new<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> Answer<'a, ()>;
    /// Removes blobs; one that is not there is removed already.
    fn delete<'a>(&'a self, keys: &'a [String]) -> Answer<'a, ()>;
}

/// A container that was opened, and how often it was asked.
#[derive(Clone)]
pub(crate) struct Place {
    storage: Arc<dyn Storage>,
    /// As a person names it.
    pub(crate) name: String,
    /// What every key begins with, without slashes at its ends; may be empty.
    pub(crate) prefix: String,
    requests: Arc<AtomicU64>,
}

impl Place {
    /// Opens `s3://bucket[/prefix]` or a folder.
    ///
    /// # Errors
    /// When it is no container's address, or the folder is not there.
    pub(crate) async fn open(address: &str) -> anyhow::Result<Self> {
        if let Some(container) = address.strip_prefix("s3://") {
            let container: Container = container.parse().map_err(anyhow::Error::msg)?;
            let name = format!("s3://{container}");
            let Container { bucket, prefix } = container;
            return Ok(Self::new(Bucket::new(store::client().await, bucket), &name, prefix));
        }
        let address = address.strip_prefix("file://").unwrap_or(address).trim_end_matches('/');
        let folder = Path::new(address);
        let problem = "`lastmile demo` and `lastmile dev` leave dead letters in .lastmile/s3/dead-letters; \
                       --container names another folder, or s3://BUCKET[/PREFIX]";
        let found = folder.is_dir().then(|| Self::new(Folder::new(folder), address, String::new()));
        found.with_context(|| format!("there is no folder {address}: {problem}"))
    }

    /// This storage under a name.
    pub(crate) fn new(storage: impl Storage + 'static, name: &str, prefix: String) -> Self {
        Self { storage: Arc::new(storage), name: name.to_owned(), prefix, requests: Arc::default() }
    }

    /// What every key of it begins with: nothing, or a path that ends in a slash.
    pub(crate) fn root(&self) -> String {
        if self.prefix.is_empty() { String::new() } else { format!("{}/", self.prefix) }
    }

    /// How many requests there were so far.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    fn asked(&self) -> &dyn Storage {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.storage.as_ref()
    }

    /// One page.
    pub(crate) async fn page(&self, ask: &Ask) -> anyhow::Result<Page> {
        let page = self.asked().list(ask).await;
        page.with_context(|| format!("{} cannot be listed", self.name))
    }

    /// Every page from this one on, as one.
    pub(crate) async fn pages(&self, mut ask: Ask) -> anyhow::Result<Page> {
        let mut all = Page::default();
        loop {
            let page = self.page(&ask).await?;
            all.blobs.extend(page.blobs);
            all.folders.extend(page.folders);
            ask.after = page.next;
            if ask.after.is_none() {
                return Ok(all);
            }
        }
    }

    /// A blob's bytes.
    pub(crate) async fn get(&self, key: &str) -> anyhow::Result<Option<Vec<u8>>> {
        self.asked()
            .get(key)
            .await
            .with_context(|| format!("{key} of {} cannot be read", self.name))
    }

    /// Writes a blob.
    pub(crate) async fn put(&self, key: &str, bytes: Vec<u8>) -> anyhow::Result<()> {
        self.asked()
            .put(key, bytes)
            .await
            .with_context(|| format!("{key} of {} cannot be written", self.name))
    }

    /// Writes a blob unless there is one.
    pub(crate) async fn put_new(&self, key: &str, bytes: Vec<u8>) -> anyhow::Result<()> {
        self.asked()
            .put_new(key, bytes)
            .await
            .with_context(|| format!("{key} of {} cannot be written", self.name))
    }

    /// Removes blobs, a page at a time.
    pub(crate) async fn delete(&self, keys: &[String]) -> anyhow::Result<()> {
        for page in keys.chunks(PAGE) {
            self.asked()
                .delete(page)
                .await
                .with_context(|| format!("{} cannot be emptied", self.name))?;
        }
        Ok(())
    }
}
