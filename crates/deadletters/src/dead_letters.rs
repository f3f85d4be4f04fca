//! The dead letters of a container: read, filtered, summed up.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use adapters::machine::Machine;
use adapters::storage::{Entry, ListRequest};
use delivery::deadletter::stored::{StoredDeadLetter, read};
use delivery::ports::Clock as _;
use delivery::subscription::name::SubscriptionName;
use futures::future::ready;
use futures::stream::{self, BoxStream, Stream, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use crate::cause::{Cause, Causes};
use crate::container::DeadLetterContainer;
use crate::facts::decided_ms;
use crate::filter::Filter;
use crate::key::hour_of_key;
use crate::stats::Stats;
use crate::walk::{ReadAhead, Walk};

/// Blobs that are read at a time.
pub(crate) const READS_AT_ONCE: usize = 32;

/// The pages that are listed for a count: a thousand keys each.
const COUNTED_PAGES_MAX: usize = 10;

/// The dead letters of a container.
#[derive(Clone)]
pub struct DeadLetters {
    /// The container they are in.
    pub container: DeadLetterContainer,
    unreadable: Arc<Mutex<UnreadableBlobs>>,
}

/// Blobs that are not dead letters.
#[derive(Debug, Clone, Default)]
pub struct UnreadableBlobs {
    /// How many were read.
    pub count: u64,
    /// What is wrong with the last of them.
    pub example: String,
}

/// A count of blobs that hold dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedTotal {
    /// The number of those listed.
    pub count: u64,
    /// True if these are all.
    pub is_all: bool,
}

impl DeadLetters {
    /// The dead letters of this container.
    #[must_use]
    pub fn new(container: DeadLetterContainer) -> Self {
        Self { container, unreadable: Arc::default() }
    }

    /// The blobs so far that were not dead letters.
    #[must_use]
    pub fn unreadable_blobs(&self) -> UnreadableBlobs {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The newest matching dead letters, newest first; all of them without a limit.
    ///
    /// # Errors
    /// When the container cannot be read.
    pub async fn newest(
        &self,
        filter: &Filter,
        limit: Option<usize>,
    ) -> anyhow::Result<Vec<StoredDeadLetter>> {
        let read_ahead =
            if limit.is_some() { ReadAhead::NewestOnly } else { ReadAhead::Everything };
        let limit = limit.unwrap_or(usize::MAX);
        let mut walk = Walk::new(&self.container, filter, read_ahead);
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        while found.len() < limit
            && let Some(blobs) = walk.next().await?
        {
            let mut blobs = blobs.as_slice();
            while found.len() < limit && !blobs.is_empty() {
                // Reads beyond the limit are wasted, unless the filter may reject some of them.
                let least = if filter.needs_content() { READS_AT_ONCE } else { 1 };
                let (now, later) =
                    blobs.split_at((limit - found.len()).max(least).min(blobs.len()));
                blobs = later;
                let reads = stream::iter(now).map(|blob| self.read(blob)).buffered(READS_AT_ONCE);
                let letters: Vec<Vec<StoredDeadLetter>> = reads.try_collect().await?;
                let matching =
                    letters.into_iter().flatten().filter(|letter| filter.matches(letter));
                found.extend(matching.filter(|letter| seen.insert(identity(letter))));
            }
        }
        // Blobs come by their hour and when they were written; only the content tells the decision.
        sort_newest_first(&mut found);
        // A shared blob may hold more than were missing.
        found.truncate(limit);
        Ok(found)
    }

    /// Every matching dead letter, once, roughly newest first; not in exact order.
    pub fn all<'a>(
        &'a self,
        filter: &'a Filter,
    ) -> BoxStream<'a, anyhow::Result<StoredDeadLetter>> {
        let mut seen = HashSet::new();
        let read = self.blobs(filter).map_ok(move |blob| async move { self.read(&blob).await });
        let letters =
            read.try_buffered(READS_AT_ONCE).map_ok(|letters| stream::iter(letters).map(Ok));
        let once = letters.try_flatten().try_filter(move |letter| {
            ready(filter.matches(letter) && seen.insert(identity(letter)))
        });
        Box::pin(once)
    }

    /// Every blob that may hold a matching dead letter.
    pub(crate) fn blobs(
        &self,
        filter: &Filter,
    ) -> impl Stream<Item = anyhow::Result<Entry>> + use<> {
        let walk = Walk::new(&self.container, filter, ReadAhead::Everything);
        let hours = stream::try_unfold(walk, |mut walk| async move {
            Ok::<_, anyhow::Error>(walk.next().await?.map(|blobs| (blobs, walk)))
        });
        hours.map_ok(|blobs| stream::iter(blobs).map(Ok)).try_flatten()
    }

    /// The number of blobs that hold matching dead letters, from a listing of at most [`COUNTED_PAGES_MAX`] pages.
    /// `None` if a listing does not tell it. A shared blob holds more than one dead letter.
    ///
    /// # Errors
    /// When the container cannot be listed.
    pub async fn listed_total(&self, filter: &Filter) -> anyhow::Result<Option<ListedTotal>> {
        let Some(names) = filter.key_prefix() else { return Ok(None) };
        let root = self.container.root();
        let prefix = format!("{root}{names}");
        let mut request = ListRequest { prefix, ..ListRequest::default() };
        let mut count = 0;
        for _ in 0..COUNTED_PAGES_MAX {
            let page = self.container.page(&request).await?;
            let letters = page.entries.iter().filter(|it| {
                hour_of_key(&it.key, &root).is_some() && filter.may_match_key(&it.key)
            });
            count += letters.count() as u64;
            request.page_token = page.next;
            if request.page_token.is_none() {
                return Ok(Some(ListedTotal { count, is_all: true }));
            }
        }
        Ok(Some(ListedTotal { count, is_all: false }))
    }

    /// Every blob that may hold a matching dead letter, by its key, with all its dead letters; a
    /// GUID may occur twice.
    pub fn whole_blobs<'a>(
        &'a self,
        filter: &Filter,
    ) -> BoxStream<'a, anyhow::Result<(String, Vec<StoredDeadLetter>)>> {
        let read = self.blobs(filter).map_ok(move |blob| async move {
            let letters = self.read(&blob).await?;
            Ok((blob.key, letters))
        });
        // Callers need no order, so a slow blob does not hold up the others.
        Box::pin(read.try_buffer_unordered(READS_AT_ONCE))
    }

    /// The dead letters of blobs that were not seen before, in the folders that may match the
    /// filter, oldest first. `seen` collects the keys.
    ///
    /// # Errors
    /// When the container cannot be read.
    pub async fn unseen(
        &self,
        filter: &Filter,
        seen: &mut HashSet<String>,
    ) -> anyhow::Result<Vec<StoredDeadLetter>> {
        let blobs: Vec<Entry> = self.blobs(filter).try_collect().await?;
        let new: Vec<Entry> =
            blobs.into_iter().filter(|blob| seen.insert(blob.key.clone())).collect();
        let reads = stream::iter(&new).map(|blob| self.read(blob)).buffered(READS_AT_ONCE);
        let letters: Vec<Vec<StoredDeadLetter>> = reads.try_collect().await?;
        let mut letters: Vec<StoredDeadLetter> = letters.into_iter().flatten().collect();
        letters.sort_by_key(|letter| (decided_ms(letter), letter.id));
        Ok(letters)
    }

    /// The keys of the blobs in the folders that may match the filter; no blob is read.
    ///
    /// # Errors
    /// When the container cannot be listed.
    pub async fn keys(&self, filter: &Filter) -> anyhow::Result<HashSet<String>> {
        self.blobs(filter).map_ok(|blob| blob.key).try_collect().await
    }

    /// The dead letters of a blob; none if it was removed meanwhile or is not a dead letter.
    pub(crate) async fn read(&self, blob: &Entry) -> anyhow::Result<Vec<StoredDeadLetter>> {
        let Some(bytes) = self.container.get(&blob.key).await? else { return Ok(Vec::new()) };
        Ok(read(&blob.key, &self.container.prefix, &bytes).unwrap_or_else(|problem| {
            let mut unreadable = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
            unreadable.count += 1;
            unreadable.example = problem;
            Vec::new()
        }))
    }

    /// The dead letters of the blob with this key.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub async fn of_key(&self, key: &str) -> anyhow::Result<Vec<StoredDeadLetter>> {
        read(key, &self.container.prefix, &self.bytes(key).await?).map_err(anyhow::Error::msg)
    }

    /// The bytes of the blob with this key.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub async fn bytes(&self, key: &str) -> anyhow::Result<Vec<u8>> {
        let bytes = self.container.get(key).await?;
        bytes.ok_or_else(|| anyhow::anyhow!("{} has no blob {key}", self.container.name))
    }

    /// Counts the matching dead letters.
    ///
    /// # Errors
    /// When the container cannot be read.
    pub async fn stats(&self, filter: &Filter) -> anyhow::Result<Stats> {
        let (mut stats, mut letters) = (Stats::default(), self.all(filter));
        while let Some(letter) = letters.try_next().await? {
            stats.add(&letter);
        }
        Ok(stats)
    }

    /// The matching dead letters by cause, the most frequent first. Trends are those at the end of the filter's range, or now.
    ///
    /// # Errors
    /// When the container cannot be read.
    pub async fn causes(&self, filter: &Filter) -> anyhow::Result<Vec<Cause>> {
        let (mut causes, mut letters) = (Causes::default(), self.all(filter));
        while let Some(letter) = letters.try_next().await? {
            causes.add(&letter);
        }
        Ok(causes.sorted(filter.until_ms.unwrap_or_else(|| Machine.now_ms())))
    }
}

/// What counts once. A delivery that was duplicated further up may have left two blobs with one GUID; what
/// is in the folder of another subscription is another dead letter, whatever its name.
pub(crate) fn identity(letter: &StoredDeadLetter) -> (SubscriptionName, Uuid) {
    (letter.subscription.clone(), letter.id)
}

pub(crate) fn sort_newest_first(letters: &mut [StoredDeadLetter]) {
    letters.sort_by_key(|letter| std::cmp::Reverse((decided_ms(letter), letter.id)));
}
