//! Storage fails at each call of a commit in turn.

use std::collections::BTreeMap;

use super::memory_store::{Fault, MemoryStore};
use super::{all, changes, commit, count, run, small};
use crate::{CommitError, Namespace, NodeCache};

/// Two topics in a tree of several levels.
fn fill(namespace: &Namespace<'_, MemoryStore>) {
    let keys: Vec<String> = (0..120).map(|at| format!("t/{at:03}")).collect();
    let value = "v".repeat(30);
    let mut filled = changes(keys.iter().map(|key| (&**key, Some(&*value))));
    filled.put("u/", "0");
    run(commit(namespace, &filled)).unwrap();
}

const FAULTS: [Fault; 3] = [Fault::Before, Fault::After, Fault::LostAnswer];

/// A commit fails in these calls, and is repeated. How many of the faults did not happen.
fn assert_repeatable(faults: &[(u64, Fault)]) -> usize {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    fill(&namespace);
    let before = run(all(&namespace)).unwrap();
    faults.iter().for_each(|(call, fault)| store.fail(*call, *fault));
    let result = run(count(&namespace, "u/", "t/0605"));
    let left = store.stop_failing();
    let case = format!("{faults:?}: {result:?}");
    let found = run(all(&namespace)).unwrap();
    let is_made = found["u/"] == "1";
    assert_eq!(found.contains_key("t/0605"), is_made, "{case}");
    assert_eq!(found.len(), before.len() + usize::from(is_made), "{case}");
    match &result {
        Ok(committed) => assert!(is_made && committed.number == 2, "{case}"),
        Err(CommitError::Uncertain { version, .. }) => {
            let newest = run(namespace.history(1)).unwrap()[0].id.to_string();
            assert_eq!(*version == newest, is_made, "{case}");
        }
        Err(_) => assert!(!is_made, "{case}"),
    }
    let again = run(count(&namespace, "u/", "t/0605")).unwrap();
    assert_eq!(again.number, 2 + u64::from(is_made), "{case}");
    let after: BTreeMap<_, _> = run(all(&namespace)).unwrap();
    assert_eq!(after["u/"], (1 + u32::from(is_made)).to_string(), "{case}");
    assert_eq!(after.len(), before.len() + 1, "{case}");
    left
}

#[test]
fn a_commit_that_fails_at_any_call_leaves_a_whole_version_and_can_be_repeated() {
    for fault in FAULTS {
        let calls = (0..).take_while(|call| assert_repeatable(&[(*call, fault)]) == 0).count();
        println!("{fault:?}: {calls} calls");
        assert!(calls >= 10, "{calls}");
    }
}

#[test]
fn a_commit_whose_last_calls_fail_can_be_repeated_too() {
    // The thirteenth call is the replacement of the pointer.
    for fault in FAULTS {
        for second in FAULTS {
            let mut calls = 13..;
            assert!(calls.any(|call| assert_repeatable(&[(12, fault), (call, second)]) == 1));
            assert!(calls.start > 14, "the pointer is read again at least");
        }
    }
}

#[test]
fn the_first_commit_can_fail_at_any_call_too() {
    for fault in [Fault::Before, Fault::After, Fault::LostAnswer] {
        for calls in 0..5 {
            let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
            let namespace = small(&store, &cache);
            store.fail(calls, fault);
            let result = run(count(&namespace, "t/", "t/a"));
            assert_eq!(store.stop_failing(), 0);
            let found = run(all(&namespace)).unwrap();
            assert!(found.is_empty() || found["t/"] == "1", "{fault:?} {calls}");
            assert!(result.is_err() || !found.is_empty(), "{fault:?} {calls}");
            let again = run(count(&namespace, "t/", "t/a")).unwrap();
            assert!(found.is_empty() || again.number == 2, "{fault:?} {calls}");
            // The first one is ended before the second, or was never there.
            let counted = run(all(&namespace)).unwrap()["t/"].clone();
            assert_eq!(counted, again.number.to_string(), "{fault:?} {calls}");
        }
    }
}

#[test]
fn an_uncertain_commit_names_the_version_that_may_be_there() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    // The pointer, a listing, two objects: the fifth call is the replacement.
    store.fail(4, Fault::Before);
    let error = run(commit(&namespace, &changes([("t/", Some(""))]))).unwrap_err();
    assert!(
        matches!(&error, CommitError::Uncertain { version, .. } if version.len() == 64),
        "{error:?}"
    );
    assert!(error.to_string().starts_with("it is not certain whether the change was made: "));
}
