//! What the page has read, and whether it is fresh enough to be shown.
//!
//! A container is read in a task of its own: a request waits for it briefly, and is then shown what
//! was read before, or how far reading is. Requests for the same dead letters share one reading.
//! Kept are the whole container and, where that is more than a cache holds, the last few filters:
//! together no more dead letters than one cache beside the whole.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adapters::machine::Machine;
use deadletters::DeadLetters;
use deadletters::filter::Filter;
use deadletters::letter_cache::{LETTERS_MAX, LetterCache};
use delivery::ports::Clock as _;
use delivery::time::duration::SECOND_MS;
use futures::future::{BoxFuture, FutureExt as _, Shared};
use uuid::Uuid;

use super::error::PageError;
use super::query::{Query, href};

/// How old a list may be.
pub(super) const LIST_MAX_AGE_MS: u64 = 30 * SECOND_MS;
/// How old the count of a replay may be.
pub(super) const COUNT_MAX_AGE_MS: u64 = 5 * SECOND_MS;
/// How long a request waits for a reading before it is shown how far that is.
const READ_TIMEOUT: Duration = Duration::from_secs(2);
/// The most caches that are kept.
const CACHES_MAX: usize = 4;
/// The scope of the cache of the whole container.
const WHOLE: &str = "";

/// The result of a reading, for all who wait.
type ReadResult = Result<Arc<LetterCache>, PageError>;
/// A reading under way, for all who wait.
type Reading = Shared<BoxFuture<'static, ReadResult>>;

/// What a request gets.
pub(super) enum CacheState {
    Ready(Arc<LetterCache>),
    /// Being read for the first time; so many storage requests were made so far.
    Reading(u64),
}

/// How long a request waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitMode {
    /// Briefly, then it gets what there is.
    Briefly,
    /// Until everything is read.
    UntilRead,
}

/// The caches of a container.
pub(super) struct LetterCaches {
    letters: DeadLetters,
    entries: Mutex<VecDeque<CacheEntry>>,
}

/// One cache, with the filters that it was read for.
struct CacheEntry {
    scope: String,
    cache: Option<Arc<LetterCache>>,
    is_stale: bool,
    reading: Option<Reading>,
}

impl LetterCaches {
    pub(super) fn new(letters: &DeadLetters) -> Self {
        Self { letters: letters.clone(), entries: Mutex::default() }
    }

    /// A cache with all matching dead letters, and perhaps others, no older than this.
    ///
    /// # Errors
    /// When the container cannot be read.
    pub(super) async fn matching(
        &self,
        query: &Query,
        filter: &Filter,
        max_age_ms: u64,
        wait: WaitMode,
    ) -> Result<CacheState, PageError> {
        let whole = self.whole(max_age_ms, wait).await?;
        match whole {
            CacheState::Ready(cache) if cache.is_truncated && !query.is_all() => {
                self.of(href("", query.filters()), filter, max_age_ms, wait).await
            }
            CacheState::Ready(_) | CacheState::Reading(_) => Ok(whole),
        }
    }

    /// The cache of the whole container, no older than this.
    ///
    /// # Errors
    /// When the container cannot be read.
    pub(super) async fn whole(
        &self,
        max_age_ms: u64,
        wait: WaitMode,
    ) -> Result<CacheState, PageError> {
        self.of(WHOLE.to_owned(), &Filter::default(), max_age_ms, wait).await
    }

    /// The key of the blob that a dead letter was in.
    pub(super) fn key_of(&self, id: Uuid) -> Option<String> {
        let entries = self.entries();
        let caches = entries.iter().filter_map(|entry| entry.cache.as_ref());
        let mut letters = caches.flat_map(|cache| cache.letters.iter());
        letters.find(|letter| letter.id == id).map(|letter| letter.key.clone())
    }

    /// What was read for these filters, however old; nothing is read for it.
    pub(super) fn held(&self, query: &Query) -> Option<Arc<LetterCache>> {
        let entries = self.entries();
        let of = |scope: &str| entries.iter().find(|entry| entry.scope == scope)?.cache.clone();
        let whole = of(WHOLE).filter(|cache| !cache.is_truncated || query.is_all());
        whole.or_else(|| of(&href("", query.filters())))
    }

    /// Makes the next request read everything again.
    pub(super) fn expire(&self) {
        self.entries().iter_mut().for_each(|entry| entry.is_stale = true);
    }

    async fn of(
        &self,
        scope: String,
        filter: &Filter,
        max_age_ms: u64,
        wait: WaitMode,
    ) -> Result<CacheState, PageError> {
        let oldest_ms = Machine.now_ms().saturating_sub(max_age_ms);
        let reading = match self.find_or_read(&scope, filter, oldest_ms) {
            Ok(cache) => return Ok(CacheState::Ready(cache)),
            Err(reading) => reading,
        };
        let read = match wait {
            WaitMode::UntilRead => reading.clone().await,
            WaitMode::Briefly => match tokio::time::timeout(READ_TIMEOUT, reading.clone()).await {
                Ok(read) => read,
                Err(_) => return Ok(self.while_reading(&scope)),
            },
        };
        let mut entries = self.entries();
        // Another request may have stored this reading already, and started the next one.
        if let Some(entry) = entries.iter_mut().find(|entry| entry.scope == scope)
            && entry.reading.as_ref().is_some_and(|own| own.ptr_eq(&reading))
        {
            // After a failure as well: the next request tries again.
            entry.reading = None;
            if let Ok(cache) = &read {
                (entry.cache, entry.is_stale) = (Some(Arc::clone(cache)), false);
            }
        }
        read.map(CacheState::Ready)
    }

    /// A cache that is fresh, or the reading that makes it so.
    fn find_or_read(
        &self,
        scope: &str,
        filter: &Filter,
        oldest_ms: u64,
    ) -> Result<Arc<LetterCache>, Reading> {
        let mut entries = self.entries();
        let at = entries.iter().position(|entry| entry.scope == scope);
        let new =
            || CacheEntry { scope: scope.to_owned(), cache: None, is_stale: false, reading: None };
        let mut entry = at.and_then(|at| entries.remove(at)).unwrap_or_else(new);
        let is_fresh = |cache: &Arc<LetterCache>| cache.read_ms >= oldest_ms && !entry.is_stale;
        let found = match entry.cache.clone().filter(is_fresh) {
            Some(cache) => Ok(cache),
            None => {
                let start = || self.read(filter, entry.cache.clone());
                Err(entry.reading.get_or_insert_with(start).clone())
            }
        };
        // The one used last is at the front; the oldest are dropped from the back.
        entries.push_front(entry);
        evict(&mut entries);
        found
    }

    fn read(&self, filter: &Filter, before: Option<Arc<LetterCache>>) -> Reading {
        let (letters, filter) = (self.letters.clone(), filter.clone());
        // A task of its own continues when the request that started it is cancelled.
        let reading =
            tokio::spawn(
                async move { letters.cache(&filter, before.as_deref()).await.map(Arc::new) },
            );
        let read = async move {
            reading.await.unwrap_or_else(|error| Err(error.into())).map_err(PageError::storage)
        };
        read.boxed().shared()
    }

    /// What can be shown while a reading is under way.
    fn while_reading(&self, scope: &str) -> CacheState {
        let entries = self.entries();
        let entry = entries.iter().find(|entry| entry.scope == scope);
        match entry.and_then(|entry| entry.cache.clone()) {
            Some(cache) => CacheState::Ready(cache),
            None => CacheState::Reading(self.letters.container.requests()),
        }
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<CacheEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops the filters that were used longest ago, where they are too many or hold too many dead
/// letters. The last one used stays.
fn evict(entries: &mut VecDeque<CacheEntry>) {
    entries.truncate(CACHES_MAX);
    let (mut held, mut is_first) = (0, true);
    entries.retain(|entry| {
        let is_exempt = std::mem::take(&mut is_first) || entry.scope == WHOLE;
        if entry.scope != WHOLE {
            held += entry.cache.as_ref().map_or(0, |cache| cache.letters.len());
        }
        is_exempt || held <= LETTERS_MAX
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(scope: &str, letters: usize) -> CacheEntry {
        let key = "a/b/c/2026/11/20/7/00000000-0000-0000-0000-000000000001.json";
        let blob = br#"{"event":{},"deadletterProperties":{"deadletterreasoncode":"A"}}"#;
        let letter = delivery::deadletter::stored::read(key, "", blob).unwrap().remove(0);
        let mut cache = LetterCache::default();
        cache.letters = std::iter::repeat_n(Arc::new(letter), letters).collect();
        let cache = Some(Arc::new(cache));
        CacheEntry { scope: scope.to_owned(), cache, is_stale: false, reading: None }
    }

    #[test]
    fn filters_together_hold_no_more_than_one_cache_beside_the_whole() {
        let (most, half) = (LETTERS_MAX, LETTERS_MAX / 2);
        for (there, stay) in [
            (&[("a", 1), ("", most), ("b", 1), ("c", 1), ("d", 1)][..], &["a", "", "b", "c"][..]),
            (&[("a", half), ("", most), ("b", half), ("c", 1)], &["a", "", "b"]),
            (&[("a", most), ("b", 1), ("", most)], &["a", ""]),
            (&[("", most), ("a", most), ("b", 1)], &["", "a"]),
        ] {
            let mut all: VecDeque<CacheEntry> =
                there.iter().map(|(scope, letters)| entry(scope, *letters)).collect();
            evict(&mut all);
            assert_eq!(
                all.iter().map(|entry| entry.scope.as_str()).collect::<Vec<_>>(),
                stay,
                "{there:?}"
            );
        }
    }
}
