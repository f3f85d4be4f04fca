//! The newest known snapshot of each namespace in use, and when its pointer is looked at again.
//!
//! Every 30 s the hint is read, one object for all namespaces, and the pointers of those that it says have
//! changed. Whatever the hint says, each pointer in use is looked at every five minutes; where there is no hint, every 30 s.

use std::collections::{BTreeMap, BTreeSet};

use catalogue::{Changed, Hint, Namespace, NodeCache, ReadError, Snapshot};
use delivery::ports::Clock;
use futures::stream::{self, StreamExt as _};

use super::entries::DEPLOYMENT;
use super::objects::CatalogueObjects;
use super::{READS_AT_ONCE, report, told};

/// The hint is read again after this long.
pub const HINT_EVERY_MS: u64 = 30_000;
/// A pointer is looked at again after this long, whatever the hint says.
pub const POINTERS_EVERY_MS: u64 = 300_000;
/// A missing name causes a look, but not more often than this; nor is what failed repeated more often.
const REREAD_EVERY_MS: u64 = 1_000;
/// What failed is not read again before this many times as long as that took.
const FAILURE_FACTOR: u64 = 4;
/// So many namespaces are known at most; the root of each has up to 32 KiB.
const NAMESPACES_MAX: usize = 500;

/// How long something is not read again that failed after so long.
pub(super) fn pause_ms(took_ms: u64) -> u64 {
    REREAD_EVERY_MS.max(FAILURE_FACTOR.saturating_mul(took_ms))
}

/// How new what is known of a namespace has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Freshness {
    /// What was read before will do where the newest cannot be read.
    LastGood,
    /// The newest, or no name may count as missing.
    Newest,
}

/// What is known of a namespace.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// The newest that could be read; `None` before the first.
    snapshot: Option<Snapshot>,
    checked_ms: Option<u64>,
    /// How long the last look took that failed.
    failed_after_ms: u64,
    used_ms: u64,
    /// The hint says that there is a newer one.
    has_changed: bool,
    /// Why the newest pointer could not be read.
    pub(super) problem: Option<String>,
}

/// The namespaces in use.
#[derive(Debug, Default)]
pub(super) struct Namespaces {
    known: BTreeMap<String, Known>,
    hint: KnownHint,
}

/// What is known of the hint.
#[derive(Debug, Default)]
struct KnownHint {
    hint: Option<Hint>,
    /// `None` before the first namespace was looked at.
    checked_ms: Option<u64>,
    /// It could not be read, or there is none: then the pointers are asked.
    is_missing: bool,
}

impl Known {
    fn is_due(&self, now_ms: u64, wanted: Freshness, has_hint: bool) -> bool {
        let Some(checked_ms) = self.checked_ms else { return true };
        let fresh_ms = match (&self.snapshot, wanted) {
            // Without a snapshot its records wait, so a repair has to be seen soon. But what does not answer at all
            // would take the time of all other records.
            (None, _) => pause_ms(self.failed_after_ms),
            (_, Freshness::Newest) => REREAD_EVERY_MS,
            // What could not be read is tried again no more often than without a hint.
            (Some(_), Freshness::LastGood) if !has_hint || self.problem.is_some() => HINT_EVERY_MS,
            (Some(_), Freshness::LastGood) if self.has_changed => 0,
            (Some(_), Freshness::LastGood) => POINTERS_EVERY_MS,
        };
        now_ms.abs_diff(checked_ms) >= fresh_ms
    }

    /// Its pointer was read, or could not be.
    fn is_now(
        &mut self,
        name: &str,
        found: Result<Option<Snapshot>, ReadError>,
        [began_ms, now_ms]: [u64; 2],
    ) {
        (self.checked_ms, self.has_changed) = (Some(now_ms), false);
        self.failed_after_ms = if found.is_err() { now_ms.abs_diff(began_ms) } else { 0 };
        let was_there = self.snapshot.as_ref().is_some_and(|known| known.version().is_some());
        let problem = match found {
            Ok(Some(found)) => {
                (self.snapshot, self.problem) = (Some(found), None);
                return;
            }
            Ok(None) if !was_there => {
                (self.snapshot, self.problem) = (Some(Snapshot::default()), None);
                return;
            }
            // It was lost, or somebody removed all of it: what was there is not missing for that.
            Ok(None) => "its pointer is gone".to_owned(),
            Err(error) => told(&error),
        };
        let what = format!("the namespace {name} of the catalogue");
        self.problem = Some(report(&what, &problem, self.snapshot.is_some()));
    }

    /// The newest that could be read.
    pub(super) fn snapshot(&self) -> Result<&Snapshot, String> {
        self.snapshot.as_ref().ok_or_else(|| self.problem.clone().unwrap_or_default())
    }
}

impl Namespaces {
    /// What is known of these namespaces, after a look at the pointers that are due, at all of them at once.
    pub(super) async fn look<'a>(
        &mut self,
        objects: &CatalogueObjects,
        nodes: &NodeCache,
        clock: &impl Clock,
        names: impl IntoIterator<Item = &'a str>,
        wanted: Freshness,
    ) -> BTreeMap<&'a str, Known> {
        self.follow_hint(objects, clock).await;
        let (began_ms, has_hint) = (clock.now_ms(), !self.hint.is_missing);
        let names: BTreeSet<&str> = names.into_iter().collect();
        let mut all: BTreeMap<&str, Known> = names
            .iter()
            .map(|name| (*name, self.known.get(*name).cloned().unwrap_or_default()))
            .collect();
        let due = all.iter().filter(|(_, known)| known.is_due(began_ms, wanted, has_hint));
        let look = |(name, known): (&&'a str, &Known)| {
            let (name, known) = (*name, known.snapshot.clone());
            async move { (name, Namespace::new(objects, nodes, name).load(known.as_ref()).await) }
        };
        let looks: Vec<_> = due.map(look).collect();
        let found: Vec<_> = stream::iter(looks).buffer_unordered(READS_AT_ONCE).collect().await;
        // Those who wait for the lock must not each wait as long for what does not answer.
        let now_ms = clock.now_ms();
        for (name, found) in found {
            let known = all.entry(name).or_default();
            known.is_now(name, found, [began_ms, now_ms]);
            self.keep(name, known.clone());
        }
        for name in names {
            self.known.entry(name.to_owned()).and_modify(|known| known.used_ms = now_ms);
        }
        all
    }

    /// Reads the hint if that is due, and marks what it says has changed.
    async fn follow_hint(&mut self, objects: &CatalogueObjects, clock: &impl Clock) {
        let now_ms = clock.now_ms();
        let hint = &mut self.hint;
        // What is looked at for the first time needs no hint.
        let checked_ms = *hint.checked_ms.get_or_insert(now_ms);
        if now_ms.abs_diff(checked_ms) < HINT_EVERY_MS {
            return;
        }
        let found = Hint::load(objects, hint.hint.as_ref()).await;
        hint.checked_ms = Some(clock.now_ms());
        let Ok(Some(found)) = found else {
            if let Err(error) = &found {
                tracing::warn!(problem = %told(error), "subscriptions.no_hint");
            }
            hint.is_missing = true;
            return;
        };
        let changed = found.changed_since(hint.hint.as_ref());
        (hint.hint, hint.is_missing) = (Some(found), false);
        match changed {
            Changed::Unknown => self.known.values_mut().for_each(|known| known.has_changed = true),
            Changed::Namespaces(names) => {
                for name in names {
                    self.known.entry(name).and_modify(|known| known.has_changed = true);
                }
            }
        }
    }

    /// Keeps what is known of a namespace. Of very many one is forgotten that does not exist, or was not used
    /// for longest: names that somebody invents must not take the place of others.
    fn keep(&mut self, name: &str, known: Known) {
        if self.known.len() >= NAMESPACES_MAX && !self.known.contains_key(name) {
            let others = self.known.iter().filter(|(name, _)| *name != DEPLOYMENT);
            let exists =
                |known: &Known| known.snapshot.as_ref().is_some_and(|of| of.version().is_some());
            let oldest = others.min_by_key(|(_, known)| (exists(known), known.used_ms));
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.known.remove(&oldest);
            }
        }
        self.known.insert(name.to_owned(), known);
    }
}

#[cfg(test)]
mod tests {
    use super::super::objects::tests::{in_folder, with_entry};
    use super::*;

    #[tokio::test]
    async fn of_very_many_namespaces_one_makes_room_that_does_not_exist_or_was_not_used_for_longest()
     {
        let folder = tempfile::tempdir().expect("a folder");
        let (objects, nodes) = (in_folder(folder.path()), NodeCache::new(1_000_000));
        let namespace = Namespace::new(&objects, &nodes, "shop");
        let snapshot = with_entry(&namespace, ("a/b".to_owned(), "c".to_owned())).await;
        let mut namespaces = Namespaces::default();
        let used = |used_ms: u64| Known { used_ms, ..Known::default() };
        namespaces.keep(DEPLOYMENT, used(0));
        namespaces.keep("shop", Known { snapshot: Some(snapshot), ..used(1) });
        for number in 2..NAMESPACES_MAX as u64 {
            namespaces.keep(&number.to_string(), used(number));
        }
        // One that is known takes nobody's place.
        namespaces.keep("2", used(1_000));
        namespaces.keep("another", used(1_001));
        let knows = |name: &str| namespaces.known.contains_key(name);
        let kept = [DEPLOYMENT, "shop", "2", "3", "4", "another"].map(knows);
        assert_eq!(kept, [true, true, true, false, true, true]);
        assert_eq!(namespaces.known.len(), NAMESPACES_MAX);
    }
}
