//! Caches the dead letters of a container for the pages.
//!
//! A separate task reads the container. A request waits for the task briefly, then shows the
//! previous result or, during the first reading, the progress. Requests for the same dead letters
//! share one reading.
//!
//! The cache of the whole container has the scope [`WHOLE`]. If the container exceeds the limit of
//! a cache, each of the most recently used filters has a cache of its own. The limit on the number
//! of dead letters in one cache also applies to the sum of these caches.

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

use crate::console::shell::error::PageError;
use crate::console::shell::query::{Query, href};

/// The maximum age of the cached data that a list shows.
pub(in crate::console) const LIST_MAX_AGE_MS: u64 = 30 * SECOND_MS;
/// The maximum age of the cached data from which the dead letters of a replay are counted.
pub(in crate::console) const COUNT_MAX_AGE_MS: u64 = 5 * SECOND_MS;
/// The maximum time for which a request waits if there is no previous result, or if an action has
/// made the previous result stale.
const READ_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum time for which a request waits if it can show the previous result. The time is short
/// because an old result does no harm. The page shows its age, a list updates itself, and a replay
/// reads again before it starts.
const REREAD_TIMEOUT: Duration = Duration::from_millis(300);
/// The maximum number of caches of a container.
const CACHES_MAX: usize = 4;
/// The scope of the cache of the whole container.
const WHOLE: &str = "";

/// The result of reading a container, which all waiting requests share.
type ReadResult = Result<Arc<LetterCache>, PageError>;
/// A reading of a container that is in progress. All waiting requests share it.
type Reading = Shared<BoxFuture<'static, ReadResult>>;

/// The cache for a request, or the progress if the first reading is not finished.
pub(in crate::console) enum CacheState {
    Ready(Arc<LetterCache>),
    /// The first reading is in progress. Contains the number of storage requests so far.
    Reading(u64),
}

/// Determines how long a request waits for the container to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::console) enum WaitMode {
    /// Waits for at most [`READ_TIMEOUT`] or [`REREAD_TIMEOUT`], then returns the previous cache or
    /// the progress.
    Briefly,
    /// Waits until the reading has finished.
    UntilRead,
}

/// The caches of a container.
pub(in crate::console) struct LetterCaches {
    letters: DeadLetters,
    entries: Mutex<VecDeque<CacheEntry>>,
}

/// A cache, and its scope: the filters for which it was read.
struct CacheEntry {
    scope: String,
    cache: Option<Arc<LetterCache>>,
    is_stale: bool,
    reading: Option<Reading>,
}

/// A reading, and the maximum time for which a request waits for it.
struct PendingRead {
    reading: Reading,
    timeout: Duration,
}

impl LetterCaches {
    pub(in crate::console) fn new(letters: &DeadLetters) -> Self {
        Self { letters: letters.clone(), entries: Mutex::default() }
    }

    /// Returns a cache of at most this age that contains all matching dead letters. The cache may
    /// also contain dead letters that do not match.
    ///
    /// # Errors
    /// If the container cannot be read.
    pub(in crate::console) async fn matching(
        &self,
        query: &Query,
        filter: &Filter,
        max_age_ms: u64,
        wait: WaitMode,
    ) -> Result<CacheState, PageError> {
        let whole = self.whole(max_age_ms, wait).await?;
        match whole {
            CacheState::Ready(cache) if cache.is_truncated && !query.is_all() => {
                self.load(href("", query.filters()), filter, max_age_ms, wait).await
            }
            CacheState::Ready(_) | CacheState::Reading(_) => Ok(whole),
        }
    }

    /// Returns a cache of the whole container, of at most this age.
    ///
    /// # Errors
    /// If the container cannot be read.
    pub(in crate::console) async fn whole(
        &self,
        max_age_ms: u64,
        wait: WaitMode,
    ) -> Result<CacheState, PageError> {
        self.load(WHOLE.to_owned(), &Filter::default(), max_age_ms, wait).await
    }

    /// Returns the key of the blob with this dead letter, if a cache contains it. The blob may have
    /// been removed since.
    pub(in crate::console) fn key_of(&self, id: Uuid) -> Option<String> {
        let entries = self.entries();
        let caches = entries.iter().filter_map(|entry| entry.cache.as_ref());
        let mut letters = caches.flat_map(|cache| cache.letters.iter());
        letters.find(|letter| letter.id == id).map(|letter| letter.key.clone())
    }

    /// Returns the cache for these filters, whatever its age. Never reads the container.
    pub(in crate::console) fn held(&self, query: &Query) -> Option<Arc<LetterCache>> {
        let entries = self.entries();
        let find = |scope: &str| entries.iter().find(|entry| entry.scope == scope)?.cache.clone();
        let whole = find(WHOLE).filter(|cache| !cache.is_truncated || query.is_all());
        whole.or_else(|| find(&href("", query.filters())))
    }

    /// Marks all caches as stale, so that the next request reads the container again.
    pub(in crate::console) fn expire(&self) {
        self.entries().iter_mut().for_each(|entry| entry.is_stale = true);
    }

    async fn load(
        &self,
        scope: String,
        filter: &Filter,
        max_age_ms: u64,
        wait: WaitMode,
    ) -> Result<CacheState, PageError> {
        let oldest_ms = Machine.now_ms().saturating_sub(max_age_ms);
        let PendingRead { reading, timeout } = match self.find_or_read(&scope, filter, oldest_ms) {
            Ok(cache) => return Ok(CacheState::Ready(cache)),
            Err(pending) => pending,
        };
        let read = match wait {
            WaitMode::UntilRead => reading.clone().await,
            WaitMode::Briefly => match tokio::time::timeout(timeout, reading.clone()).await {
                Ok(read) => read,
                Err(_) => return Ok(self.while_reading(&scope)),
            },
        };
        let mut entries = self.entries();
        // Another request may have stored this result already, and started the next reading.
        if let Some(entry) = entries.iter_mut().find(|entry| entry.scope == scope)
            && entry.reading.as_ref().is_some_and(|own| own.ptr_eq(&reading))
        {
            // Clear the reading after a failure too, so that the next request tries again.
            entry.reading = None;
            if let Ok(cache) = &read {
                (entry.cache, entry.is_stale) = (Some(Arc::clone(cache)), false);
            }
        }
        read.map(CacheState::Ready)
    }

    /// Returns a cache that is fresh enough, or starts or joins the reading that produces it.
    fn find_or_read(
        &self,
        scope: &str,
        filter: &Filter,
        oldest_ms: u64,
    ) -> Result<Arc<LetterCache>, PendingRead> {
        let mut entries = self.entries();
        let at = entries.iter().position(|entry| entry.scope == scope);
        let new =
            || CacheEntry { scope: scope.to_owned(), cache: None, is_stale: false, reading: None };
        let mut entry = at.and_then(|at| entries.remove(at)).unwrap_or_else(new);
        // Store the result of a reading for which no request has waited to the end. The result may
        // already be too old.
        if let Some(read) = entry.reading.as_ref().and_then(|reading| reading.peek().cloned()) {
            entry.reading = None;
            if let Ok(cache) = read {
                (entry.cache, entry.is_stale) = (Some(cache), false);
            }
        }
        let is_fresh = |cache: &Arc<LetterCache>| cache.read_ms >= oldest_ms && !entry.is_stale;
        let found = match entry.cache.clone().filter(is_fresh) {
            Some(cache) => Ok(cache),
            None => {
                let is_shown = entry.cache.is_some() && !entry.is_stale;
                let start = || self.read(filter, entry.cache.clone());
                let reading = entry.reading.get_or_insert_with(start).clone();
                Err(PendingRead {
                    reading,
                    timeout: if is_shown { REREAD_TIMEOUT } else { READ_TIMEOUT },
                })
            }
        };
        // The most recently used entry is at the front; eviction drops entries from the back.
        entries.push_front(entry);
        evict(&mut entries);
        found
    }

    fn read(&self, filter: &Filter, before: Option<Arc<LetterCache>>) -> Reading {
        let (letters, filter) = (self.letters.clone(), filter.clone());
        // Use a separate task, so that the reading continues if the request that started it is
        // cancelled.
        let reading =
            tokio::spawn(
                async move { letters.cache(&filter, before.as_deref()).await.map(Arc::new) },
            );
        let read = async move {
            reading.await.unwrap_or_else(|error| Err(error.into())).map_err(PageError::storage)
        };
        read.boxed().shared()
    }

    /// Returns the previous cache, or the progress of the first reading.
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

/// Drops the least recently used caches if there are too many, or if they contain too many dead
/// letters. Keeps the cache used last.
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
    use std::future::pending;

    use super::*;

    fn entry(scope: &str, letters: usize) -> CacheEntry {
        let key = "a/b/c/2026/11/20/7/00000000-0000-0000-0000-000000000001.json";
        let blob = br#"{"event":{},"deadletterProperties":{"deadletterreasoncode":"A"}}"#;
        let letter = delivery::deadletter::stored::read(key, "", blob).unwrap();
        let mut cache = LetterCache::default();
        cache.letters = std::iter::repeat_n(Arc::new(letter), letters).collect();
        let cache = Some(Arc::new(cache));
        CacheEntry { scope: scope.to_owned(), cache, is_stale: false, reading: None }
    }

    #[tokio::test]
    async fn a_request_waits_less_if_it_can_show_the_previous_result() {
        let folder =
            deadletters::container::DeadLetterContainer::folder(env!("CARGO_MANIFEST_DIR"))
                .unwrap();
        let caches = LetterCaches::new(&DeadLetters::new(folder));
        for (is_held, is_stale, timeout) in [
            (false, false, READ_TIMEOUT),
            (true, false, REREAD_TIMEOUT),
            (true, true, READ_TIMEOUT),
        ] {
            let cache = is_held.then(|| Arc::new(LetterCache::default()));
            let reading = Some(pending::<ReadResult>().boxed().shared());
            let scope = WHOLE.to_owned();
            *caches.entries() = [CacheEntry { scope, cache, is_stale, reading }].into();
            let found = caches.find_or_read(WHOLE, &Filter::default(), u64::MAX);
            let waited = found.err().map(|pending| pending.timeout);
            assert_eq!(waited, Some(timeout), "held: {is_held}, stale: {is_stale}");
        }
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
