//! What the page has read, and whether it is fresh enough to be shown.
//!
//! A reading runs by itself: whoever asks waits a moment for it, and is then shown what was read
//! before, or told how far it is. Requests for the same letters share one reading. Kept are the
//! whole container and, where that is more than a shelf holds, the last few filters: together no
//! more letters than one shelf beside the whole.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use delivery::time::duration::SECOND_MS;
use futures::future::{BoxFuture, FutureExt as _, Shared};
use uuid::Uuid;

use super::query::{Query, href};
use crate::letters::Letters;
use crate::letters::filter::Filter;
use crate::letters::shelf::{LETTERS_MAX, Shelf};

/// What was read is shown for so long without a look at the container.
pub(super) const SHOWN_MS: u64 = 30 * SECOND_MS;
/// What is counted for a replay is not older than that.
pub(super) const COUNTED_MS: u64 = 5 * SECOND_MS;
/// A reading is waited for no longer than that before it is told how far it is.
const PATIENCE: Duration = Duration::from_secs(2);
/// So many shelves are kept.
const SHELVES_MAX: usize = 4;
/// The scope of the shelf of the whole container.
const WHOLE: &str = "";

/// What reading came to; errors are shared by all who wait.
type Read = Result<Arc<Shelf>, Arc<anyhow::Error>>;

/// What there is to be shown.
pub(super) enum Seen {
    There(Arc<Shelf>),
    /// Being read, and nothing was read before; so many requests were made so far.
    Reading(u64),
}

/// Whether somebody may be told to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// Shown what there is after a moment.
    Moment,
    /// Waits until it is read.
    Endless,
}

/// What was read of a container.
pub(super) struct Shelves {
    letters: Letters,
    kept: Mutex<VecDeque<Kept>>,
}

/// One shelf, by the filters that it was read for.
struct Kept {
    scope: String,
    shelf: Option<Arc<Shelf>>,
    is_stale: bool,
    reading: Option<Shared<BoxFuture<'static, Read>>>,
}

impl Shelves {
    pub(super) fn new(letters: &Letters) -> Self {
        Self { letters: letters.clone(), kept: Mutex::default() }
    }

    /// A shelf that holds what is meant, and perhaps more; read no longer ago than this.
    ///
    /// # Errors
    /// When the container cannot be read.
    pub(super) async fn seen(
        &self,
        query: &Query,
        filter: &Filter,
        age_ms: u64,
        patience: Patience,
    ) -> Result<Seen, Arc<anyhow::Error>> {
        let whole = self.whole(age_ms, patience).await?;
        match whole {
            Seen::There(shelf) if shelf.is_cut && !query.is_all() => {
                self.of(href("", query.filters()), filter, age_ms, patience).await
            }
            Seen::There(_) | Seen::Reading(_) => Ok(whole),
        }
    }

    /// The shelf of the whole container; read no longer ago than this.
    ///
    /// # Errors
    /// When the container cannot be read.
    pub(super) async fn whole(
        &self,
        age_ms: u64,
        patience: Patience,
    ) -> Result<Seen, Arc<anyhow::Error>> {
        self.of(WHOLE.to_owned(), &Filter::default(), age_ms, patience).await
    }

    /// The key of the blob that a letter stood in.
    pub(super) fn key_of(&self, id: Uuid) -> Option<String> {
        let kept = self.kept();
        let mut letters =
            kept.iter().filter_map(|kept| kept.shelf.as_ref()).flat_map(|shelf| &shelf.letters);
        letters.find(|letter| letter.id == id).map(|letter| letter.key.clone())
    }

    /// Whatever was read has to be read again.
    pub(super) fn expire(&self) {
        self.kept().iter_mut().for_each(|kept| kept.is_stale = true);
    }

    async fn of(
        &self,
        scope: String,
        filter: &Filter,
        age_ms: u64,
        patience: Patience,
    ) -> Result<Seen, Arc<anyhow::Error>> {
        let oldest_ms = Machine.now_ms().saturating_sub(age_ms);
        let reading = match self.find_or_read(&scope, filter, oldest_ms) {
            Ok(shelf) => return Ok(Seen::There(shelf)),
            Err(reading) => reading,
        };
        let read = match patience {
            Patience::Endless => reading.clone().await,
            Patience::Moment => match tokio::time::timeout(PATIENCE, reading.clone()).await {
                Ok(read) => read,
                Err(_) => return Ok(self.meanwhile(&scope)),
            },
        };
        let mut kept = self.kept();
        if let Some(kept) = kept.iter_mut().find(|kept| kept.scope == scope)
            && kept.reading.as_ref().is_some_and(|own| own.ptr_eq(&reading))
        {
            kept.reading = None;
            if let Ok(shelf) = &read {
                (kept.shelf, kept.is_stale) = (Some(Arc::clone(shelf)), false);
            }
        }
        read.map(Seen::There)
    }

    /// A shelf that is fresh, or the reading that makes it so.
    fn find_or_read(
        &self,
        scope: &str,
        filter: &Filter,
        oldest_ms: u64,
    ) -> Result<Arc<Shelf>, Shared<BoxFuture<'static, Read>>> {
        let mut all = self.kept();
        let at = all.iter().position(|kept| kept.scope == scope);
        let new = || Kept { scope: scope.to_owned(), shelf: None, is_stale: false, reading: None };
        let mut kept = at.and_then(|at| all.remove(at)).unwrap_or_else(new);
        let fresh = kept.shelf.clone().filter(|shelf| shelf.read_ms >= oldest_ms && !kept.is_stale);
        let found = match fresh {
            Some(shelf) => Ok(shelf),
            None => Err(kept
                .reading
                .get_or_insert_with(|| self.read(filter, kept.shelf.clone()))
                .clone()),
        };
        all.push_front(kept);
        make_room(&mut all);
        found
    }

    fn read(
        &self,
        filter: &Filter,
        before: Option<Arc<Shelf>>,
    ) -> Shared<BoxFuture<'static, Read>> {
        let (letters, filter) = (self.letters.clone(), filter.clone());
        let reading =
            tokio::spawn(
                async move { letters.shelf(&filter, before.as_deref()).await.map(Arc::new) },
            );
        let read = async move {
            reading.await.unwrap_or_else(|error| Err(error.into())).map_err(Arc::new)
        };
        read.boxed().shared()
    }

    /// What can be shown while a reading goes on.
    fn meanwhile(&self, scope: &str) -> Seen {
        let before =
            self.kept().iter().find(|kept| kept.scope == scope).and_then(|kept| kept.shelf.clone());
        before.map_or_else(|| Seen::Reading(self.letters.place().requests()), Seen::There)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, VecDeque<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets go of the filters that were asked for longest ago, where they are many or hold many
/// letters. What was asked for last stays.
fn make_room(all: &mut VecDeque<Kept>) {
    all.truncate(SHELVES_MAX);
    let (mut held, mut is_first) = (0, true);
    all.retain(|kept| {
        let is_kept_anyway = std::mem::take(&mut is_first) || kept.scope == WHOLE;
        held += kept
            .shelf
            .as_ref()
            .filter(|_| kept.scope != WHOLE)
            .map_or(0, |shelf| shelf.letters.len());
        is_kept_anyway || held <= LETTERS_MAX
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(scope: &str, letters: usize) -> Kept {
        let shelf = Arc::new(Shelf::of_samples(letters));
        Kept { scope: scope.to_owned(), shelf: Some(shelf), is_stale: false, reading: None }
    }

    #[test]
    fn filters_hold_together_no_more_than_a_shelf_and_the_whole_stays() {
        let (most, half) = (LETTERS_MAX, LETTERS_MAX / 2);
        for (there, stay) in [
            (&[("a", 1), ("", most), ("b", 1), ("c", 1), ("d", 1)][..], &["a", "", "b", "c"][..]),
            (&[("a", half), ("", most), ("b", half), ("c", 1)], &["a", "", "b"]),
            (&[("a", most), ("b", 1), ("", most)], &["a", ""]),
            (&[("", most), ("a", most), ("b", 1)], &["", "a"]),
        ] {
            let mut all: VecDeque<Kept> =
                there.iter().map(|(scope, letters)| kept(scope, *letters)).collect();
            make_room(&mut all);
            assert_eq!(
                all.iter().map(|kept| kept.scope.as_str()).collect::<Vec<_>>(),
                stay,
                "{there:?}"
            );
        }
    }
}
