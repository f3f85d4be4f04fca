//! The catalogue as a whole, over storage in memory with a clock, faults and an order of steps of its own.

mod damage;
mod failures;
mod garbage;
mod hint;
mod large_topics;
mod memory_store;
mod property;
mod races;
mod reading;
mod recovery;
mod sizes;
mod steps;

use std::collections::BTreeMap;
use std::convert::Infallible;

use futures::TryStreamExt as _;
use memory_store::MemoryStore;
use steps::run;

use crate::format::{Limits, Node};
use crate::{Changes, CommitError, Committed, Namespace, NodeCache, ReadError, Snapshot};

/// So small that a few dozen entries make a tree of three levels.
const SMALL: Limits = Limits { root: 400, node: 800, entry: 600, topic_leaves: usize::MAX };

/// A namespace with small nodes.
fn small<'a>(store: &'a MemoryStore, cache: &'a NodeCache) -> Namespace<'a, MemoryStore> {
    let mut namespace = Namespace::new(store, cache, "shop");
    namespace.limits = SMALL;
    namespace
}

/// These values, `None` for entries to remove.
fn changes<'a>(entries: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> Changes {
    let mut changes = Changes::default();
    for (key, value) in entries {
        match value {
            Some(value) => changes.put(key, value),
            None => changes.remove(key),
        };
    }
    changes
}

/// Commits changes that do not depend on what is there.
async fn commit(
    namespace: &Namespace<'_, MemoryStore>,
    changes: &Changes,
) -> Result<Committed, CommitError<Infallible>> {
    let change = |_| async { Ok(changes.clone()) };
    namespace.commit(namespace.objects, "a test", change).await
}

/// Adds one to the number under this key, and puts an empty entry under another.
async fn count(
    namespace: &Namespace<'_, MemoryStore>,
    counter: &str,
    other: &str,
) -> Result<Committed, CommitError<ReadError>> {
    let change = async |snapshot: Snapshot| {
        let value = namespace.entry(&snapshot, counter).await?;
        let number: u64 = value.map_or(0, |value| value.parse().unwrap());
        Ok(changes([(counter, Some(&*(number + 1).to_string())), (other, Some(""))]))
    };
    namespace.commit(namespace.objects, "a test", change).await
}

/// All entries of the newest snapshot.
async fn all(
    namespace: &Namespace<'_, MemoryStore>,
) -> Result<BTreeMap<String, String>, ReadError> {
    let Some(snapshot) = namespace.load(None).await? else { return Ok(BTreeMap::new()) };
    all_of(namespace, &snapshot).await
}

/// All entries of this snapshot.
async fn all_of(
    namespace: &Namespace<'_, MemoryStore>,
    snapshot: &Snapshot,
) -> Result<BTreeMap<String, String>, ReadError> {
    let entries = namespace.entries(snapshot);
    entries.map_ok(|entry| (entry.key.to_string(), entry.value.to_string())).try_collect().await
}

/// The nodes of the newest snapshot, root first.
fn nodes(namespace: &Namespace<'_, MemoryStore>) -> Vec<Node> {
    let snapshot = run(namespace.load(None)).unwrap().unwrap_or_default();
    let Some((root, _)) = snapshot.root() else { return Vec::new() };
    let mut found = vec![Node::clone(root)];
    let mut places = root.references(None);
    while !places.is_empty() {
        let read = run(namespace.nodes(places.clone())).unwrap();
        let below = read.iter().zip(&places);
        places = below.flat_map(|(node, place)| node.references(place.before.as_ref())).collect();
        found.extend(read.iter().map(|node| Node::clone(node)));
    }
    found
}
