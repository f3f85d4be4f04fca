//! Keeps dead letters in memory, for repeated look-ups.
//!
//! A command reads once and ends, but a page of the console is reloaded often, and must not read
//! twenty thousand blobs each time. Blobs never change, so no blob is read twice: a refresh only
//! costs the listing, the ledgers and the new blobs.
//!
//! Promises: filters match exactly as in the commands. The cache holds at most [`LETTERS_MAX`] dead
//! letters, without their events, and reports if there are more. It holds at most [`KEYS_MAX`] keys
//! of blobs without a match. It omits details that only the page of a single dead letter needs.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use adapters::machine::Machine;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::ports::Clock as _;
use futures::stream::TryStreamExt as _;

use crate::cause::{Causes, KnownCause, cause_id};
use crate::dead_letters::{DeadLetters, READS_AT_ONCE, identity};
use crate::facts::decided_ms;
use crate::filter::Filter;
use crate::state::LetterStates;

/// Maximum number of dead letters in a cache. Each takes about 4.4 KB of memory, as measured with
/// 200,000 dead letters.
pub const LETTERS_MAX: usize = 100_000;
/// Maximum number of remembered keys of blobs without a match. Further blobs are read again.
const KEYS_MAX: usize = 200_000;

/// A snapshot of the dead letters of a container.
#[derive(Default)]
pub struct LetterCache {
    /// The summaries of the matching dead letters in any state, newest first, without duplicates.
    pub letters: Vec<Arc<StoredDeadLetter>>,
    /// The states of all dead letters of the container, read at the same time.
    pub states: Arc<LetterStates>,
    /// True if the container has more dead letters than the cache holds. Roughly the oldest are
    /// missing.
    pub is_truncated: bool,
    /// Time at which reading finished, in milliseconds since 1970.
    pub read_ms: u64,
    /// The matching dead letter of each blob, by the blob's key; `None` if the blob has no match.
    blobs: HashMap<String, Option<CachedLetter>>,
    /// The time range of the filter, `since` and `until`.
    range_ms: (Option<u64>, Option<u64>),
}

/// A dead letter and its cause. The cause is cached, because finding it takes a long time.
#[derive(Clone)]
struct CachedLetter {
    letter: Arc<StoredDeadLetter>,
    cause: Arc<KnownCause>,
}

impl CachedLetter {
    fn new(letter: StoredDeadLetter) -> Self {
        Self { cause: Arc::new(KnownCause::from_letter(&letter)), letter: Arc::new(letter) }
    }
}

impl LetterCache {
    /// Returns the dead letters that match the filter, newest first.
    #[must_use]
    pub fn matching(&self, filter: &Filter) -> Vec<&StoredDeadLetter> {
        let filter = Filter { states: Arc::clone(&self.states), ..filter.clone() };
        let matches = |letter: &&StoredDeadLetter| {
            let known = || self.cause(letter).map_or_else(|| cause_id(letter), KnownCause::id);
            filter.matches_with(letter, known)
        };
        self.letters.iter().map(Arc::as_ref).filter(matches).collect()
    }

    /// Groups dead letters of the cache by cause. Uses the cached causes.
    #[must_use]
    pub fn by_cause(&self, letters: &[&StoredDeadLetter]) -> Causes {
        let mut causes = Causes::default();
        for letter in letters {
            match self.cause(letter) {
                Some(cause) => causes.add_known(letter, cause),
                None => causes.add(letter),
            }
        }
        causes
    }

    /// Returns the cached cause of a dead letter.
    fn cause(&self, letter: &StoredDeadLetter) -> Option<&KnownCause> {
        self.blobs.get(&letter.key)?.as_ref().map(|cached| cached.cause.as_ref())
    }
}

impl DeadLetters {
    /// Reads the dead letters that match the filter, in any state. Does not read the blobs in
    /// `before` again if its time range has the same end and does not begin later. Otherwise, reads
    /// everything again. Except for the time range, `before` must have the same filter.
    ///
    /// # Errors
    /// Fails if the container cannot be read.
    pub async fn cache(
        &self,
        filter: &Filter,
        before: Option<&LetterCache>,
    ) -> anyhow::Result<LetterCache> {
        let filter = &filter.clone().of_any_state();
        let range_ms = (filter.since_ms, filter.until_ms);
        let before = before
            // `None` (no limit) sorts before every time, so this comparison also accepts a cache
            // without a beginning.
            .filter(|before| before.range_ms.0 <= range_ms.0 && before.range_ms.1 == range_ms.1);
        let blobs = self.blobs(filter).map_ok(|blob| async move {
            let known = before.and_then(|before| before.blobs.get(&blob.key));
            let cached = match known {
                Some(cached) => cached.clone(),
                None => {
                    let letter = self.summary(&blob).await?;
                    letter.filter(|letter| filter.matches(letter)).map(CachedLetter::new)
                }
            };
            Ok((blob.key, cached))
        });
        let (mut kept, mut letters, mut seen) = (HashMap::new(), Vec::new(), HashSet::new());
        let mut blobs = std::pin::pin!(blobs.try_buffered(READS_AT_ONCE));
        let (mut is_truncated, mut empty) = (false, 0);
        while let Some((key, found)) = blobs.try_next().await? {
            if letters.len() >= LETTERS_MAX {
                is_truncated = true;
                break;
            }
            // Filter again, because the range of `before` may have begun earlier.
            let letter = found.as_ref().map(|cached| &cached.letter);
            let is_new = |letter: &&Arc<StoredDeadLetter>| {
                filter.matches(letter) && seen.insert(identity(letter))
            };
            letters.extend(letter.filter(is_new).cloned());
            empty += usize::from(found.is_none());
            if found.is_some() || empty <= KEYS_MAX {
                kept.insert(key, found);
            }
        }
        letters.sort_by_cached_key(|letter| Reverse((decided_ms(letter), letter.id)));
        let states = Arc::new(self.states().await?);
        let read_ms = Machine.now_ms();
        Ok(LetterCache { letters, states, is_truncated, read_ms, blobs: kept, range_ms })
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::container::DeadLetterContainer;

    #[tokio::test]
    async fn only_matches_are_held_and_not_read_again_until_the_time_range_may_match_more() {
        let folder = tempfile::tempdir().unwrap();
        for (number, minute) in [(1, 1), (2, 2)] {
            let (id, at) = (Uuid::from_u128(number), format!("2026-11-20T07:0{minute}:00Z"));
            let path = folder.path().join(format!("shop/orders/billing/2026/11/20/7/{id}.json"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let about = format!(
                r#"{{"deadletterid":"{id}","deadletterreasoncode":"BadRequest","publishutc":"{at}"}}"#
            );
            std::fs::write(path, format!(r#"{{"event":{{}},"deadletterProperties":{about}}}"#))
                .unwrap();
        }
        let letters =
            DeadLetters::new(DeadLetterContainer::folder(folder.path().to_str().unwrap()).unwrap());
        let until = |text: &str| Filter {
            until_ms: delivery::time::moment::parse(text),
            ..Filter::default()
        };
        let shape = |cache: &LetterCache| {
            (cache.letters.len(), cache.blobs.values().flatten().count(), cache.blobs.len())
        };
        let first = letters.cache(&until("2026-11-20T07:02:00Z"), None).await.unwrap();
        assert_eq!(shape(&first), (1, 1, 2));
        let reads = letters.container.requests();
        let again = letters.cache(&until("2026-11-20T07:02:00Z"), Some(&first)).await.unwrap();
        let listing = letters.container.requests() - reads;
        assert_eq!(shape(&again), (1, 1, 2));
        let later = letters.cache(&until("2026-11-20T07:03:00Z"), Some(&again)).await.unwrap();
        assert_eq!(shape(&later), (2, 2, 2));
        assert_eq!(letters.container.requests() - reads, 2 * listing + 2);
    }
}
