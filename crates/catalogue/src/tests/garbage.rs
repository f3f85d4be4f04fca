//! What is removed, and what is not.

use std::sync::atomic::Ordering;

use delivery::ports::Clock as _;

use super::memory_store::{Fault, MemoryStore};
use super::steps::interleave;
use super::{all, all_of, changes, commit, run, small};
use crate::{Collected, NodeCache, RETENTION_MS, ReadError};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

fn wait(store: &MemoryStore, days: u64) {
    store.now_ms.fetch_add(days * DAY_MS, Ordering::SeqCst);
}

#[test]
fn versions_can_be_read_for_thirty_days_after_they_were_replaced() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    let collect = || run(namespace.collect_garbage(store.now_ms())).unwrap();
    run(commit(&namespace, &changes([("t/", Some("1"))]))).unwrap();
    wait(&store, 100);
    let old = run(namespace.load(None)).unwrap().unwrap();
    assert_eq!(collect(), Collected { objects: 2, removed: 0, versions: 1 });

    run(commit(&namespace, &changes([("t/", Some("2"))]))).unwrap();
    assert_eq!(collect(), Collected { objects: 4, removed: 0, versions: 2 });
    wait(&store, 29);
    run(commit(&namespace, &changes([("t/", Some("3"))]))).unwrap();
    assert_eq!(collect(), Collected { objects: 6, removed: 0, versions: 3 });
    let of_old = run(namespace.of_version(old.version().unwrap())).unwrap();
    assert_eq!(run(all_of(&namespace, &of_old)).unwrap()["t/"], "1");

    wait(&store, 2);
    assert_eq!(collect(), Collected { objects: 6, removed: 2, versions: 2 });
    let gone = run(namespace.of_version(old.version().unwrap())).unwrap_err();
    assert!(matches!(gone, ReadError::Missing { .. }), "{gone}");
    let numbers: Vec<u64> = run(namespace.history(9)).unwrap().iter().map(|it| it.number).collect();
    assert_eq!(numbers, [3, 2]);
    // Also when the clock was ahead before.
    assert_eq!(run(namespace.collect_garbage(store.now_ms() - 20 * DAY_MS)).unwrap().versions, 2);
    wait(&store, 40);
    assert_eq!(collect(), Collected { objects: 4, removed: 2, versions: 1 });
    assert_eq!(run(all(&namespace)).unwrap()["t/"], "3");
}

#[test]
fn the_nodes_of_kept_versions_stay_and_those_of_removed_ones_go() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    let keys: Vec<String> = (0..200).map(|at| format!("t/{at:03}")).collect();
    let value = "v".repeat(30);
    run(commit(&namespace, &changes(keys.iter().map(|key| (&**key, Some(&*value)))))).unwrap();
    for key in keys.iter().step_by(10) {
        wait(&store, 10);
        run(commit(&namespace, &changes([(&**key, Some("new"))]))).unwrap();
        run(namespace.collect_garbage(store.now_ms())).unwrap();
        for version in run(namespace.history(100)).unwrap().iter().take(4) {
            let snapshot = run(namespace.of_version(version.id)).unwrap();
            assert_eq!(run(all_of(&namespace, &snapshot)).unwrap().len(), 200);
        }
    }
    wait(&store, 31);
    run(namespace.collect_garbage(store.now_ms())).unwrap();
    // The newest version, its tree, the pointer, and the hint.
    assert_eq!(store.keys().len(), super::nodes(&namespace).len() + 3);
}

#[test]
fn what_is_young_or_none_of_ours_stays_and_without_a_pointer_everything_does() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    // The pointer, a listing, the root: no version.
    store.fail(3, Fault::Before);
    run(commit(&namespace, &changes([("t/", Some("lost"))]))).unwrap_err();
    wait(&store, 31);
    assert_eq!(run(namespace.collect_garbage(store.now_ms())), Ok(Collected::default()));
    store.set("namespaces/shop/objects/readme", Vec::new());
    store.set("namespaces/shopping/objects/readme", Vec::new());
    run(commit(&namespace, &changes([("t/", Some(""))]))).unwrap();
    store.fail(4, Fault::Before);
    run(commit(&namespace, &changes([("t/", Some("lost"))]))).unwrap_err();
    let collected = run(namespace.collect_garbage(store.now_ms())).unwrap();
    assert_eq!(collected, Collected { objects: 5, removed: 1, versions: 1 });
    store.now_ms.fetch_add(RETENTION_MS - 1_000, Ordering::SeqCst);
    assert_eq!(run(namespace.collect_garbage(store.now_ms())).unwrap().removed, 0);
    wait(&store, 1);
    assert_eq!(run(namespace.collect_garbage(store.now_ms())).unwrap().removed, 2);
    assert!(store.keys().iter().filter(|key| key.ends_with("readme")).count() == 2);
}

#[test]
fn a_commit_that_repeats_old_garbage_keeps_its_objects_while_a_collection_removes_the_garbage() {
    for seed in 0..500 {
        let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
        let namespace = small(&store, &cache);
        run(commit(&namespace, &changes([("t/", Some("1"))]))).unwrap();
        store.fail(4, Fault::Before);
        run(commit(&namespace, &changes([("t/", Some("2"))]))).unwrap_err();
        wait(&store, 40);
        let again = async {
            commit(&namespace, &changes([("t/", Some("2"))])).await.unwrap();
        };
        let collect = async {
            let collected = namespace.collect_garbage(store.now_ms()).await.unwrap();
            assert_eq!(collected.removed, 2, "{seed}");
        };
        interleave(seed, vec![Box::pin(again), Box::pin(collect)]);
        assert_eq!(run(all(&namespace)).unwrap()["t/"], "2", "{seed}");
        let newest = run(namespace.history(1)).unwrap()[0].id;
        assert!(run(namespace.of_version(newest)).is_ok(), "{seed}");
    }
}

#[test]
fn nothing_is_removed_when_a_needed_node_cannot_be_read() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    for value in ["1", "2"] {
        run(commit(&namespace, &changes([("t/", Some(value))]))).unwrap();
        wait(&store, 40);
    }
    let root = run(namespace.history(1)).unwrap()[0].root.unwrap();
    store.set(&namespace.object_key(root), b"{}".to_vec());
    let before = store.keys();
    let error = run(namespace.collect_garbage(store.now_ms())).unwrap_err();
    assert!(error.to_string().contains(&root.to_string()), "{error}");
    assert_eq!(store.keys(), before);
}

#[test]
fn a_commit_of_more_than_a_day_does_not_replace_the_pointer() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    let slow = async |_: crate::Snapshot| {
        wait(&store, 1);
        Ok::<_, std::convert::Infallible>(changes([("t/", Some(""))]))
    };
    let error = run(namespace.commit(&store, "a test", slow)).unwrap_err();
    assert_eq!(error, crate::CommitError::TooSlow);
    assert_eq!(run(all(&namespace)).unwrap().len(), 0);
}
