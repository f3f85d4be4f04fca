//! Nodes that were read lately, by id.
//!
//! A node never changes, so nothing here is ever stale. The owner chooses how much memory it may take, and
//! may use one for all namespaces.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::format::{Id, Node};

/// A cache of nodes. When it is full, the node that was not used for longest is removed.
#[derive(Debug)]
pub struct NodeCache {
    max_bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    nodes: HashMap<Id, Cached>,
    /// By when it was used last.
    order: BTreeMap<u64, Id>,
    uses: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Cached {
    node: Arc<Node>,
    bytes: usize,
    used: u64,
}

impl NodeCache {
    /// A cache of nodes whose objects have together at most so many bytes. In memory they take about twice
    /// as much.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, state: Mutex::default() }
    }

    pub(crate) fn get(&self, id: Id) -> Option<Arc<Node>> {
        let mut state = self.lock();
        let state = &mut *state;
        let cached = state.nodes.get_mut(&id)?;
        state.uses += 1;
        state.order.remove(&cached.used);
        cached.used = state.uses;
        state.order.insert(cached.used, id);
        Some(cached.node.clone())
    }

    /// Keeps a node, unless it alone is too large.
    pub(crate) fn insert(&self, id: Id, node: Arc<Node>, bytes: usize) {
        let mut state = self.lock();
        if bytes > self.max_bytes || state.nodes.contains_key(&id) {
            return;
        }
        state.uses += 1;
        let used = state.uses;
        state.nodes.insert(id, Cached { node, bytes, used });
        state.order.insert(used, id);
        state.bytes += bytes;
        while state.bytes > self.max_bytes {
            let Some((_, oldest)) = state.order.pop_first() else { break };
            let freed = state.nodes.remove(&oldest).map_or(0, |cached| cached.bytes);
            state.bytes = state.bytes.saturating_sub(freed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_that_was_not_used_for_longest_makes_room() {
        let cache = NodeCache::new(100);
        let node = Arc::new(Node::Leaf(Vec::new()));
        let [a, b, c, d] = [b"a", b"b", b"c", b"d"].map(|text| Id::of(text));
        let kept = || [a, b, c, d].map(|id| cache.lock().nodes.contains_key(&id));
        for id in [a, b] {
            cache.insert(id, node.clone(), 50);
        }
        assert!(cache.get(a).is_some());
        cache.insert(c, node.clone(), 50);
        assert_eq!(kept(), [true, false, true, false]);
        cache.insert(d, node.clone(), 101);
        assert_eq!(kept(), [true, false, true, false], "larger than the cache");
        cache.insert(d, node, 100);
        assert_eq!(kept(), [false, false, false, true]);
        assert_eq!(cache.lock().bytes, 100);
        assert_eq!(cache.lock().order.len(), 1);
    }
}
