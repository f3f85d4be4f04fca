//! A reader that trusts nothing: every version that it sees has to be whole.

use std::collections::BTreeMap;

use adapters::live_catalogue::objects::CatalogueObjects;
use adapters::storage::StoredObject;
use catalogue::{Entry, Namespace, NodeCache, ReadError, Snapshot, Version};
use futures::TryStreamExt as _;
use serde_json::Value;

use super::{FILLERS, Ledger, NAMESPACE};

/// Reads the namespace again and again, every object from storage.
#[derive(Debug)]
pub struct Reader {
    objects: CatalogueObjects,
    /// The newest version that it saw.
    newest: u64,
    /// The number of each subscription when it was last there.
    numbers: BTreeMap<String, u64>,
}

impl Reader {
    /// A reader of the catalogue in this folder.
    #[must_use]
    pub fn of(folder: &StoredObject) -> Self {
        let objects = CatalogueObjects::below(folder);
        Self { objects, newest: 0, numbers: BTreeMap::new() }
    }

    /// The number of the newest version that it found.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Reads the newest version and checks it: its entries are as many as it says, the pointer's root and the version's
    /// have only values that a writer wrote, and neither a version nor a subscription goes back. Returns the version and
    /// the number of each subscription but the first ones.
    ///
    /// # Errors
    /// When something cannot be read.
    ///
    /// # Panics
    /// When a check fails.
    pub async fn read(
        &mut self,
        ledger: &Ledger,
    ) -> Result<(Version, BTreeMap<String, u64>), ReadError> {
        let nodes = NodeCache::new(0);
        let namespace = Namespace::new(&self.objects, &nodes, NAMESPACE);
        let snapshot = namespace.load(None).await?.expect("a pointer");
        let version = namespace.history(1).await?.pop().expect("a version");
        assert!(version.number >= self.newest, "{} after {}", version.number, self.newest);
        self.newest = version.number;
        let by_pointer = entries(&namespace, &snapshot).await?;
        let by_version = entries(&namespace, &namespace.of_version(version.id).await?).await?;
        assert_eq!(by_version.len() as u64, version.entries, "version {}", version.number);
        self.check(&by_pointer, ledger);
        Ok((version, self.check(&by_version, ledger)))
    }

    /// The versions that can be read, newest first; the ledger gets them.
    ///
    /// # Panics
    /// When they cannot be read.
    pub async fn history(&self, ledger: &Ledger) -> Vec<Version> {
        let nodes = NodeCache::new(0);
        let namespace = Namespace::new(&self.objects, &nodes, NAMESPACE);
        let versions = namespace.history(usize::MAX).await.expect("a history");
        versions.iter().for_each(|version| ledger.saw(version));
        versions
    }

    fn check(&mut self, entries: &[Entry], ledger: &Ledger) -> BTreeMap<String, u64> {
        let mut found: BTreeMap<String, u64> = entries.iter().map(number).collect();
        for filler in 0..FILLERS {
            assert_eq!(found.remove(&format!("filler-{filler}")), Some(0), "filler {filler}");
        }
        for (name, number) in &found {
            assert!(ledger.has_begun(name, *number), "nobody wrote {number} to {name}");
            let last = self.numbers.insert(name.clone(), *number).unwrap_or_default();
            assert!(*number >= last, "{name} went from {last} back to {number}");
        }
        found
    }
}

async fn entries(
    namespace: &Namespace<'_, CatalogueObjects>,
    snapshot: &Snapshot,
) -> Result<Vec<Entry>, ReadError> {
    namespace.entries(snapshot).try_collect().await
}

/// The name of a subscription and its number, which is the same in its address and in its filter.
fn number(entry: &Entry) -> (String, u64) {
    let value: Value = serde_json::from_str(&entry.value).expect("JSON");
    let url = value["is"]["destination"]["url"].as_str().expect("an address");
    let wanted = value["is"]["filter"]["exact"][1].as_str().expect("a filter");
    let in_url = url.rsplit('/').next().and_then(|number| number.parse::<u64>().ok());
    let in_filter = wanted.split('-').next().and_then(|number| number.parse::<u64>().ok());
    assert_eq!(in_url, in_filter, "{value}");
    let name = entry.key.strip_prefix("orders/").expect("a key of the topic");
    (name.to_owned(), in_url.unwrap_or_else(|| panic!("no number in {value}")))
}
