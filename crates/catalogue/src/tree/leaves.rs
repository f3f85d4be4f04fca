//! In how many leaves a changed topic would be: readers refuse one with too many.
//!
//! Separate because the rest of a run looks at no topic. Nodes that no edit needs are read only where their number
//! alone does not say that there are few enough leaves.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Builder, Kind};
use crate::format::{CHILD_MIN_BYTES, KeyRange, Node, Reference};

/// A topic that nobody could read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooManyLeaves {
    /// The topic.
    pub(crate) topic: String,
    /// In how many leaves it would be.
    pub(crate) leaves: usize,
}

impl Builder<'_> {
    /// The first topic with more than was there that would be in too many leaves below this root. Entries can be
    /// removed from any.
    pub(super) fn too_many_leaves(&mut self, root: &Node) -> Option<TooManyLeaves> {
        let grown = self.differences.iter().filter(|of| of.kind != Kind::Removed);
        let topics = grown.filter_map(|of| Some(of.key.split_once('/')?.0.to_owned()));
        for topic in topics.collect::<BTreeSet<String>>() {
            let range = KeyRange::of_topic(&topic);
            let max = self.limits.topic_leaves;
            if self.leaves_at_most(root, None, &range) > max {
                let leaves = self.leaves(root, None, &range);
                if leaves > max {
                    return Some(TooManyLeaves { topic, leaves });
                }
            }
        }
        None
    }

    /// The number of leaves below a node that may have keys of this range; those below nodes that have not been read
    /// do not count, and the nodes are noted.
    fn leaves(&mut self, node: &Node, before: Option<&Arc<str>>, range: &KeyRange) -> usize {
        let places = below(node, before, range);
        if node.level() <= 1 {
            return places.len();
        }
        let mut leaves = 0;
        for place in places {
            let node = self.node(&place);
            leaves += node.map_or(0, |node| self.leaves(&node, place.before.as_ref(), range));
        }
        leaves
    }

    /// At least that number, whatever the nodes are that have not been read.
    fn leaves_at_most(&self, node: &Node, before: Option<&Arc<str>>, range: &KeyRange) -> usize {
        let places = below(node, before, range);
        if node.level() <= 1 {
            return places.len();
        }
        let children_max = self.limits.node / CHILD_MIN_BYTES;
        let of_place = |place: &Reference| match self.known(place) {
            Some(node) => self.leaves_at_most(&node, place.before.as_ref(), range),
            None => children_max.saturating_pow(place.level),
        };
        places.iter().map(of_place).fold(0, usize::saturating_add)
    }
}

/// The children of a node that may have keys of this range; none of a leaf.
fn below(node: &Node, before: Option<&Arc<str>>, range: &KeyRange) -> Vec<Reference> {
    node.references(before).into_iter().filter(|place| range.meets(place)).collect()
}
