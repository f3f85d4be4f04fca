//! Namespaces without a pointer: one that was lost, and first changes that did not end.

use super::memory_store::{Fault, MemoryStore};
use super::{all, changes, commit, run, small};
use crate::{CommitError, NodeCache, Objects as _, ReadError};

const POINTER: &str = "namespaces/shop/pointer";

fn lose_the_pointer(store: &MemoryStore) {
    run(store.delete(&[POINTER.to_owned()])).unwrap();
}

#[test]
fn a_lost_pointer_is_restored_before_a_change() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    let keys: Vec<String> = (0..40).map(|at| format!("t/{at:02}")).collect();
    for key in &keys {
        run(commit(&namespace, &changes([(&**key, Some("1"))]))).unwrap();
    }
    let before = store.content(POINTER).unwrap();
    lose_the_pointer(&store);
    // Readers have nothing new.
    assert!(run(namespace.load(None)).unwrap().is_none());

    // Also where there is nothing to change.
    let nothing = run(commit(&namespace, &changes([("t/00", Some("1"))]))).unwrap();
    assert_eq!((nothing.number, nothing.objects_written), (40, 0));
    assert_eq!(store.content(POINTER).unwrap(), before);

    lose_the_pointer(&store);
    let committed = run(commit(&namespace, &changes([("t/40", Some("1"))]))).unwrap();
    assert_eq!(committed.number, 41);
    assert_eq!(run(all(&namespace)).unwrap().len(), 41);
    let numbers: Vec<u64> =
        run(namespace.history(50)).unwrap().iter().map(|version| version.number).collect();
    assert_eq!(numbers, (1..=41).rev().collect::<Vec<_>>());
}

#[test]
fn a_lost_pointer_of_a_namespace_that_was_emptied_is_restored() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    run(commit(&namespace, &changes([("t/a", Some("1"))]))).unwrap();
    run(commit(&namespace, &changes([("t/a", None)]))).unwrap();
    lose_the_pointer(&store);
    let snapshot = run(namespace.load_to_change()).unwrap().unwrap();
    assert_eq!(run(namespace.version_of(&snapshot)).unwrap().unwrap().number, 2);
    assert!(run(all(&namespace)).unwrap().is_empty());
}

#[test]
fn a_first_change_that_did_not_end_is_ended_or_made_again() {
    // The pointer, a listing, the root, the version, the pointer again, and what is read if that fails.
    for after in 0..6 {
        let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
        let namespace = small(&store, &cache);
        store.fail(after, Fault::Before);
        let first = run(commit(&namespace, &changes([("t/a", Some("1"))])));
        store.stop_failing();
        let second = run(commit(&namespace, &changes([("t/b", Some("1"))]))).unwrap();
        let found = run(all(&namespace)).unwrap();
        let has = |key| found.contains_key(key);
        assert!(has("t/b"), "{after}");
        assert!(first.is_err() || has("t/a"), "{after}: what was reported is there");
        assert_eq!(second.number, if has("t/a") { 2 } else { 1 }, "{after}");
    }
}

#[test]
fn of_several_newest_versions_none_is_chosen() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    // Each as if it had not seen the other.
    let mut hidden = Vec::new();
    for key in ["t/a", "t/b"] {
        run(commit(&namespace, &changes([(key, Some("1"))]))).unwrap();
        lose_the_pointer(&store);
        let keys: Vec<String> =
            store.keys().into_iter().filter(|key| key.contains("/objects/")).collect();
        hidden.extend(keys.iter().map(|key| (key.clone(), store.content(key).unwrap())));
        run(store.delete(&keys)).unwrap();
    }
    hidden.into_iter().for_each(|(key, bytes)| store.set(&key, bytes));
    let several = ReadError::SeveralNewest { object: POINTER.to_owned(), versions: 2, number: 1 };
    assert_eq!(run(namespace.load_to_change()).unwrap_err(), several);
    let refused = run(commit(&namespace, &changes([("t/c", Some("1"))]))).unwrap_err();
    assert_eq!(refused, CommitError::Read(several));
    assert_eq!(store.content(POINTER), None);
}

#[test]
fn without_a_pointer_an_object_that_is_damaged_stops_a_change() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    run(commit(&namespace, &changes([("t/a", Some("1"))]))).unwrap();
    lose_the_pointer(&store);
    let key = store.keys().into_iter().find(|key| key.contains("/objects/")).unwrap();
    store.set(&key, b"{}".to_vec());
    let refused = run(commit(&namespace, &changes([("t/b", Some("1"))]))).unwrap_err();
    assert!(
        matches!(&refused, CommitError::Read(ReadError::Damaged { object, .. }) if *object == key),
        "{refused}"
    );
}
