//! Namespaces without a pointer: one that was lost, and first changes that did not end.

use std::pin::{Pin, pin};
use std::task::Context;

use futures::task::noop_waker_ref;

use super::memory_store::{Fault, MemoryStore};
use super::steps::{interleave, step};
use super::{all, changes, commit, count, run, small};
use crate::{Changed, CommitError, Hint, NodeCache, Objects as _, ReadError, Snapshot};

const POINTER: &str = "namespaces/shop/pointer";

/// How many there are besides pointer and hint.
fn objects(store: &MemoryStore) -> usize {
    store.keys().iter().filter(|key| key.contains("/objects/")).count()
}

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
    // Readers have nothing new, and who looks at it changes nothing.
    assert!(run(namespace.load(None)).unwrap().is_none());
    let (snapshot, version) = run(namespace.load_to_change()).unwrap().unwrap();
    assert_eq!((version.number, snapshot.is_without_pointer()), (40, true));
    assert_eq!(store.content(POINTER), None);

    // Also where there is nothing to change, and readers are told.
    let hint = run(Hint::load(&store, None)).unwrap().unwrap();
    let nothing = run(commit(&namespace, &changes([("t/00", Some("1"))]))).unwrap();
    assert_eq!((nothing.number, nothing.objects_written), (40, 1));
    assert_eq!(store.content(POINTER).unwrap(), before);
    let later = run(Hint::load(&store, None)).unwrap().unwrap();
    let changed = later.changed_since(Some(&hint));
    assert_eq!(changed, Changed::Namespaces(vec!["shop".to_owned()]));

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
    let committed = run(commit(&namespace, &changes([("t/a", None)]))).unwrap();
    assert_eq!(committed.number, 2);
    assert!(run(namespace.load(None)).unwrap().is_some());
    assert!(run(all(&namespace)).unwrap().is_empty());
}

#[test]
fn a_first_change_that_did_not_end_is_ended_or_made_again() {
    // The pointer, a listing, the root, the version, the pointer again.
    for after in 0..5 {
        let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
        let namespace = small(&store, &cache);
        store.fail(after, Fault::Before);
        let first = run(commit(&namespace, &changes([("t/a", Some("1"))])));
        assert_eq!(store.stop_failing(), 0);
        let second = run(commit(&namespace, &changes([("t/b", Some("1"))]))).unwrap();
        let found = run(all(&namespace)).unwrap();
        let has = |key| found.contains_key(key);
        assert!(has("t/b"), "{after}");
        assert!(first.is_err() || has("t/a"), "{after}: what was reported is there");
        assert_eq!(second.number, if has("t/a") { 2 } else { 1 }, "{after}");
    }
}

#[test]
fn a_pointer_that_is_refused_although_nobody_was_faster_is_written_by_the_next_try() {
    // The pointer of the very first change, and one in the place of a lost one, with and without differences.
    for (earlier, value) in [(0, "1"), (3, "1"), (3, "0")] {
        for refusals in 1..4 {
            let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
            let namespace = small(&store, &cache);
            for at in 0..earlier {
                run(commit(&namespace, &changes([(&*format!("t/{at}"), Some("0"))]))).unwrap();
            }
            let expected = earlier + u64::from(earlier == 0 || value != "0");
            lose_the_pointer(&store);
            store.refuse(refusals);
            let change = async |_| {
                // Asked a second time it would find its own change.
                let mut changes = changes([("t/0", Some(value))]);
                changes.expect("t/0", (earlier > 0).then_some("0"));
                Ok::<_, ReadError>(changes)
            };
            let committed = run(namespace.commit(&store, "a test", change)).unwrap();
            let case = format!("{earlier} {value} {refusals}");
            assert_eq!((committed.number, committed.conflicts), (expected, refusals + 1), "{case}");
            let history = run(namespace.history(9)).unwrap();
            assert_eq!(history.len() as u64, expected, "{case}");
            assert_eq!(run(all(&namespace)).unwrap()["t/0"], value, "{case}");
        }
    }
}

#[test]
fn a_pointer_that_is_refused_in_each_try_leaves_it_uncertain_whether_the_change_is_made() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    store.refuse(1_000);
    let error = run(commit(&namespace, &changes([("t/a", Some("1"))]))).unwrap_err();
    let CommitError::Uncertain { version, .. } = error else { panic!("{error}") };
    store.refuse(0);
    // The next change ends it first.
    run(commit(&namespace, &changes([("t/b", Some("1"))]))).unwrap();
    let ids = run(namespace.history(9)).unwrap().into_iter().map(|version| version.id.to_string());
    assert_eq!(ids.collect::<Vec<_>>().get(1), Some(&version));
}

#[test]
fn of_several_who_make_the_first_change_each_makes_it_once() {
    for (seed, refusals) in (0..400).flat_map(|seed| [(seed, 0), (seed, 1)]) {
        let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
        let namespace = small(&store, &cache);
        store.refuse(refusals);
        let one = async |key| drop(count(&namespace, "t/", key).await.unwrap());
        let all_of_them = ["t/a", "t/b", "t/c"].map(|key| Box::pin(one(key)) as _);
        interleave(seed, all_of_them.into());
        assert_eq!(run(all(&namespace)).unwrap()["t/"], "3", "{seed} {refusals}");
    }
}

#[test]
fn a_first_change_is_not_made_again_over_that_of_another_who_saw_it() {
    for seed in 0..400 {
        let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
        let namespace = small(&store, &cache);
        store.refuse(1);
        let first = async {
            commit(&namespace, &changes([("t/a", Some("1"))])).await.unwrap();
        };
        let second = async {
            while objects(&store) < 2 {
                step().await;
            }
            let change = async |snapshot: Snapshot| {
                let before = namespace.entry(&snapshot, "t/a").await?.unwrap_or_default();
                Ok::<_, ReadError>(changes([("t/a", Some(&*format!("{before}2")))]))
            };
            namespace.commit(&store, "a test", change).await.unwrap();
        };
        interleave(seed, vec![Box::pin(first), Box::pin(second)]);
        assert_eq!(run(all(&namespace)).unwrap()["t/a"], "12", "{seed}");
        assert_eq!(run(namespace.history(9)).unwrap().len(), 2, "{seed}");
    }
}

#[test]
fn what_was_made_is_not_lost_below_versions_that_no_pointer_named() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    let mut context = Context::from_waker(noop_waker_ref());
    let [a, b, c] = ["t/a", "t/b", "t/c"].map(|key| changes([(key, Some("1"))]));
    let mut first = pin!(commit(&namespace, &a));
    {
        // Each is stopped when its version is written, and the others never go on.
        let (mut second, mut third) = (pin!(commit(&namespace, &b)), pin!(commit(&namespace, &c)));
        let started: [Pin<&mut dyn Future<Output = _>>; 3] =
            [first.as_mut(), second.as_mut(), third.as_mut()];
        for (at, mut one) in (1..).zip(started) {
            while objects(&store) < 2 * at {
                assert!(one.as_mut().poll(&mut context).is_pending());
            }
        }
    }
    run(first).unwrap();
    let d = changes([("t/d", Some("1"))]);
    assert_eq!(run(commit(&namespace, &d)).unwrap().number, 2);
    lose_the_pointer(&store);
    // Nobody knows which of three is the newest; a change must not begin with any.
    let several = ReadError::SeveralNewest { object: POINTER.to_owned(), versions: 3, number: 2 };
    let e = changes([("t/e", Some("1"))]);
    assert_eq!(run(commit(&namespace, &e)).unwrap_err(), CommitError::Read(several));
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
