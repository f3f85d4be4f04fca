//! Dead letters in a container: found, filtered, grouped, sent again. No database: the keys are the
//! index.
//!
//! What the verbs of `lastmile deadletters` share. [`storage`] reaches the container, [`walk`]
//! finds the newest hours without listing everything, [`filter`] says which letters are meant,
//! [`cause`] and [`stats`] sum them up, [`replay`] sends them again and keeps its [`ledger`] beside
//! them, [`shelf`] remembers what was read. Pure: `place`, `filter`, `cause`, `stats`, `ledger`,
//! `text`.
//!
//! Promises: a GUID counts once, wherever it stands; a blob that is no dead letter is told and
//! never hides the others; letters are never rewritten.

pub(crate) mod cause;
pub(crate) mod filter;
pub(crate) mod ledger;
pub(crate) mod place;
pub(crate) mod replay;
#[cfg(test)]
mod samples;
pub(crate) mod shelf;
pub(crate) mod stats;
pub(crate) mod storage;
pub(crate) mod text;
pub(crate) mod walk;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::bail;
use delivery::deadletter::stored::{StoredDeadLetter, read};
use futures::future::ready;
use futures::stream::{self, BoxStream, Stream, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use self::cause::{Cause, Causes};
use self::filter::{Filter, decided_ms};
use self::ledger::{Job, Replayed};
use self::place::stem;
use self::stats::Stats;
use self::storage::{Blob, Place};
use self::walk::{Pace, Walk};

/// Blobs that are read at a time.
pub(crate) const READS_AT_ONCE: usize = 32;
/// The beginning of an id that is taken for the id: long enough to be meant.
const ID_PREFIX_MIN: usize = 8;

/// The dead letters of a container.
#[derive(Clone)]
pub(crate) struct Letters {
    place: Place,
    strange: Arc<Mutex<Strange>>,
}

/// Blobs that are no dead letters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Strange {
    /// How many.
    pub(crate) blobs: u64,
    /// What is wrong with one of them.
    pub(crate) example: String,
}

impl Letters {
    /// Opens `s3://bucket[/prefix]` or a folder.
    ///
    /// # Errors
    /// When it is no container's address, or the folder is not there.
    pub(crate) async fn open(address: &str) -> anyhow::Result<Self> {
        Ok(Self::new(Place::open(address).await?))
    }

    /// The letters of this place.
    pub(crate) fn new(place: Place) -> Self {
        Self { place, strange: Arc::default() }
    }

    /// Where they are.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// The blobs that were no dead letters, so far.
    pub(crate) fn strange(&self) -> Strange {
        self.strange.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The newest letters that are meant, newest first; all of them without a limit.
    ///
    /// # Errors
    /// When the container cannot be read.
    pub(crate) async fn newest(
        &self,
        filter: &Filter,
        limit: Option<usize>,
    ) -> anyhow::Result<Vec<StoredDeadLetter>> {
        let pace = if limit.is_some() { Pace::NewestOnly } else { Pace::Everything };
        let limit = limit.unwrap_or(usize::MAX);
        let mut walk = Walk::new(&self.place, filter, pace);
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        while found.len() < limit
            && let Some(blobs) = walk.next().await?
        {
            let mut blobs = blobs.as_slice();
            while found.len() < limit && !blobs.is_empty() {
                // What is read beyond the limit is read for nothing, unless the filter may refuse
                // some of it.
                let least = if filter.needs_content() { READS_AT_ONCE } else { 1 };
                let (now, later) =
                    blobs.split_at((limit - found.len()).max(least).min(blobs.len()));
                blobs = later;
                let reads = stream::iter(now).map(|blob| self.read(blob)).buffered(READS_AT_ONCE);
                let letters: Vec<Vec<StoredDeadLetter>> = reads.try_collect().await?;
                let meant = letters.into_iter().flatten().filter(|letter| filter.takes(letter));
                found.extend(meant.filter(|letter| seen.insert(letter.id)));
            }
        }
        found.sort_by_key(|letter| std::cmp::Reverse((decided_ms(letter), letter.id)));
        found.truncate(limit);
        Ok(found)
    }

    /// Every letter that is meant, once, roughly newest first; not in exact order.
    pub(crate) fn all<'a>(
        &'a self,
        filter: &'a Filter,
    ) -> BoxStream<'a, anyhow::Result<StoredDeadLetter>> {
        let mut seen = HashSet::new();
        let read = self.blobs(filter).map_ok(move |blob| async move { self.read(&blob).await });
        let letters =
            read.try_buffered(READS_AT_ONCE).map_ok(|letters| stream::iter(letters).map(Ok));
        let once = letters
            .try_flatten()
            .try_filter(move |letter| ready(filter.takes(letter) && seen.insert(letter.id)));
        Box::pin(once)
    }

    /// Every blob that may hold a letter that is meant.
    fn blobs(&self, filter: &Filter) -> impl Stream<Item = anyhow::Result<Blob>> + use<> {
        let walk = Walk::new(&self.place, filter, Pace::Everything);
        let hours = stream::try_unfold(walk, |mut walk| async move {
            Ok::<_, anyhow::Error>(walk.next().await?.map(|blobs| (blobs, walk)))
        });
        hours.map_ok(|blobs| stream::iter(blobs).map(Ok)).try_flatten()
    }

    /// Every blob that may hold a letter that is meant, with all its letters; a GUID may come
    /// twice.
    pub(crate) fn whole_blobs<'a>(
        &'a self,
        filter: &Filter,
    ) -> BoxStream<'a, anyhow::Result<(String, Vec<StoredDeadLetter>)>> {
        let read = self.blobs(filter).map_ok(move |blob| async move {
            let letters = self.read(&blob).await?;
            Ok((blob.key, letters))
        });
        Box::pin(read.try_buffer_unordered(READS_AT_ONCE))
    }

    /// The letters of blobs that were not seen before, in the folders that the filter looks into,
    /// oldest first; `seen` remembers keys. Without `reading` they are only remembered.
    ///
    /// # Errors
    /// When the container cannot be read.
    pub(crate) async fn unseen(
        &self,
        filter: &Filter,
        seen: &mut HashSet<String>,
        reading: bool,
    ) -> anyhow::Result<Vec<StoredDeadLetter>> {
        let blobs: Vec<Blob> = self.blobs(filter).try_collect().await?;
        let new: Vec<Blob> =
            blobs.into_iter().filter(|blob| seen.insert(blob.key.clone()) && reading).collect();
        let reads = stream::iter(&new).map(|blob| self.read(blob)).buffered(READS_AT_ONCE);
        let letters: Vec<Vec<StoredDeadLetter>> = reads.try_collect().await?;
        let mut letters: Vec<StoredDeadLetter> = letters.into_iter().flatten().collect();
        letters.sort_by_key(|letter| (decided_ms(letter), letter.id));
        Ok(letters)
    }

    /// The letters of a blob; none of one that is gone meanwhile or is no dead letter.
    async fn read(&self, blob: &Blob) -> anyhow::Result<Vec<StoredDeadLetter>> {
        let Some(bytes) = self.place.get(&blob.key).await? else { return Ok(Vec::new()) };
        Ok(read(&blob.key, &self.place.prefix, &bytes).unwrap_or_else(|problem| {
            let mut strange = self.strange.lock().unwrap_or_else(PoisonError::into_inner);
            strange.blobs += 1;
            strange.example = problem;
            Vec::new()
        }))
    }

    /// The letters of the blob of this key.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub(crate) async fn of_key(&self, key: &str) -> anyhow::Result<Vec<StoredDeadLetter>> {
        read(key, &self.place.prefix, &self.bytes(key).await?).map_err(anyhow::Error::msg)
    }

    /// The bytes of the blob of this key.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub(crate) async fn bytes(&self, key: &str) -> anyhow::Result<Vec<u8>> {
        let bytes = self.place.get(key).await?;
        bytes.ok_or_else(|| anyhow::anyhow!("{} holds no {key}", self.place.name))
    }

    /// The one letter of this id, or of an id that begins like this; nothing when there is none.
    ///
    /// # Errors
    /// When several begin like this, or the container cannot be read.
    pub(crate) async fn one(&self, id: &str) -> anyhow::Result<Option<StoredDeadLetter>> {
        let mut found = self.find(&[id.to_owned()]).await?;
        if found.len() > 1 {
            let all: Vec<String> =
                found.iter().map(|letter| format!("  {}  {}", letter.id, letter.key)).collect();
            bail!("several letters are meant by {id}:\n{}", all.join("\n"));
        }
        Ok(found.pop())
    }

    /// The letters of these ids, beginnings of ids, keys, or ids of events; each once.
    ///
    /// # Errors
    /// When the container cannot be read, or a key names no blob.
    pub(crate) async fn find(&self, wanted: &[String]) -> anyhow::Result<Vec<StoredDeadLetter>> {
        let mut found: HashMap<Uuid, StoredDeadLetter> = HashMap::new();
        let mut unfound: HashSet<&str> = HashSet::new();
        for wanted in wanted {
            match self.key(wanted) {
                Some(key) => found
                    .extend(self.of_key(&key).await?.into_iter().map(|letter| (letter.id, letter))),
                None => _ = unfound.insert(wanted),
            }
        }
        if !unfound.is_empty() {
            self.find_by_name(&mut unfound, &mut found).await?;
        }
        if !unfound.is_empty() {
            self.find_inside(&unfound, &mut found).await?;
        }
        let mut found: Vec<StoredDeadLetter> = found.into_values().collect();
        found.sort_by_key(|letter| std::cmp::Reverse((decided_ms(letter), letter.id)));
        Ok(found)
    }

    /// A blob bears the id of its letter, unless it holds several.
    async fn find_by_name(
        &self,
        unfound: &mut HashSet<&str>,
        found: &mut HashMap<Uuid, StoredDeadLetter>,
    ) -> anyhow::Result<()> {
        let all = Filter::default();
        let mut blobs = std::pin::pin!(self.blobs(&all));
        let mut named = HashSet::new();
        while let Some(blob) = blobs.try_next().await? {
            let name = stem(&blob.key);
            let Some(wanted) = unfound.iter().find(|wanted| is_of(wanted, name)) else { continue };
            named.insert(*wanted);
            for letter in self.read(&blob).await? {
                found.entry(letter.id).or_insert(letter);
            }
        }
        unfound.retain(|wanted| !named.contains(wanted));
        Ok(())
    }

    /// Letters that share a blob, and ids of events, are found by reading everything.
    async fn find_inside(
        &self,
        unfound: &HashSet<&str>,
        found: &mut HashMap<Uuid, StoredDeadLetter>,
    ) -> anyhow::Result<()> {
        let all = Filter::default();
        let mut letters = self.all(&all);
        while let Some(letter) = letters.try_next().await? {
            let id = letter.id.to_string();
            let of_event = letter.event_id.as_deref().is_some_and(|event| unfound.contains(event));
            if of_event || unfound.iter().any(|wanted| is_of(wanted, &id)) {
                found.entry(letter.id).or_insert(letter);
            }
        }
        Ok(())
    }

    /// The key that is meant, if it is one: `s3://bucket/key`, a path of a file in the container,
    /// or the key itself.
    fn key(&self, wanted: &str) -> Option<String> {
        let bucket = self
            .place
            .name
            .strip_suffix(&self.place.prefix)
            .unwrap_or(&self.place.name)
            .trim_end_matches('/');
        let key = wanted.strip_prefix(bucket).map_or(wanted, |key| key.trim_start_matches('/'));
        let key = key.strip_prefix("./").unwrap_or(key);
        (key.contains('/') && key.ends_with(".json")).then(|| key.to_owned())
    }

    /// How many letters there are of what.
    ///
    /// # Errors
    /// When the container cannot be read.
    pub(crate) async fn stats(&self, filter: &Filter) -> anyhow::Result<Stats> {
        let letters = self.all(filter);
        letters
            .try_fold(Stats::default(), |mut stats, letter| {
                stats.add(&letter);
                ready(Ok(stats))
            })
            .await
    }

    /// The letters by their cause, the most frequent first.
    ///
    /// # Errors
    /// When the container cannot be read.
    pub(crate) async fn causes(&self, filter: &Filter) -> anyhow::Result<Vec<Cause>> {
        let letters = self.all(filter);
        let causes = letters.try_fold(Causes::default(), |mut causes, letter| {
            causes.add(&letter);
            ready(Ok(causes))
        });
        Ok(causes.await?.sorted())
    }

    /// Which of these letters were sent again, by the newest job that did.
    ///
    /// # Errors
    /// When the ledgers cannot be read.
    pub(crate) async fn replayed(&self, ids: &[Uuid]) -> anyhow::Result<HashMap<Uuid, Replayed>> {
        replay::jobs::replayed(&self.place, Some(ids)).await
    }

    /// Every letter that was sent again, by the newest job that did.
    ///
    /// # Errors
    /// When the ledgers cannot be read.
    pub(crate) async fn all_replayed(&self) -> anyhow::Result<HashMap<Uuid, Replayed>> {
        replay::jobs::replayed(&self.place, None).await
    }

    /// Every job of replays, oldest first.
    ///
    /// # Errors
    /// When the ledgers cannot be read.
    pub(crate) async fn jobs(&self) -> anyhow::Result<Vec<Job>> {
        replay::jobs::jobs(&self.place).await
    }
}

/// Whether this is the id, or a beginning of it that is long enough.
pub(crate) fn is_of(wanted: &str, id: &str) -> bool {
    wanted == id || (wanted.len() >= ID_PREFIX_MIN && id.starts_with(&wanted.to_ascii_lowercase()))
}
