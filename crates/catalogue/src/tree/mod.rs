//! What a change makes of a tree: pure, over the nodes that were read.
//!
//! Separate from the commit, which reads and writes: a run over too few nodes says which ones it needs, and
//! is repeated when they are there.
//!
//! A leaf that changes becomes one or more leaves, or none; so does its parent, up to the root. Nodes that
//! become larger than the limit are split evenly. A node that becomes smaller than a quarter of it is merged
//! with its left neighbour below the same parent, the first one with its right neighbour.

mod edit;
mod leaves;

use std::collections::HashMap;
use std::sync::Arc;

pub use edit::Changes;
pub(crate) use edit::{Difference, Edit, Kind};
use edit::{Violation, apply_to_leaf};
pub(crate) use leaves::TooManyLeaves;

use crate::format::{Child, Id, Limits, Node, Reference};

/// What a run came to.
#[derive(Debug)]
pub(crate) enum Run {
    /// These nodes are needed.
    Needs(Vec<Reference>),
    /// An entry does not have the value that was expected.
    Violated(Violation),
    /// A topic would be too large to be read.
    TooManyLeaves(TooManyLeaves),
    /// The tree.
    Done(NewTree),
}

/// A tree after a change.
#[derive(Debug, Default)]
pub(crate) struct NewTree {
    /// The root: its id and its bytes.
    pub(crate) root: Option<(Id, Vec<u8>)>,
    /// All other new nodes, by level, leaves first.
    pub(crate) levels: Vec<Vec<(Id, Vec<u8>)>>,
    /// What differs, in the order of the keys; if nothing does, the rest is empty.
    pub(crate) differences: Vec<Difference>,
}

/// Applies edits, which are in the order of their keys, to the tree with this root. `commit` is written into each new
/// node.
pub(crate) fn run(
    root: Option<(&Arc<Node>, Reference)>,
    edits: &[(Arc<str>, Edit)],
    read: &HashMap<Id, Arc<Node>>,
    limits: Limits,
    commit: &str,
) -> Run {
    let mut builder = Builder::new(read, limits, commit);
    let empty = Arc::new(Node::Leaf(Vec::new()));
    let root = root.map_or(empty, |(node, _)| node.clone());
    let nodes = builder.apply(&root, edits, None);
    if let Some(violation) = builder.violation {
        return Run::Violated(violation);
    }
    let root = nodes.and_then(|nodes| builder.grow(nodes));
    if !builder.needed.is_empty() {
        return Run::Needs(builder.needed);
    }
    if builder.differences.is_empty() {
        return Run::Done(NewTree::default());
    }
    let root_if_more = root.as_ref().filter(|_| builder.has_divided);
    let too_many = root_if_more.and_then(|root| builder.too_many_leaves(root));
    if !builder.needed.is_empty() {
        return Run::Needs(builder.needed);
    }
    if let Some(too_many) = too_many {
        return Run::TooManyLeaves(too_many);
    }
    let levels = root.as_ref().map_or_else(Vec::new, |root| builder.made_below(root));
    let written = root.map(|node| node.write(commit));
    let root = written.map(|bytes| (Id::of(&bytes), bytes));
    Run::Done(NewTree { root, levels, differences: builder.differences })
}

/// A child while its parent is rebuilt.
enum Slot {
    Kept(Reference),
    New(Node),
}

struct Builder<'a> {
    read: &'a HashMap<Id, Arc<Node>>,
    limits: Limits,
    commit: &'a str,
    /// New nodes that a parent names, and their bytes.
    made: HashMap<Id, (Node, Vec<u8>)>,
    needed: Vec<Reference>,
    differences: Vec<Difference>,
    violation: Option<Violation>,
    /// A leaf became several: only then a topic may be in more leaves than before.
    has_divided: bool,
}

impl<'a> Builder<'a> {
    fn new(read: &'a HashMap<Id, Arc<Node>>, limits: Limits, commit: &'a str) -> Self {
        Self {
            read,
            limits,
            commit,
            made: HashMap::new(),
            needed: Vec::new(),
            differences: Vec::new(),
            violation: None,
            has_divided: false,
        }
    }

    /// The nodes that take the place of this one, all of its level; `None` if it stays as it is. Its keys are before
    /// `before`.
    fn apply(
        &mut self,
        node: &Node,
        edits: &[(Arc<str>, Edit)],
        before: Option<&Arc<str>>,
    ) -> Option<Vec<Node>> {
        let level = match node {
            Node::Leaf(entries) => {
                return match apply_to_leaf(entries, edits, &mut self.differences) {
                    Ok(entries) => entries.map(|entries| {
                        let leaves = self.split(Node::Leaf(entries));
                        self.has_divided |= leaves.len() > 1;
                        leaves
                    }),
                    Err(violation) => {
                        self.violation.get_or_insert(violation);
                        None
                    }
                };
            }
            Node::Inner { level, .. } => *level,
        };
        let (mut slots, mut rest, mut is_changed) = (Vec::new(), edits, false);
        for place in node.references(before) {
            let is_before = |key: &Arc<str>| place.before.as_ref().is_none_or(|end| key < end);
            let (own, after) = rest.split_at(rest.partition_point(|(key, _)| is_before(key)));
            rest = after;
            let child = if own.is_empty() { None } else { self.node(&place) };
            let nodes = child.and_then(|child| self.apply(&child, own, place.before.as_ref()));
            is_changed |= nodes.is_some();
            match nodes {
                None => slots.push(Slot::Kept(place)),
                Some(nodes) => slots.extend(nodes.into_iter().map(Slot::New)),
            }
        }
        is_changed.then(|| {
            self.merge_small(&mut slots);
            let children = slots.into_iter().filter_map(|slot| self.child(slot)).collect();
            self.split(Node::Inner { level, children })
        })
    }

    /// Merges new nodes that are too small with their neighbours.
    fn merge_small(&mut self, slots: &mut Vec<Slot>) {
        let mut at = 0;
        while at < slots.len() && slots.len() > 1 {
            let is_small = |slot: &Slot| match slot {
                Slot::Kept(_) => false,
                Slot::New(node) => node.written_bytes() < self.limits.node_min(),
            };
            let left = at.saturating_sub(1);
            let pair = match slots.get(left..).unwrap_or_default() {
                [first, second, ..] if slots.get(at).is_some_and(is_small) => {
                    Option::zip(self.node_of(first), self.node_of(second))
                }
                _ => None,
            };
            let Some((first, second)) = pair else {
                at += 1;
                continue;
            };
            let merged = self.split(first.join(second));
            // One node may still be too small; of several none is looked at again.
            at = if merged.len() == 1 { left } else { left + merged.len() };
            slots.splice(left..left + 2, merged.into_iter().map(Slot::New));
        }
    }

    /// One root above these nodes, which are of one level.
    fn grow(&mut self, mut nodes: Vec<Node>) -> Option<Node> {
        loop {
            let root = match <[Node; 1]>::try_from(nodes) {
                Ok([root]) if root.written_bytes() <= self.limits.root => root,
                Ok([large]) => self.parent(vec![large]),
                Err(several) if several.is_empty() => return None,
                Err(several) => self.parent(several),
            };
            let fits = root.written_bytes() <= self.limits.root;
            let only = match &*root.references(None) {
                [only] => self.node(only).filter(|it| it.written_bytes() <= self.limits.root),
                _ => None,
            };
            nodes = match only {
                Some(only) => vec![Node::clone(&only)],
                None if fits => return Some(root),
                None => self.split(root),
            };
        }
    }

    /// The parent of these nodes, however large it becomes.
    fn parent(&mut self, nodes: Vec<Node>) -> Node {
        let level = nodes.first().map_or(0, Node::level) + 1;
        let children = nodes.into_iter().filter_map(|node| self.child(Slot::New(node))).collect();
        Node::Inner { level, children }
    }

    /// All new nodes below this one, by level, leaves first.
    fn made_below(&mut self, root: &Node) -> Vec<Vec<(Id, Vec<u8>)>> {
        let mut levels = Vec::new();
        let mut places = root.references(None);
        while !places.is_empty() {
            let made: Vec<_> = places
                .iter()
                .filter_map(|place| Some((place.id, self.made.remove(&place.id)?)))
                .collect();
            places = made.iter().flat_map(|(_, (node, _))| node.references(None)).collect();
            levels.push(made.into_iter().map(|(id, (_, bytes))| (id, bytes)).collect());
        }
        levels.reverse();
        levels
    }

    fn split(&self, node: Node) -> Vec<Node> {
        let is_empty = node.first().is_none();
        if is_empty { Vec::new() } else { node.split(self.limits.node) }
    }

    fn child(&mut self, slot: Slot) -> Option<Child> {
        match slot {
            Slot::Kept(place) => Some(Child { first: place.first, id: place.id }),
            Slot::New(node) => {
                let first = node.first()?.clone();
                let bytes = node.write(self.commit);
                let id = Id::of(&bytes);
                self.made.insert(id, (node, bytes));
                Some(Child { first, id })
            }
        }
    }

    fn node_of(&mut self, slot: &Slot) -> Option<Node> {
        match slot {
            Slot::Kept(place) => self.node(place).map(|node| Node::clone(&node)),
            Slot::New(node) => Some(node.clone()),
        }
    }

    /// The node of this place; one that has not been read is noted.
    fn node(&mut self, place: &Reference) -> Option<Arc<Node>> {
        let known = self.known(place);
        if known.is_none() {
            self.needed.push(place.clone());
        }
        known
    }

    /// The node of this place, if it was made or read.
    fn known(&self, place: &Reference) -> Option<Arc<Node>> {
        let made = self.made.get(&place.id).map(|(node, _)| Arc::new(node.clone()));
        made.or_else(|| self.read.get(&place.id).cloned())
    }
}
