//! Letters kept in memory, for who looks again and again.
//!
//! A verb reads what it needs and ends; a page is looked at from many sides, and twenty thousand
//! blobs are not to be read for each of them. A blob never changes once it is written, so what was
//! read once is read no more: reading again costs the listing and the blobs that are new.
//!
//! Promises: reads with the same eyes as the verbs; holds at most [`LETTERS_MAX`] letters, without
//! their events, and says when there are more; of what a filter does not mean it holds at most
//! [`KEYS_MAX`] keys. Does not hold what only a look at one letter needs.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use adapters::machine::Machine;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::ports::Clock as _;
use futures::stream::TryStreamExt as _;
use uuid::Uuid;

use super::filter::{Filter, decided_ms};
use super::ledger::Replayed;
use super::{Letters, READS_AT_ONCE};

/// A shelf holds no more: about 4.4 KB each, measured with 200,000 letters.
pub(crate) const LETTERS_MAX: usize = 100_000;
/// So many blobs without a letter that is meant are remembered by their key; others are read again.
const KEYS_MAX: usize = 200_000;
/// Of a response so much is kept; our own blobs hold less.
const RESPONSE_MAX_CHARS: usize = 4_096;

/// Letters as they were at some moment.
pub(crate) struct Shelf {
    /// Newest first, each once; without event, headers, and all of the history but its end.
    pub(crate) letters: Vec<Arc<StoredDeadLetter>>,
    /// Those of them that were sent again.
    pub(crate) replayed: HashMap<Uuid, Replayed>,
    /// Whether there are more letters than a shelf holds; the oldest are missing, roughly.
    pub(crate) is_cut: bool,
    /// When reading them had ended.
    pub(crate) read_ms: u64,
    /// What each blob holds that was meant.
    blobs: HashMap<String, Vec<Arc<StoredDeadLetter>>>,
    /// From when until when letters were meant.
    span_ms: (Option<u64>, Option<u64>),
}

impl Letters {
    /// The letters that are meant; what a shelf of before, by the same filter, holds is not read
    /// again. Only the span of a filter moves, with the clock; where it moved so that it may mean
    /// others, everything is read again.
    ///
    /// # Errors
    /// When the container cannot be read.
    pub(crate) async fn shelf(
        &self,
        filter: &Filter,
        before: Option<&Shelf>,
    ) -> anyhow::Result<Shelf> {
        let span_ms = (filter.since_ms, filter.until_ms);
        let before =
            before.filter(|before| before.span_ms.0 <= span_ms.0 && before.span_ms.1 == span_ms.1);
        let blobs = self.blobs(filter).map_ok(|blob| async move {
            let known = before.and_then(|before| before.blobs.get(&blob.key));
            let letters = match known {
                Some(letters) => letters.clone(),
                None => {
                    let meant =
                        self.read(&blob).await?.into_iter().filter(|letter| filter.takes(letter));
                    meant.map(|letter| Arc::new(sketch(letter))).collect()
                }
            };
            Ok((blob.key, letters))
        });
        let (mut kept, mut letters, mut seen) = (HashMap::new(), Vec::new(), HashSet::new());
        let mut blobs = std::pin::pin!(blobs.try_buffered(READS_AT_ONCE));
        let (mut is_cut, mut empty) = (false, 0);
        while let Some((key, found)) = blobs.try_next().await? {
            if letters.len() >= LETTERS_MAX {
                is_cut = true;
                break;
            }
            let meant =
                found.iter().filter(|letter| filter.takes(letter) && seen.insert(letter.id));
            letters.extend(meant.cloned());
            empty += usize::from(found.is_empty());
            if !found.is_empty() || empty <= KEYS_MAX {
                kept.insert(key, found);
            }
        }
        letters.sort_by_cached_key(|letter| Reverse((decided_ms(letter), letter.id)));
        let ids: Vec<Uuid> = letters.iter().map(|letter| letter.id).collect();
        let replayed = self.replayed(&ids).await?;
        Ok(Shelf { letters, replayed, is_cut, read_ms: Machine.now_ms(), blobs: kept, span_ms })
    }
}

#[cfg(test)]
impl Shelf {
    /// A shelf that holds one sample so many times.
    pub(crate) fn of_samples(count: usize) -> Self {
        let one = Arc::new(sketch(super::samples::letter(1)));
        let letters = std::iter::repeat_n(one, count).collect();
        let (replayed, blobs) = (HashMap::new(), HashMap::new());
        Self { letters, replayed, is_cut: false, read_ms: 0, blobs, span_ms: (None, None) }
    }
}

/// What lists and sums need of a letter.
fn sketch(letter: StoredDeadLetter) -> StoredDeadLetter {
    let beginning = |text: String| text.chars().take(RESPONSE_MAX_CHARS).collect();
    StoredDeadLetter {
        event: String::new(),
        headers: Vec::new(),
        history: letter.history.last().cloned().into_iter().collect(),
        last_response: letter.last_response.map(beginning),
        ..letter
    }
}

#[cfg(test)]
mod tests {
    use super::super::cause::Causes;
    use super::super::samples::letter;
    use super::super::stats::Stats;
    use super::*;

    #[test]
    fn a_sketch_is_listed_and_summed_up_like_its_letter() {
        let whole = letter(1);
        let sketch = sketch(whole.clone());
        assert_eq!(decided_ms(&sketch), decided_ms(&whole));
        let sums = |letter: &StoredDeadLetter| {
            let (mut stats, mut causes) = (Stats::default(), Causes::default());
            stats.add(letter);
            causes.add(letter);
            (stats, causes.sorted())
        };
        assert_eq!(sums(&sketch), sums(&whole));
        assert!(sketch.event.is_empty());
    }

    #[tokio::test]
    async fn only_what_is_meant_is_held_and_read_no_more_until_the_span_may_mean_others() {
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
        let letters = Letters::open(folder.path().to_str().unwrap()).await.unwrap();
        let until = |text: &str| Filter {
            until_ms: delivery::time::moment::parse(text),
            ..Filter::default()
        };
        let shape = |shelf: &Shelf| {
            (shelf.letters.len(), shelf.blobs.values().map(Vec::len).sum(), shelf.blobs.len())
        };
        let first = letters.shelf(&until("2026-11-20T07:02:00Z"), None).await.unwrap();
        assert_eq!(shape(&first), (1, 1, 2));
        let reads = letters.place().requests();
        let again = letters.shelf(&until("2026-11-20T07:02:00Z"), Some(&first)).await.unwrap();
        let listing = letters.place().requests() - reads;
        assert_eq!(shape(&again), (1, 1, 2));
        let later = letters.shelf(&until("2026-11-20T07:03:00Z"), Some(&again)).await.unwrap();
        assert_eq!(shape(&later), (2, 2, 2));
        assert_eq!(letters.place().requests() - reads, 2 * listing + 2);
    }
}
