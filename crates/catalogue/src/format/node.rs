//! A node of the tree: a leaf with entries, or an inner node that names its children.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{FORMAT, Id, damaged, parse};
use crate::error::ReadError;

/// No tree is higher: with a few hundred children of each node it would have more entries than there are bytes.
const LEVEL_MAX: u32 = 16;
/// At least the bytes of a child as its parent names it.
pub(crate) const CHILD_MIN_BYTES: usize = Id::TEXT_BYTES + r#"["",""],"#.len();
/// At least what a node has beside its items:
/// `{"format":1,"commit":"0123456789abcdef","level":4294967295,"children":[]}`.
const FRAME_BYTES: usize = 80;

/// One entry of a catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// `topic/` or `topic/name`.
    pub key: Arc<str>,
    /// What was stored under it, byte for byte.
    pub value: Arc<str>,
}

impl Entry {
    /// The bytes of `["key","value"]` and a comma.
    pub(crate) fn written_bytes(&self) -> usize {
        text_bytes(&self.key) + text_bytes(&self.value) + r#"[,],"#.len()
    }
}

/// A child as its parent names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Child {
    /// Its first key.
    pub(crate) first: Arc<str>,
    pub(crate) id: Id,
}

impl Child {
    /// The bytes of `["first key","id"]` and a comma.
    fn written_bytes(&self) -> usize {
        text_bytes(&self.first) + Id::TEXT_BYTES + r#"[,""],"#.len()
    }
}

/// A node. Keys are in order, and there is at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Leaf(Vec<Entry>),
    /// All leaves below it are `level` steps away.
    Inner {
        level: u32,
        children: Vec<Child>,
    },
}

/// What a parent says about a child, and so what the child has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) id: Id,
    pub(crate) level: u32,
    /// The child's first key.
    pub(crate) first: Arc<str>,
    /// All its keys are before this one.
    pub(crate) before: Option<Arc<str>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    format: u32,
    commit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entries: Option<Vec<(String, String)>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    level: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    children: Option<Vec<(String, Id)>>,
}

impl Node {
    /// The bytes of the object; `commit` is the number of the commit that writes it.
    pub(crate) fn write(&self, commit: &str) -> Vec<u8> {
        let (format, commit) = (FORMAT, commit.to_owned());
        let written = match self {
            Self::Leaf(entries) => {
                let pair = |entry: &Entry| (entry.key.to_string(), entry.value.to_string());
                let entries = Some(entries.iter().map(pair).collect());
                Written { format, commit, entries, level: None, children: None }
            }
            Self::Inner { level, children } => {
                let pair = |child: &Child| (child.first.to_string(), child.id);
                let children = Some(children.iter().map(pair).collect());
                Written { format, commit, entries: None, level: Some(*level), children }
            }
        };
        serde_json::to_vec(&written).expect("texts and numbers are JSON")
    }

    /// The node with these bytes. Its place in the tree is not checked: see [`Node::check`].
    pub(crate) fn read(object: &str, bytes: &[u8]) -> Result<Self, ReadError> {
        let written: Written = parse(object, bytes)?;
        let node = match (written.entries, written.level, written.children) {
            (Some(entries), None, None) => {
                let entry =
                    |(key, value): (String, String)| Entry { key: key.into(), value: value.into() };
                Self::Leaf(entries.into_iter().map(entry).collect())
            }
            (None, Some(level), Some(children)) if (1..=LEVEL_MAX).contains(&level) => {
                let child = |(first, id): (String, Id)| Child { first: first.into(), id };
                Self::Inner { level, children: children.into_iter().map(child).collect() }
            }
            _ => {
                let expected =
                    format!("a node has entries, or children and a level from 1 to {LEVEL_MAX}");
                return Err(damaged(object, expected));
            }
        };
        let keys = node.keys();
        if keys.is_empty() {
            return Err(damaged(object, "it is empty"));
        }
        match keys.iter().zip(keys.iter().skip(1)).find(|(key, next)| key >= next) {
            Some((key, next)) => Err(damaged(object, format!("the key {next:?} follows {key:?}"))),
            None => Ok(node),
        }
    }

    /// Checks that this is the node which its parent describes.
    pub(crate) fn check(&self, object: &str, place: &Reference) -> Result<(), ReadError> {
        let Reference { id: _, level, first, before } = place;
        if self.level() != *level {
            let problem = format!("its level is {}, and its parent needs {level}", self.level());
            return Err(damaged(object, problem));
        }
        let keys = self.keys();
        let found = keys.first().copied().unwrap_or_default();
        if found != &**first {
            let problem = format!("its first key is {found:?}, and its parent says {first:?}");
            return Err(damaged(object, problem));
        }
        match (keys.last(), before) {
            (Some(last), Some(before)) if *last >= &**before => {
                Err(damaged(object, format!("its key {last:?} is not before {before:?}")))
            }
            _ => Ok(()),
        }
    }

    /// How many steps its leaves are away; 0 is a leaf.
    pub(crate) fn level(&self) -> u32 {
        match self {
            Self::Leaf(_) => 0,
            Self::Inner { level, .. } => *level,
        }
    }

    /// The first key.
    pub(crate) fn first(&self) -> Option<&Arc<str>> {
        match self {
            Self::Leaf(entries) => entries.first().map(|entry| &entry.key),
            Self::Inner { children, .. } => children.first().map(|child| &child.first),
        }
    }

    /// The children and the keys they may have; this node's own keys are before `before`.
    pub(crate) fn references(&self, before: Option<&Arc<str>>) -> Vec<Reference> {
        let Self::Inner { level, children } = self else { return Vec::new() };
        let ends = children.iter().skip(1).map(|child| Some(&child.first)).chain([before]);
        let reference = |(child, before): (&Child, Option<&Arc<str>>)| Reference {
            id: child.id,
            level: level - 1,
            first: child.first.clone(),
            before: before.cloned(),
        };
        children.iter().zip(ends).map(reference).collect()
    }

    /// At least as many bytes as it has when it is written.
    pub(crate) fn written_bytes(&self) -> usize {
        FRAME_BYTES
            + match self {
                Self::Leaf(entries) => entries.iter().map(Entry::written_bytes).sum::<usize>(),
                Self::Inner { children, .. } => children.iter().map(Child::written_bytes).sum(),
            }
    }

    /// This node and the next one of its level as one.
    pub(crate) fn join(self, next: Self) -> Self {
        match (self, next) {
            (Self::Leaf(mut entries), Self::Leaf(more)) => {
                entries.extend(more);
                Self::Leaf(entries)
            }
            (Self::Inner { level, mut children }, Self::Inner { children: more, .. }) => {
                children.extend(more);
                Self::Inner { level, children }
            }
            (Self::Leaf(_), Self::Inner { .. }) | (Self::Inner { .. }, Self::Leaf(_)) => {
                unreachable!(
                    "the children of a node have one level, which is checked when they are read"
                )
            }
        }
    }

    /// As one node if it has at most `max` bytes, or as several that are filled evenly.
    pub(crate) fn split(self, max: usize) -> Vec<Self> {
        if self.written_bytes() <= max {
            return vec![self];
        }
        let max = max.saturating_sub(FRAME_BYTES);
        match self {
            Self::Leaf(entries) => {
                evenly(entries, Entry::written_bytes, max).into_iter().map(Self::Leaf).collect()
            }
            Self::Inner { level, children } => {
                let parts = evenly(children, Child::written_bytes, max).into_iter();
                parts.map(|children| Self::Inner { level, children }).collect()
            }
        }
    }

    fn keys(&self) -> Vec<&str> {
        match self {
            Self::Leaf(entries) => entries.iter().map(|entry| &*entry.key).collect(),
            Self::Inner { children, .. } => children.iter().map(|child| &*child.first).collect(),
        }
    }
}

/// Items in runs of at most `max` bytes, unless one alone has more. All runs have about the same size,
/// and three quarters of `max` at most where the items are small: the next entries need no further split.
fn evenly<T>(items: Vec<T>, bytes_of: impl Fn(&T) -> usize, max: usize) -> Vec<Vec<T>> {
    let total: usize = items.iter().map(&bytes_of).sum();
    let runs = total.div_ceil((max / 4 * 3).max(1));
    let mut result: Vec<Vec<T>> = Vec::new();
    let (mut before, mut in_run) = (0, 0);
    for item in items {
        let bytes = bytes_of(&item);
        // The run ends where more than half of the item would be beyond its even share.
        let is_over = before + bytes / 2 > total * result.len() / runs;
        match result.last_mut() {
            Some(run) if in_run + bytes <= max && !is_over => {
                run.push(item);
                in_run += bytes;
            }
            _ => {
                result.push(vec![item]);
                in_run = bytes;
            }
        }
        before += bytes;
    }
    result
}

/// The bytes of a JSON string with this text, as `serde_json` writes it.
fn text_bytes(text: &str) -> usize {
    let of_byte = |byte: u8| match byte {
        b'"' | b'\\' | 0x08 | b'\t' | b'\n' | 0x0c | b'\r' => 2,
        0x00..=0x1f => 6,
        _ => 1,
    };
    text.bytes().map(of_byte).sum::<usize>() + 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(key: &str, value: &str) -> Entry {
        Entry { key: key.into(), value: value.into() }
    }

    proptest! {
        #[test]
        fn the_size_of_a_text_is_that_of_its_json(text in "(?s).{0,40}") {
            prop_assert_eq!(text_bytes(&text), serde_json::to_string(&text).unwrap().len());
        }

        #[test]
        fn a_node_is_split_into_nodes_within_the_limit(sizes in proptest::collection::vec(0_usize..400, 1..60)) {
            let name = |at: usize| format!("t/{at:03}");
            let entries = sizes.iter().enumerate().map(|(at, size)| entry(&name(at), &"x".repeat(*size)));
            let entries: Vec<Entry> = entries.collect();
            let nodes = Node::Leaf(entries.clone()).split(600);
            for node in &nodes {
                prop_assert!(node.write("0123456789abcdef").len() <= node.written_bytes());
                prop_assert!(node.written_bytes() <= 600 && node.first().is_some());
            }
            let joined = nodes.into_iter().reduce(Node::join);
            prop_assert_eq!(joined, Some(Node::Leaf(entries)));
        }
    }

    #[test]
    fn small_items_are_split_evenly() {
        for count in [8_000, 9_000, 20_000, 1_000_000_usize] {
            let runs = evenly(vec![(); count], |()| 8, 64_000);
            let lengths = || runs.iter().map(|run| run.len() * 8);
            let (least, most) = (lengths().min().unwrap(), lengths().max().unwrap());
            assert!(
                most - least <= 16 && most <= 48_008 || count == 8_000,
                "{count}: {least} {most}"
            );
            assert!(least >= 32_000, "{count}: {least}");
        }
    }

    #[test]
    fn a_node_is_read_as_it_was_written() {
        let leaf = Node::Leaf(vec![entry("t/", "{\"a\": 1.0}"), entry("t/ö\"", " \u{1}\n")]);
        let inner =
            Node::Inner { level: 2, children: vec![Child { first: "t/".into(), id: Id::of(b"") }] };
        for node in [leaf, inner] {
            assert_eq!(Node::read("o", &node.write("c")), Ok(node));
        }
    }
}
