//! Several at once over one storage, in many orders of their steps.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use delivery::ports::Clock as _;

use super::memory_store::{Fault, MemoryStore};
use super::steps::{interleave, step};
use super::{all, all_of, changes, commit, count, run, small};
use crate::{CommitError, Id, NodeCache, Snapshot};

const CALL_MS: u64 = 10 * 60 * 1_000;
const CHANGES: u64 = 1_000;
const WRITERS: [&str; 2] = ["anna", "bert"];

/// What each commit of a writer leaves: the counter of both, and one entry for each count.
fn assert_whole(entries: &BTreeMap<String, String>) {
    let Some(counter) = entries.get("t/") else { return assert_eq!(entries.len(), 0) };
    assert_eq!(*counter, (entries.len() - 1).to_string());
}

#[test]
fn two_writers_lose_nothing_while_others_read_and_collect() {
    let store = MemoryStore::new();
    // A commit takes minutes to hours, all of them months: garbage becomes old on the way.
    store.call_ms.store(CALL_MS, Ordering::SeqCst);
    let caches = [(); 4].map(|()| NodeCache::new(8_000));
    let [first, second, reader, collector] = caches.each_ref().map(|cache| small(&store, cache));
    let (working, started_ms) = (Cell::new(2), store.now_ms());
    let (conflicts, removed, reads) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let slow = Cell::new(0);
    let write = async |namespace, writer: &str| {
        for at in 0..CHANGES {
            let key = format!("t/{writer}-{at}");
            let committed = loop {
                match count(namespace, "t/", &key).await {
                    Ok(committed) => break committed,
                    Err(CommitError::TooSlow) => slow.set(slow.get() + 1),
                    Err(CommitError::Contention { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            };
            conflicts.set(conflicts.get() + committed.conflicts);
        }
        working.set(working.get() - 1);
    };
    let read = async || {
        while working.get() > 0 {
            let Some(snapshot) = reader.load(None).await.unwrap() else { continue };
            let entries = all_of(&reader, &snapshot).await.unwrap();
            assert_whole(&entries);
            let topic = reader.topic(&snapshot, "t").await.unwrap();
            assert_eq!(topic.len(), entries.len());
            reads.set(reads.get() + 1);
        }
    };
    let collect = async || {
        while working.get() > 0 {
            let collected = collector.collect_garbage(store.now_ms()).await;
            removed.set(removed.get() + collected.unwrap().removed);
        }
    };
    let [anna, bert] = WRITERS;
    interleave(
        1,
        vec![
            Box::pin(write(&first, anna)),
            Box::pin(write(&second, bert)),
            Box::pin(read()),
            Box::pin(collect()),
        ],
    );
    let days = (store.now_ms() - started_ms) / (24 * 60 * 60 * 1_000);
    println!("{days} days, {} commits were too slow", slow.get());
    assert!(days > 60 && slow.get() > 0);
    println!(
        "{} conflicts, {} reads, {} objects removed",
        conflicts.get(),
        reads.get(),
        removed.get()
    );
    assert!(conflicts.get() > 100 && reads.get() > 50 && removed.get() > 1_000);

    let entries = run(all(&reader)).unwrap();
    assert_whole(&entries);
    assert_eq!(entries.len() as u64, 2 * CHANGES + 1);
    for key in store.keys().iter().filter(|key| key.contains("/objects/")) {
        assert!(key.ends_with(&Id::of(&store.content(key).unwrap()).to_string()), "{key}");
    }
    let newest = &run(reader.history(1)).unwrap()[0];
    assert_eq!((newest.number, newest.entries), (2 * CHANGES, 2 * CHANGES + 1));
}

#[test]
fn a_change_whose_answer_was_lost_is_not_made_again_over_that_of_another() {
    for seed in 0..300 {
        for fault in [Fault::After, Fault::LostAnswer] {
            let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
            let namespace = small(&store, &cache);
            run(commit(&namespace, &changes([("t/", Some("0"))]))).unwrap();
            // The pointer, its version, the root and a version: the fifth call is the replacement.
            store.fail(4, fault);
            let first = async {
                let result = count(&namespace, "t/", "t/a").await;
                let number = result.map(|committed| committed.number);
                assert!(matches!(number, Ok(2)), "{seed} {fault:?}: {number:?}");
            };
            let second = async {
                while store.is_failing() {
                    step().await;
                }
                for name in ["t/b", "t/c"] {
                    count(&namespace, "t/", name).await.unwrap();
                }
            };
            interleave(seed, vec![Box::pin(first), Box::pin(second)]);
            assert_eq!(run(all(&namespace)).unwrap()["t/"], "3", "{seed} {fault:?}");
            assert_eq!(run(namespace.history(9)).unwrap().len(), 4, "{seed} {fault:?}");
        }
    }
}

#[test]
fn of_two_who_expect_an_entry_to_be_missing_one_is_told_that_it_is_there() {
    for seed in 0..100 {
        let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
        let namespace = small(&store, &cache);
        let won = Cell::new(0);
        let claim = async || {
            let mut claim = changes([("t/owner", Some("me"))]);
            claim.expect("t/owner", None);
            match commit(&namespace, &claim).await {
                Ok(_) => won.set(won.get() + 1),
                Err(error) => {
                    let key = "t/owner".to_owned();
                    let current = Some("me".to_owned());
                    assert_eq!(error, CommitError::Unexpected { key, current });
                }
            }
        };
        interleave(seed, vec![Box::pin(claim()), Box::pin(claim())]);
        assert_eq!(won.get(), 1, "{seed}");
    }
}

#[test]
fn who_is_always_too_late_gives_up_and_has_changed_nothing() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    let others = Cell::new(0);
    let change = async |_| {
        others.set(others.get() + 1);
        count(&namespace, "t/", "t/other").await?;
        Ok(changes([("t/mine", Some(""))]))
    };
    let result: Result<_, CommitError<CommitError<crate::ReadError>>> =
        run(namespace.commit(&store, "a test", change));
    assert_eq!(result, Err(CommitError::Contention { tries: 20 }));
    assert_eq!(others.get(), 20);
    let entries = run(all(&namespace)).unwrap();
    assert_eq!(entries.keys().collect::<Vec<_>>(), ["t/", "t/other"]);
}

#[test]
fn a_replacement_that_failed_is_repeated_where_it_can_no_longer_succeed() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    run(commit(&namespace, &changes([("t/", Some("0"))]))).unwrap();
    let change = async |snapshot: Snapshot| {
        if snapshot.version() == run(namespace.history(9)).unwrap().last().map(|first| first.id) {
            count(&namespace, "t/", "t/other").await?;
            // The root, the version, the pointer.
            store.fail(2, Fault::Before);
        }
        Ok(changes([("t/mine", Some(""))]))
    };
    let result: Result<_, CommitError<CommitError<crate::ReadError>>> =
        run(namespace.commit(&store, "a test", change));
    assert_eq!(result.map(|committed| (committed.number, committed.conflicts)), Ok((3, 1)));
}
