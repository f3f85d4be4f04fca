//! A topic in more leaves than readers take is not written.

use super::memory_store::MemoryStore;
use super::{SMALL, all, changes, commit, run, small};
use crate::format::Limits;
use crate::{Changes, CommitError, Namespace, NodeCache};

const LEAVES_MAX: usize = 20;

fn key(at: usize) -> String {
    format!("orders/{at:04}")
}

/// In how many leaves the topic is.
fn leaves(namespace: &Namespace<'_, MemoryStore>) -> usize {
    let snapshot = run(namespace.load(None)).unwrap().unwrap_or_default();
    run(namespace.topic_leaves(&snapshot, "orders")).unwrap().len()
}

#[test]
fn a_change_that_would_make_a_topic_too_large_to_be_read_is_refused_whole() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let mut namespace = small(&store, &cache);
    namespace.limits = Limits { topic_leaves: LEAVES_MAX, ..SMALL };
    let value = "v".repeat(300);
    // Neighbours on both sides, which do not count.
    let others = (0..60).map(|at| [format!("a/{at:04}"), format!("z/{at:04}")]);
    let mut beside = Changes::default();
    for key in others.flatten() {
        beside.put(key, value.as_str());
    }
    run(commit(&namespace, &beside)).unwrap_err();
    namespace.limits.topic_leaves = 200;
    run(commit(&namespace, &beside)).unwrap();
    namespace.limits.topic_leaves = LEAVES_MAX;

    // One after the other: the last one that fits leaves as many as there may be.
    let refused = (0..200).find_map(|at| {
        let before = leaves(&namespace);
        let error = run(commit(&namespace, &changes([(&*key(at), Some(&*value))]))).err()?;
        assert_eq!(leaves(&namespace), before, "nothing was changed");
        Some((at, before, error))
    });
    let (at, before, error) = refused.expect("a limit");
    assert_eq!(before, LEAVES_MAX);
    let expected = CommitError::TopicTooLarge {
        topic: "orders".to_owned(),
        leaves: LEAVES_MAX + 1,
        max: LEAVES_MAX,
    };
    assert_eq!(error, expected);
    assert!(error.to_string().contains("the topic orders would be in 21 leaves"), "{error}");

    // What needs no further leaf is changed, entries can be removed, and other topics are not concerned.
    run(commit(&namespace, &changes([(&*key(0), Some("short")), ("b/1", Some(&*value))]))).unwrap();
    let all_before = run(all(&namespace)).unwrap().len();
    let gone: Vec<String> = (at / 2..at).map(key).collect();
    run(commit(&namespace, &changes(gone.iter().map(|key| (&**key, None))))).unwrap();
    assert_eq!(run(all(&namespace)).unwrap().len(), all_before - gone.len());
    run(commit(&namespace, &changes([(&*key(at), Some(&*value))]))).unwrap();
}

#[test]
fn many_entries_at_once_are_refused_as_well() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let mut namespace = small(&store, &cache);
    namespace.limits = Limits { topic_leaves: LEAVES_MAX, ..SMALL };
    let mut many = Changes::default();
    for at in 0..200 {
        many.put(key(at), "v".repeat(300));
    }
    let error = run(commit(&namespace, &many)).unwrap_err();
    assert!(matches!(error, CommitError::TopicTooLarge { leaves: 21.., .. }), "{error}");
    assert_eq!(run(all(&namespace)).unwrap().len(), 0);
}
