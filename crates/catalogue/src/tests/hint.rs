//! A reader that looks at pointers only when the hint says so.

use std::cell::Cell;
use std::collections::BTreeMap;

use super::memory_store::{Fault, MemoryStore};
use super::steps::interleave;
use super::{changes, commit, run};
use crate::{Changed, Hint, Id, Namespace, NodeCache, Snapshot};

const NAMESPACES: [&str; 3] = ["shop", "bank", "post"];

/// What a reader knows.
#[derive(Default)]
struct Reader {
    hint: Option<Hint>,
    snapshots: BTreeMap<&'static str, Snapshot>,
    looks: u64,
}

impl Reader {
    async fn look(&mut self, store: &MemoryStore, cache: &NodeCache, name: &'static str) {
        let namespace = Namespace::new(store, cache, name);
        let found = namespace.load(self.snapshots.get(name)).await.unwrap().unwrap_or_default();
        self.snapshots.insert(name, found);
        self.looks += 1;
    }

    /// Reads the hint, and the pointers of which it says something new.
    async fn follow(&mut self, store: &MemoryStore, cache: &NodeCache) {
        let Some(hint) = Hint::load(store, self.hint.as_ref()).await.unwrap() else { return };
        let changed = hint.changed_since(self.hint.as_ref());
        self.hint = Some(hint);
        for name in NAMESPACES {
            let is_new = match &changed {
                Changed::Unknown => true,
                Changed::Namespaces(names) => names.iter().any(|new| new == name),
            };
            if is_new {
                self.look(store, cache, name).await;
            }
        }
    }
}

fn newest(store: &MemoryStore, name: &str) -> Option<Id> {
    let cache = NodeCache::new(0);
    run(Namespace::new(store, &cache, name).load(None)).unwrap()?.version()
}

#[test]
fn who_follows_the_hint_misses_no_change_that_was_announced() {
    let mut conflicts = 0;
    for seed in 0..400 {
        let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
        let (working, missed) = (Cell::new(4), Cell::new(false));
        if seed % 4 == 0 {
            store.fail(seed % 60, if seed % 8 == 0 { Fault::LostAnswer } else { Fault::Before });
        }
        let others = Cell::new(0);
        let write = async |writer: usize| {
            for at in 0..5 {
                let name = NAMESPACES[(writer + at) % NAMESPACES.len()];
                let namespace = Namespace::new(&store, &cache, name);
                let key = format!("t/{writer}-{at}");
                match commit(&namespace, &changes([(&*key, Some(""))])).await {
                    Ok(committed) => {
                        others.set(others.get() + committed.conflicts);
                        missed.set(missed.get() || committed.unannounced.is_some());
                    }
                    // Its pointer may have been replaced all the same.
                    Err(_) => missed.set(true),
                }
            }
            working.set(working.get() - 1);
        };
        let reader = Cell::new(Reader::default());
        let read = async || {
            let mut own = reader.take();
            while working.get() > 0 {
                // A fault may be about its own request.
                if !store.is_failing() {
                    own.follow(&store, &cache).await;
                } else {
                    super::steps::step().await;
                }
            }
            own.follow(&store, &cache).await;
            reader.set(own);
        };
        let mut futures: Vec<std::pin::Pin<Box<dyn Future<Output = ()> + '_>>> =
            vec![Box::pin(read())];
        futures.extend((0..4).map(|writer| Box::pin(write(writer)) as _));
        interleave(seed, futures);
        let reader = reader.take();
        conflicts += others.get();
        for name in NAMESPACES {
            let known = reader.snapshots.get(name).and_then(Snapshot::version);
            assert!(missed.get() || known == newest(&store, name), "{name} with the seed {seed}");
        }
        // Of twenty changes each is looked at once, not each pointer with each look at the hint; one
        // whose answer was lost is announced again.
        assert!(reader.looks <= 21, "{} looks with the seed {seed}", reader.looks);
    }
    assert!(conflicts > 400, "{conflicts}");
}

#[test]
fn a_hint_that_is_damaged_is_an_error_until_the_next_change_and_a_newer_one_stays() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = Namespace::new(&store, &cache, "shop");
    assert_eq!(run(Hint::load(&store, None)), Ok(None));
    run(commit(&namespace, &changes([("t/", Some("1"))]))).unwrap();
    store.set("hint", b"damaged".to_vec());
    assert!(run(Hint::load(&store, None)).unwrap_err().to_string().contains("hint"));
    let second = run(commit(&namespace, &changes([("t/", Some("2"))]))).unwrap();
    assert_eq!(second.unannounced, None);
    let hint = String::from_utf8(store.content("hint").unwrap()).unwrap();
    assert!(hint.starts_with(r#"{"format":1,"changes":[["shop",""#), "{hint}");

    store.set("hint", br#"{"format":2}"#.to_vec());
    let third = run(commit(&namespace, &changes([("t/", Some("3"))]))).unwrap();
    let why = third.unannounced.unwrap().to_string();
    assert!(why.contains("format 2"), "{why}");
    assert_eq!(store.content("hint").unwrap(), br#"{"format":2}"#);
}

#[test]
fn a_change_that_cannot_be_announced_is_made() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = Namespace::new(&store, &cache, "shop");
    // The pointer, a listing, the root, the version and the pointer again: then the hint.
    store.fail(5, Fault::Before);
    let committed = run(commit(&namespace, &changes([("t/", Some("1"))]))).unwrap();
    assert_eq!(committed.unannounced, None);
    assert_eq!(newest(&store, "shop"), committed.version);
    // It cannot be read: too large, perhaps. Then it is replaced, and where that fails too, nobody is told.
    store.set("hint", vec![b' '; 300_000]);
    for fault in 5..8 {
        store.fail(fault, Fault::Before);
    }
    let committed = run(commit(&namespace, &changes([("t/", Some("2"))]))).unwrap();
    assert_eq!(committed.unannounced, None);
    assert!(store.content("hint").unwrap().len() < 100);
    for fault in 5..9 {
        store.fail(fault, Fault::Before);
    }
    let committed = run(commit(&namespace, &changes([("t/", Some("3"))]))).unwrap();
    assert!(committed.unannounced.is_some());
    assert_eq!(newest(&store, "shop"), committed.version);
}
