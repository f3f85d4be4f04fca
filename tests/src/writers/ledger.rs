//! What writers began, and what was acknowledged to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use catalogue::Version;

/// What writers did, by the names of their subscriptions.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The numbers of changes that began, whether or not they were made.
    begun: BTreeMap<String, BTreeSet<u64>>,
    /// The last acknowledged number; none once it was deleted.
    acknowledged: BTreeMap<String, u64>,
    /// What each version has to say, by its number.
    expected: BTreeMap<u64, String>,
    /// What each version says.
    seen: BTreeMap<u64, Vec<String>>,
}

impl Ledger {
    /// A subscription is about to get this number.
    pub fn begin(&self, name: &str, number: u64) {
        self.lock().begun.entry(name.to_owned()).or_default().insert(number);
    }

    /// A subscription has got this number with a version, or was deleted.
    ///
    /// # Panics
    /// When another change was acknowledged with that version.
    pub fn acknowledge(&self, version: u64, name: &str, number: Option<u64>) {
        let mut state = self.lock();
        let before = match number {
            Some(number) => state.acknowledged.insert(name.to_owned(), number),
            None => state.acknowledged.remove(name),
        };
        let kind = match (before, number) {
            (None, _) => "added",
            (Some(_), Some(_)) => "changed",
            (Some(_), None) => "removed",
        };
        let other = state.expected.insert(version, format!("{kind} orders/{name}"));
        assert_eq!(other, None, "acknowledged with version {version}, as was {name}");
    }

    /// A version of the history.
    pub fn saw(&self, version: &Version) {
        self.lock().seen.insert(version.number, version.what.clone());
    }

    /// Whether a writer began to give a subscription this number.
    #[must_use]
    pub fn has_begun(&self, name: &str, number: u64) -> bool {
        self.lock().begun.get(name).is_some_and(|numbers| numbers.contains(&number))
    }

    /// The last acknowledged number of each subscription that was not deleted.
    #[must_use]
    pub fn acknowledged(&self) -> BTreeMap<String, u64> {
        self.lock().acknowledged.clone()
    }

    /// Fails unless there is one version for each of these acknowledged changes, after the first version, and it says so.
    ///
    /// # Panics
    /// When it is not so.
    pub fn assert_versions(&self, changes: u64) {
        let state = self.lock();
        let numbers: Vec<u64> = state.expected.keys().copied().collect();
        assert_eq!(numbers, (2..=changes + 1).collect::<Vec<u64>>());
        for (number, what) in &state.expected {
            assert_eq!(state.seen.get(number), Some(&vec![what.clone()]), "version {number}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
