//! Lists, reads, filters and counts the dead letters of a container.
//!
//! Separate from `walk`, which finds blobs, and from `reading`, which reads single blobs: this
//! module combines them with a filter for all commands.
//!
//! Promises: an id that occurs in several blobs of a subscription counts once, except in
//! [`DeadLetters::listed_total`], [`DeadLetters::of_every_blob`], [`DeadLetters::unseen`] and
//! [`DeadLetters::keys`].

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use adapters::machine::Machine;
use adapters::storage::{Entry, ListRequest};
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::ports::Clock as _;
use delivery::subscription::name::SubscriptionName;
use futures::future::ready;
use futures::stream::{self, BoxStream, Stream, StreamExt as _, TryStreamExt as _};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::cause::{Cause, Causes};
use crate::container::DeadLetterContainer;
use crate::disk_cache::DiskCache;
use crate::facts::decided_ms;
use crate::filter::Filter;
use crate::key::hour_of_key;
use crate::reads::{Content, READ_PERMITS, ReadObserver, UnreadableBlobs};
use crate::stats::Stats;
use crate::walk::{ReadAhead, Walk};

pub(crate) const READS_AT_ONCE: usize = 32;

/// Maximum number of pages that are listed for a count; a page has a thousand keys.
const COUNTED_PAGES_MAX: usize = 10;

/// The dead letters of a container.
#[derive(Clone)]
pub struct DeadLetters {
    /// The container in which the dead letters are stored.
    pub container: DeadLetterContainer,
    pub(crate) unreadable: Arc<Mutex<UnreadableBlobs>>,
    /// Limits the total size of all blobs that are read at the same time.
    pub(crate) memory: Arc<Semaphore>,
    pub(crate) cache: Option<Arc<DiskCache>>,
    pub(crate) observer: Option<ReadObserver>,
}

/// A number of dead letters that was counted by listing keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedTotal {
    /// The number of keys that were listed.
    pub count: u64,
    /// True if all keys were listed.
    pub is_all: bool,
}

impl DeadLetters {
    /// Opens the dead letters of a container. Reads are not cached.
    #[must_use]
    pub fn new(container: DeadLetterContainer) -> Self {
        let memory = Arc::new(Semaphore::new(READ_PERMITS as usize));
        Self { container, unreadable: Arc::default(), memory, cache: None, observer: None }
    }

    /// Caches the results of reads in `folder`.
    #[must_use]
    pub fn with_cache_in(self, folder: &Path) -> Self {
        let cache = DiskCache::new(folder, &self.container.name);
        Self { cache: Some(Arc::new(cache)), ..self }
    }

    /// Reports the progress of reads to `observer`.
    #[must_use]
    pub fn with_observer(self, observer: ReadObserver) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Returns the reason why the cache is unusable, if there is one.
    #[must_use]
    pub fn cache_problem(&self) -> Option<String> {
        self.cache.as_ref()?.problem()
    }

    /// Removes the blobs with these keys from the cache.
    pub fn forget_cached(&self, keys: &[String]) {
        if let Some(cache) = &self.cache {
            cache.forget(&keys.iter().map(String::as_str).collect());
        }
    }

    /// Returns the summaries of the newest matching dead letters, newest first. Without a limit,
    /// returns all matching dead letters.
    ///
    /// # Errors
    /// Fails if the container cannot be read.
    pub async fn newest(
        &self,
        filter: &Filter,
        limit: Option<usize>,
    ) -> anyhow::Result<Vec<StoredDeadLetter>> {
        let mut found = match limit {
            Some(limit) => self.newest_first(filter, limit).await?,
            None => self.summaries(filter).try_collect().await?,
        };
        // Blobs are listed by hour and time of writing; only the content has the time of the
        // decision.
        sort_newest_first(&mut found);
        // Several blobs are read at a time if the filter needs the content, so more than `limit`
        // may have been found.
        found.truncate(limit.unwrap_or(usize::MAX));
        Ok(found)
    }

    /// Returns at least `limit` matching dead letters of the newest hours, if the container has
    /// that many.
    async fn newest_first(
        &self,
        filter: &Filter,
        limit: usize,
    ) -> anyhow::Result<Vec<StoredDeadLetter>> {
        let mut walk = Walk::new(&self.container, filter, ReadAhead::NewestOnly);
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        while found.len() < limit
            && let Some(blobs) = walk.next().await?
        {
            let mut blobs = blobs.as_slice();
            while found.len() < limit && !blobs.is_empty() {
                // Reading beyond the limit only helps if the filter may reject some of the blobs.
                let least = if filter.needs_content() { READS_AT_ONCE } else { 1 };
                let (now, later) =
                    blobs.split_at((limit - found.len()).max(least).min(blobs.len()));
                blobs = later;
                let reads = stream::iter(now).map(|blob| self.summary(blob));
                let letters: Vec<_> = reads.buffered(READS_AT_ONCE).try_collect().await?;
                let matching =
                    letters.into_iter().flatten().filter(|letter| filter.matches(letter));
                found.extend(matching.filter(|letter| seen.insert(identity(letter))));
            }
        }
        Ok(found)
    }

    /// Streams each matching dead letter once, with its event, roughly newest first.
    pub fn all<'a>(
        &'a self,
        filter: &'a Filter,
    ) -> BoxStream<'a, anyhow::Result<StoredDeadLetter>> {
        let blobs = self.listed_blobs(filter, Content::Whole);
        let read = blobs.map_ok(move |blob| async move { self.read_with_permit(&blob).await });
        let letters = read.try_buffered(READS_AT_ONCE);
        once(filter, letters.map_ok(|(letter, _permit)| letter))
    }

    /// Streams the summary of each matching dead letter once, roughly newest first.
    pub fn summaries<'a>(
        &'a self,
        filter: &'a Filter,
    ) -> BoxStream<'a, anyhow::Result<StoredDeadLetter>> {
        let blobs = self.listed_blobs(filter, Content::Summary);
        let read = blobs.map_ok(move |blob| async move { self.summary(&blob).await });
        once(filter, read.try_buffered(READS_AT_ONCE))
    }

    /// Lists the blobs that may contain a matching dead letter.
    pub(crate) fn blobs(
        &self,
        filter: &Filter,
    ) -> impl Stream<Item = anyhow::Result<Entry>> + use<> {
        self.walked(filter, ReadAhead::Everything)
    }

    /// Streams the blobs that may contain a matching dead letter. Lists further blobs only when the
    /// caller has consumed the earlier ones.
    pub(crate) fn walked(
        &self,
        filter: &Filter,
        read_ahead: ReadAhead,
    ) -> impl Stream<Item = anyhow::Result<Entry>> + use<> {
        let walk = Walk::new(&self.container, filter, read_ahead);
        let hours = stream::try_unfold(walk, |mut walk| async move {
            Ok::<_, anyhow::Error>(walk.next().await?.map(|blobs| (blobs, walk)))
        });
        hours.map_ok(|blobs| stream::iter(blobs).map(Ok)).try_flatten()
    }

    /// Returns the number of matching dead letters, from a listing of at most [`COUNTED_PAGES_MAX`]
    /// pages. Returns `None` if the filter needs more than the keys. An id in two blobs counts
    /// twice.
    ///
    /// # Errors
    /// Fails if the container cannot be listed.
    pub async fn listed_total(&self, filter: &Filter) -> anyhow::Result<Option<ListedTotal>> {
        let Some(names) = filter.key_prefix() else { return Ok(None) };
        let root = self.container.root();
        let prefix = format!("{root}{names}");
        let mut request = ListRequest { prefix, ..ListRequest::default() };
        let mut count = 0;
        for _ in 0..COUNTED_PAGES_MAX {
            let page = self.container.page(&request).await?;
            let letters = page.entries.iter().filter(|blob| {
                hour_of_key(&blob.key, &root).is_some() && filter.has_wanted_key(&blob.key)
            });
            count += letters.count() as u64;
            request.page_token = page.next;
            if request.page_token.is_none() {
                return Ok(Some(ListedTotal { count, is_all: true }));
            }
        }
        Ok(Some(ListedTotal { count, is_all: false }))
    }

    /// Streams the summary of every blob that may contain a matching dead letter; `None` for a blob
    /// that is not a dead letter. An id may occur twice.
    pub fn of_every_blob<'a>(
        &'a self,
        filter: &'a Filter,
    ) -> BoxStream<'a, anyhow::Result<Option<StoredDeadLetter>>> {
        let blobs = self.listed_blobs(filter, Content::Summary);
        let read = blobs.map_ok(move |blob| async move { self.summary(&blob).await });
        // Callers need no order, so a slow blob does not delay the others.
        Box::pin(read.try_buffer_unordered(READS_AT_ONCE))
    }

    /// Returns the summaries of dead letters in blobs that are not in `seen`, oldest first.
    /// Searches only folders that may match the filter. Adds the keys of these blobs to `seen`.
    ///
    /// # Errors
    /// Fails if the container cannot be read.
    pub async fn unseen(
        &self,
        filter: &Filter,
        seen: &mut HashSet<String>,
    ) -> anyhow::Result<Vec<StoredDeadLetter>> {
        let blobs: Vec<Entry> = self.blobs(filter).try_collect().await?;
        let new: Vec<Entry> =
            blobs.into_iter().filter(|blob| seen.insert(blob.key.clone())).collect();
        let reads = stream::iter(&new).map(|blob| self.summary(blob)).buffered(READS_AT_ONCE);
        let letters: Vec<Option<StoredDeadLetter>> = reads.try_collect().await?;
        let mut letters: Vec<StoredDeadLetter> = letters.into_iter().flatten().collect();
        letters.sort_by_key(|letter| (decided_ms(letter), letter.id));
        Ok(letters)
    }

    /// Lists the folders that may match the filter, and returns the keys of their blobs. Reads no
    /// blob.
    ///
    /// # Errors
    /// Fails if the container cannot be listed.
    pub async fn keys(&self, filter: &Filter) -> anyhow::Result<HashSet<String>> {
        self.blobs(filter).map_ok(|blob| blob.key).try_collect().await
    }

    /// Counts the matching dead letters by reason, subscription, destination and hour.
    ///
    /// # Errors
    /// Fails if the container cannot be read.
    pub async fn stats(&self, filter: &Filter) -> anyhow::Result<Stats> {
        let (mut stats, mut letters) = (Stats::default(), self.summaries(filter));
        while let Some(letter) = letters.try_next().await? {
            stats.add(&letter);
        }
        Ok(stats)
    }

    /// Groups the matching dead letters by cause, in the order of [`Causes::sorted`]. Trends
    /// compare the last two windows before the end of the filter's time range, or before now.
    ///
    /// # Errors
    /// Fails if the container cannot be read.
    pub async fn causes(&self, filter: &Filter) -> anyhow::Result<Vec<Cause>> {
        let (mut causes, mut letters) = (Causes::default(), self.summaries(filter));
        while let Some(letter) = letters.try_next().await? {
            causes.add(&letter);
        }
        let end_ms = filter.until_ms.unwrap_or_else(|| Machine.now_ms());
        Ok(filter.states.sorted(causes, end_ms))
    }
}

/// Returns the identity of a dead letter: subscription and id. A delivery that was duplicated
/// earlier may leave two blobs with one id; they count once. The same id in the folder of another
/// subscription is a different dead letter.
pub(crate) fn identity(letter: &StoredDeadLetter) -> (SubscriptionName, Uuid) {
    (letter.subscription.clone(), letter.id)
}

/// Returns each matching dead letter in these blobs once.
fn once<'a>(
    filter: &'a Filter,
    blobs: impl Stream<Item = anyhow::Result<Option<StoredDeadLetter>>> + Send + 'a,
) -> BoxStream<'a, anyhow::Result<StoredDeadLetter>> {
    let mut seen = HashSet::new();
    Box::pin(blobs.try_filter_map(move |letter| {
        let is_new =
            |letter: &StoredDeadLetter| filter.matches(letter) && seen.insert(identity(letter));
        ready(Ok(letter.filter(is_new)))
    }))
}

pub(crate) fn sort_newest_first(letters: &mut [StoredDeadLetter]) {
    letters.sort_by_key(|letter| std::cmp::Reverse((decided_ms(letter), letter.id)));
}
