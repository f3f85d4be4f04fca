//! The keys of objects, the history, refused changes, and what readers are spared.

use super::memory_store::MemoryStore;
use super::{all, changes, commit, run, small};
use crate::{Changes, CommitError, ENTRY_MAX_BYTES, Namespace, NodeCache, ReadError, StoreError};

#[test]
fn a_namespace_is_a_folder_with_a_pointer_and_objects() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = Namespace::new(&store, &cache, "a b/..");
    let committed = run(commit(&namespace, &changes([("t/", Some("{}"))]))).unwrap();
    let (folder, version) = ("namespaces/a%20b%2F..", committed.version.unwrap());
    let newest = &run(namespace.history(1)).unwrap()[0];
    let root = newest.root.unwrap();
    let mut keys = [version, root].map(|id| format!("{folder}/objects/{id}")).to_vec();
    keys.sort();
    keys.push(format!("{folder}/pointer"));
    keys.insert(0, "hint".to_owned());
    assert_eq!(store.keys(), keys);
    let [node, pointer] = [format!("{folder}/objects/{root}"), format!("{folder}/pointer")]
        .map(|key| String::from_utf8(store.content(&key).unwrap()).unwrap());
    assert!(node.ends_with(r#","entries":[["t/","{}"]]}"#), "{node}");
    assert_eq!(pointer, format!(r#"{{"format":1,"version":"{version}","root":{node}}}"#));
    assert_eq!((committed.objects_written, committed.conflicts), (3, 0));
    let hint_bytes = store.content("hint").unwrap().len() as u64;
    assert_eq!(committed.bytes_written + hint_bytes, store.take_counts().bytes_written);
}

#[test]
fn the_history_says_who_changed_what_and_when() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    assert_eq!(run(namespace.history(9)).unwrap(), []);
    assert!(run(namespace.load(None)).unwrap().is_none());
    run(commit(&namespace, &changes([("t/", Some("1")), ("t/a", Some("1"))]))).unwrap();
    let none = run(commit(&namespace, &changes([("t/", Some("1")), ("t/b", None)]))).unwrap();
    assert_eq!((none.number, none.objects_written), (1, 0));
    run(commit(&namespace, &changes([("t/", Some("2")), ("t/a", None), ("u/", Some(""))])))
        .unwrap();
    let history = run(namespace.history(9)).unwrap();
    let [second, first] = &history[..] else { panic!("{history:?}") };
    assert_eq!(first.what, ["added t/", "added t/a"]);
    assert_eq!(second.what, ["changed t/", "removed t/a", "added u/"]);
    assert_eq!((first.number, first.entries, first.previous), (1, 2, None));
    assert_eq!((second.number, second.entries, second.previous), (2, 2, Some(first.id)));
    assert_eq!(second.by, "a test");
    assert!(first.time_ms < second.time_ms);
    let old = run(namespace.of_version(first.id)).unwrap();
    assert_eq!(run(namespace.entry(&old, "t/a")).unwrap().as_deref(), Some("1"));
    assert_eq!(run(namespace.history(1)).unwrap().len(), 1);
    let down_to = |number| run(namespace.history_down_to(number)).unwrap().len();
    assert_eq!([0, 1, 2, 3].map(down_to), [2, 2, 1, 1]);
}

#[test]
fn what_cannot_be_an_entry_is_refused_and_named() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = Namespace::new(&store, &cache, "shop");
    for key in ["", "t", "/", "/a", "t/a/b", "t/\n"] {
        let error = run(commit(&namespace, &changes([(key, None)]))).unwrap_err();
        assert_eq!(error, CommitError::InvalidKey { key: key.to_owned() });
        assert!(error.to_string().starts_with(&format!("{key:?} is not a key: ")), "{error}");
    }
    // `["t/a","…"],` and a quote, which is written as two bytes.
    let frame = r#"["t/a",""],"#.len();
    let largest = format!("\"{}", "x".repeat(ENTRY_MAX_BYTES - frame - 2));
    run(commit(&namespace, &changes([("t/a", Some(&*largest))]))).unwrap();
    let error =
        run(commit(&namespace, &changes([("t/a", Some(&*format!("{largest}x")))]))).unwrap_err();
    let text = "the entry t/a has 49153 bytes as it is written, and at most 49152 are allowed";
    assert_eq!(error.to_string(), text);
    assert_eq!(run(all(&namespace)).unwrap()["t/a"], largest);
}

#[test]
fn nothing_is_changed_unless_all_entries_are_as_expected() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    run(commit(&namespace, &changes([("t/a", Some("1"))]))).unwrap();
    for (key, expected, current) in
        [("t/a", Some("2"), Some("1")), ("t/a", None, Some("1")), ("t/b", Some("1"), None)]
    {
        let mut change = changes([("t/a", Some("new")), ("t/c", Some("new"))]);
        change.expect(key, expected);
        let error = run(commit(&namespace, &change)).unwrap_err();
        let (key, current) = (key.to_owned(), current.map(ToOwned::to_owned));
        assert_eq!(error, CommitError::Unexpected { key, current });
    }
    assert_eq!(run(all(&namespace)).unwrap().len(), 1);
    let mut change = Changes::default();
    change.expect("t/a", Some("1")).expect("t/b", None).put("t/b", "1");
    run(commit(&namespace, &change)).unwrap();
    assert_eq!(run(all(&namespace)).unwrap()["t/b"], "1");
}

#[test]
fn why_the_caller_cannot_say_what_to_change_is_the_error() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    let change = async |_| Err::<Changes, _>(StoreError("the file is gone".to_owned()));
    let error = run(namespace.commit(&store, "a test", change)).unwrap_err();
    assert_eq!(error, CommitError::Change(StoreError("the file is gone".to_owned())));
    assert_eq!(store.keys(), [""; 0]);
}

#[test]
fn a_reader_fetches_what_has_changed_and_nothing_twice() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(1 << 20));
    let namespace = small(&store, &cache);
    let keys: Vec<String> = (0..200).map(|at| format!("t/{at:03}")).collect();
    let value = "v".repeat(30);
    run(commit(&namespace, &changes(keys.iter().map(|key| (&**key, Some(&*value)))))).unwrap();
    let snapshot = run(namespace.load(None)).unwrap().unwrap();
    let own = NodeCache::new(1 << 20);
    let reader = small(&store, &own);
    assert_eq!(run(reader.topic(&snapshot, "t")).unwrap().len(), 200);
    let before = run(reader.topic_leaves(&snapshot, "t")).unwrap();
    store.take_counts();
    assert_eq!(run(reader.topic(&snapshot, "t")).unwrap().len(), 200);
    assert_eq!(store.take_counts().reads, 0);

    let same = run(reader.load(Some(&snapshot))).unwrap().unwrap();
    assert_eq!(same.version(), snapshot.version());
    let counts = store.take_counts();
    assert_eq!((counts.reads, counts.bytes_read), (1, 0));

    run(commit(&namespace, &changes([("t/100", Some("new"))]))).unwrap();
    let newer = run(reader.load(Some(&snapshot))).unwrap().unwrap();
    store.take_counts();
    let leaves = run(reader.topic_leaves(&newer, "t")).unwrap();
    assert_eq!(leaves.iter().filter(|leaf| !before.contains(leaf)).count(), 1);
    let (reads, levels) = (store.take_counts().reads, u64::from(newer.root().unwrap().1.level));
    assert_eq!(reads, levels - 1, "inner nodes below the root, no leaf");
    assert_eq!(&*run(reader.entry(&newer, "t/100")).unwrap().unwrap(), "new");
    assert_eq!(store.take_counts().reads, 1);
    assert_eq!(run(reader.topic(&newer, "t")).unwrap().len(), 200);
    assert_eq!(store.take_counts().reads, 0, "the other leaves have not changed");
}

#[test]
fn failures_of_storage_are_told_with_their_cause() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    store.fail(0, super::memory_store::Fault::Before);
    let error = run(namespace.load(None)).unwrap_err();
    let cause = StoreError("the storage does not answer".to_owned());
    assert_eq!(error, ReadError::Store(cause.clone()));
    let source = std::error::Error::source(&error).map(ToString::to_string);
    assert_eq!(source, Some(cause.to_string()));
}

#[test]
fn all_work_may_move_between_threads() {
    fn assert_send<T: Send>(work: T) {
        drop(work);
    }
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    let snapshot = crate::Snapshot::default();
    assert_send(namespace.load(None));
    assert_send(namespace.topic(&snapshot, "t"));
    assert_send(namespace.topic_leaves(&snapshot, "t"));
    assert_send(namespace.leaf_entries(&snapshot, "t", &[]));
    assert_send(namespace.entry(&snapshot, "t/"));
    assert_send(namespace.entries(&snapshot));
    assert_send(namespace.history(1));
    assert_send(namespace.collect_garbage(0));
    let change = async |_| Ok::<_, StoreError>(Changes::default());
    assert_send(namespace.commit(&store, "a test", change));
}
