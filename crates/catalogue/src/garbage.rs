//! Removes what no version needs any more.
//!
//! An object is garbage if neither the pointer's version names it nor one that was the newest at any time of
//! the last 30 days, and it was written more than 30 days ago: nodes that were replaced, and what commits
//! wrote that failed or lost a race. A collection that finds no pointer removes nothing: a writer may name any
//! version then.
//!
//! # Why nothing is removed that somebody needs
//!
//! Collection takes time: while it goes on, writers replace the pointer. Let P be the pointer that it read
//! first. An object that a later pointer names is one that P names, which stays, or one that a commit wrote
//! which ended later. No commit replaces the pointer later than a day after it began. So that object was
//! written a day before the collection at the earliest, and stays too. The other 29 days are for clocks that
//! are wrong.
//!
//! One case would break this: a commit that makes a node which is there already, as old garbage. Its key
//! would be the same. However the commit writes it, the collection may have listed the key as old before,
//! and remove it afterwards; a conditional removal would not help, because the content and so the ETag are
//! the same. A check before the pointer is replaced would come too early, one after it too late.
//!
//! So no commit ever makes an object that another one made: each puts its random number into all it writes.
//! An id that is garbage stays garbage. What this costs: two commits with equal content do not share
//! objects; those that one tree takes over from the tree before are shared as ever.
//!
//! Versions stay readable for 30 days after they were replaced, not after they were written: a reader may
//! have loaded an old one just before it was.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::error::ReadError;
use crate::format::{Id, Node};
use crate::namespace::Namespace;
use crate::objects::{DELETE_MAX, Objects};

/// How long objects are kept that the pointer's version does not name.
pub const RETENTION_MS: u64 = 30 * 24 * 60 * 60 * 1_000;

/// What a collection found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// Objects that were there.
    pub objects: u64,
    /// How many of them were removed.
    pub removed: u64,
    /// Versions that can still be read.
    pub versions: u64,
}

impl<O: Objects> Namespace<'_, O> {
    /// Removes objects that were written more than 30 days ago and that no version needs which was the newest at any
    /// time since. Reads each such version and its inner nodes. The clock may be wrong by days, but not by weeks.
    ///
    /// Without a pointer nothing is removed: it may have been lost.
    ///
    /// # Errors
    /// [`ReadError`] when something cannot be read, listed or removed. What should stay is never removed.
    pub async fn collect_garbage(&self, now_ms: u64) -> Result<Collected, ReadError> {
        let Some(newest) = self.load(None).await?.and_then(|snapshot| snapshot.version) else {
            return Ok(Collected::default());
        };
        let oldest_ms = now_ms.saturating_sub(RETENTION_MS);
        let written_ms = self.list().await?;
        let (mut needed, mut versions) = (HashSet::new(), 0);
        let mut next = Some(newest);
        while let Some(id) = next {
            let version = match self.version(id).await {
                // Removed before, by a clock that was ahead.
                Err(ReadError::Missing { .. }) if versions > 0 => break,
                read => read?,
            };
            versions += 1;
            needed.insert(id);
            if let Some(root) = version.root {
                self.need(root, &mut needed).await?;
            }
            // The first version from before was still the newest for a part of the time.
            let is_since = written_ms.get(&id).is_none_or(|written_ms| *written_ms >= oldest_ms);
            next = version.previous.filter(|_| is_since);
        }
        let is_garbage = |(id, at_ms): &(&Id, &u64)| **at_ms < oldest_ms && !needed.contains(id);
        let garbage = written_ms.iter().filter(is_garbage).map(|(id, _)| self.object_key(*id));
        let garbage: Vec<String> = garbage.collect();
        for keys in garbage.chunks(DELETE_MAX) {
            self.objects.delete(keys).await?;
        }
        Ok(Collected { objects: written_ms.len() as u64, removed: garbage.len() as u64, versions })
    }

    /// All objects, and when they were written. What is none of ours is left alone.
    pub(crate) async fn list(&self) -> Result<HashMap<Id, u64>, ReadError> {
        let prefix = self.objects_prefix();
        let mut written_ms = HashMap::new();
        let mut after: Option<String> = None;
        loop {
            let page = self.objects.list(&prefix, after.as_deref()).await?;
            let Some(last) = page.last() else { return Ok(written_ms) };
            after = Some(last.key.clone());
            let id = |key: &str| Id::parse(key.strip_prefix(&prefix)?);
            written_ms.extend(page.iter().filter_map(|it| Some((id(&it.key)?, it.modified_ms))));
        }
    }

    /// Adds a root and all nodes below it. Leaves are named by their parents and need not be read.
    async fn need(&self, root: Id, needed: &mut HashSet<Id>) -> Result<(), ReadError> {
        if !needed.insert(root) {
            return Ok(());
        }
        let mut nodes: Vec<(Arc<Node>, Option<Arc<str>>)> =
            vec![(self.root_node(root).await?, None)];
        while !nodes.is_empty() {
            let below = nodes.iter().flat_map(|(node, before)| node.references(before.as_ref()));
            let new = below.filter(|place| needed.insert(place.id));
            let inner: Vec<_> = new.filter(|place| place.level > 0).collect();
            let ends: Vec<_> = inner.iter().map(|place| place.before.clone()).collect();
            nodes = self.nodes(inner).await?.into_iter().zip(ends).collect();
        }
        Ok(())
    }
}
