//! Whatever is committed, the tree has the entries of a sorted map.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::memory_store::MemoryStore;
use super::{SMALL, all, changes, commit, nodes, run, small};
use crate::format::Node;
use crate::{Entry, Id, Namespace, NodeCache, Snapshot, TopicLeaf};

const TOPICS: [&str; 5] = ["a", "a b", "a-b", "b", "ö"];

/// A key, and the length of its value; `None` removes it.
fn edit() -> impl Strategy<Value = (String, Option<usize>)> {
    let name =
        prop_oneof![1 => Just(String::new()), 9 => (0..40_u32).prop_map(|it| it.to_string())];
    let key = (prop::sample::select(&TOPICS[..]), name)
        .prop_map(|(topic, name)| format!("{topic}/{name}"));
    let length = prop_oneof![8 => 0..60_usize, 1 => 300..560_usize];
    (key, prop_oneof![3 => length.prop_map(Some), 2 => Just(None)])
}

/// Few changes at once, or many.
fn batches() -> impl Strategy<Value = Vec<Vec<(String, Option<usize>)>>> {
    vec(prop_oneof![3 => vec(edit(), 0..4), 1 => vec(edit(), 30..120)], 1..12)
}

/// Each node is within the limits and in its place.
fn assert_sound(nodes: &[Node]) {
    for (at, node) in nodes.iter().enumerate() {
        let max = if at == 0 { SMALL.root } else { SMALL.node };
        assert!(node.write("0123456789abcdef").len() <= max, "{node:?}");
    }
    if let [Node::Inner { children, .. }, only, ..] = nodes
        && children.len() == 1
    {
        assert!(only.written_bytes() > SMALL.root, "the child could be the root: {only:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn a_namespace_has_the_entries_of_a_sorted_map(batches in batches()) {
        let (store, cache) = (MemoryStore::new(), NodeCache::new(2_000));
        let namespace = small(&store, &cache);
        let mut expected: BTreeMap<String, String> = BTreeMap::new();
        let mut snapshot = crate::Snapshot::default();
        for (number, batch) in batches.iter().enumerate() {
            let values = batch.iter().map(|(key, length)| (key, length.map(|it| format!("{number}{}", "v".repeat(it)))));
            let values: Vec<_> = values.collect();
            let edits = values.iter().map(|(key, value)| (key.as_str(), value.as_deref()));
            let committed = run(commit(&namespace, &changes(edits))).unwrap();
            let before = expected.clone();
            for (key, value) in values {
                match value {
                    Some(value) => drop(expected.insert(key.clone(), value)),
                    None => drop(expected.remove(key)),
                }
            }
            prop_assert_eq!(before == expected, committed.objects_written == 0, "no change, no write");
            prop_assert_eq!(&run(all(&namespace)).unwrap(), &expected);
            assert_sound(&nodes(&namespace));
            let newest = run(namespace.load(None)).unwrap().unwrap_or_default();
            prop_assert_eq!(newest.version(), committed.version);
            for topic in TOPICS {
                let of_topic = |key: &str| key.starts_with(&format!("{topic}/"));
                let found = run(namespace.topic(&newest, topic)).unwrap();
                let pairs = found.iter().map(|it| (it.key.to_string(), it.value.to_string()));
                let wanted = expected.iter().filter(|(key, _)| of_topic(key));
                prop_assert!(pairs.eq(wanted.map(|(key, value)| (key.clone(), value.clone()))), "{}", topic);
                let read = read_again(&namespace, [&snapshot, &newest], topic);
                prop_assert_eq!(read, found, "{}", topic);
            }
            snapshot = newest;
        }
        if let Some(version) = run(namespace.history(1)).unwrap().first() {
            prop_assert_eq!(version.entries, expected.len() as u64);
        }
        for key in store.keys().iter().filter(|key| key.contains("/objects/")) {
            let id = Id::of(&store.content(key).unwrap());
            prop_assert!(key.ends_with(&id.to_string()), "{}", key);
        }
    }
}

/// A topic in the second snapshot, of which only those leaves are read that it did not have in the first.
fn read_again(
    namespace: &Namespace<'_, MemoryStore>,
    [old, new]: [&Snapshot; 2],
    topic: &str,
) -> Vec<Entry> {
    let leaves = |snapshot| run(namespace.topic_leaves(snapshot, topic)).unwrap();
    let (before, after) = (leaves(old), leaves(new));
    let is_in = |all: &[TopicLeaf], leaf: &TopicLeaf| all.iter().any(|it| it.id() == leaf.id());
    let mut entries = run(namespace.topic(old, topic)).unwrap();
    for gone in before.iter().filter(|leaf| !is_in(&after, leaf)) {
        let names = &gone.names;
        entries.retain(|entry| {
            let name = entry.key.split_once('/').map_or("", |(_, name)| name);
            let is_own = name.is_empty() && gone.may_have_own();
            let is_its = !name.is_empty() && *name >= *names.from && !names.ends_before(name);
            !is_own && !is_its
        });
    }
    let added: Vec<_> = after.iter().filter(|leaf| !is_in(&before, leaf)).collect();
    entries.extend(run(namespace.leaf_entries(new, topic, &added)).unwrap().concat());
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    entries
}

#[test]
fn a_tree_that_loses_its_entries_becomes_small_again() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(1 << 20));
    let namespace = small(&store, &cache);
    let keys: Vec<String> = (0..600).map(|at| format!("t/{at:03}")).collect();
    let value = "v".repeat(30);
    run(commit(&namespace, &changes(keys.iter().map(|key| (&**key, Some(&*value)))))).unwrap();
    assert!(nodes(&namespace)[0].level() >= 2);
    // 7 has no common factor with 600, so entries vanish everywhere.
    for at in 0..600 {
        run(commit(&namespace, &changes([(&*keys[at * 7 % 600], None)]))).unwrap();
        let nodes = nodes(&namespace);
        assert_sound(&nodes);
        for node in nodes.iter().skip(1).filter(|_| nodes.len() > 2) {
            assert!(node.written_bytes() >= SMALL.node_min(), "{at}: {node:?}");
        }
    }
    assert_eq!(nodes(&namespace), []);
    let newest = &run(namespace.history(1)).unwrap()[0];
    assert_eq!((newest.number, newest.entries, newest.root), (601, 0, None));
}

#[test]
fn a_commit_that_removes_most_entries_leaves_no_small_nodes() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(1 << 20));
    let namespace = small(&store, &cache);
    let keys: Vec<String> = (0..2_000).map(|at| format!("t/{at:04}")).collect();
    let value = "v".repeat(30);
    run(commit(&namespace, &changes(keys.iter().map(|key| (&**key, Some(&*value)))))).unwrap();
    let most = keys.iter().enumerate().filter(|(at, _)| at % 20 != 0);
    run(commit(&namespace, &changes(most.map(|(_, key)| (&**key, None))))).unwrap();
    let nodes = nodes(&namespace);
    assert_sound(&nodes);
    assert!(nodes.len() > 3, "{}", nodes.len());
    for node in nodes.iter().skip(1) {
        assert!(node.written_bytes() >= SMALL.node_min(), "{node:?}");
    }
    assert_eq!(run(all(&namespace)).unwrap().len(), 100);
}

#[test]
fn small_leaves_beside_each_other_are_merged_until_they_are_large_enough() {
    for end in 10..60 {
        let (store, cache) = (MemoryStore::new(), NodeCache::new(1 << 20));
        let namespace = small(&store, &cache);
        let keys: Vec<String> = (0..100).map(|at| format!("t/{at:04}")).collect();
        let value = "v".repeat(30);
        run(commit(&namespace, &changes(keys.iter().map(|key| (&**key, Some(&*value)))))).unwrap();
        let removed = keys.iter().enumerate().take(end).filter(|(at, _)| at % 20 != 0);
        run(commit(&namespace, &changes(removed.map(|(_, key)| (&**key, None))))).unwrap();
        for node in nodes(&namespace).iter().skip(1) {
            assert!(node.written_bytes() >= SMALL.node_min(), "{end}: {node:?}");
        }
    }
}
