//! Objects that are not what was written, and those of newer versions.

use std::sync::Arc;

use super::memory_store::MemoryStore;
use super::{all, all_of, changes, commit, nodes, run, small};
use crate::format::{Child, Node, Reference};
use crate::{Id, Namespace, NodeCache, ReadError, Version};

fn fill(namespace: &Namespace<'_, MemoryStore>) {
    let keys: Vec<String> = (0..150).map(|at| format!("t/{at:03}")).collect();
    let value = "v".repeat(30);
    run(commit(namespace, &changes(keys.iter().map(|key| (&**key, Some(&*value)))))).unwrap();
    assert!(nodes(namespace)[0].level() >= 2);
}

#[test]
fn every_object_that_is_damaged_or_missing_is_named() {
    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    fill(&namespace);
    let version = run(namespace.load(None)).unwrap().unwrap().version().unwrap();
    let read = async || {
        all(&namespace).await?;
        all_of(&namespace, &namespace.of_version(version).await?).await
    };
    assert_eq!(run(read()).unwrap().len(), 150);
    for key in store.keys().into_iter().filter(|key| key != "hint") {
        let good = store.content(&key).unwrap();
        let cut = good[..good.len() / 2].to_vec();
        let changed: Vec<u8> =
            good.iter().map(|byte| if *byte == b'v' { b'w' } else { *byte }).collect();
        for bad in [cut, changed, Vec::new(), b"null".to_vec(), vec![0xff; 9]] {
            store.set(&key, bad);
            let error = run(read()).unwrap_err();
            assert!(
                matches!(&error, ReadError::Damaged { object, .. } if *object == key),
                "{error}"
            );
            assert!(
                error.to_string().starts_with(&format!("the object {key} is damaged: ")),
                "{error}"
            );
        }
        store.set(&key, good);
    }
    let leaf = nodes(&namespace).pop().unwrap();
    assert_eq!(leaf.level(), 0);
    for key in store.keys().iter().filter(|key| key.contains("/objects/")) {
        let error = namespace_without(&store, key, || run(read()).unwrap_err());
        assert_eq!(error, ReadError::Missing { object: key.clone() });
        assert!(error.to_string().starts_with(&format!("the object {key} is missing")), "{error}");
    }
}

/// What happens while an object is not there.
fn namespace_without<T>(store: &MemoryStore, key: &str, work: impl FnOnce() -> T) -> T {
    let good = store.content(key).unwrap();
    run(crate::Objects::delete(store, &[key.to_owned()])).unwrap();
    let result = work();
    store.set(key, good);
    result
}

#[test]
fn a_tree_that_claims_to_be_higher_than_any_is_damage() {
    let node = |level: u64| {
        let id = "0".repeat(64);
        format!(r#"{{"format":1,"commit":"c","level":{level},"children":[["a","{id}"]]}}"#)
    };
    assert!(Node::read("x", node(16).as_bytes()).is_ok());
    for level in [0, 17, u64::from(u32::MAX)] {
        let error = Node::read("x", node(level).as_bytes()).unwrap_err();
        assert!(matches!(error, ReadError::Damaged { .. }), "{error}");
    }
}

#[test]
fn a_newer_format_is_told_apart_from_damage() {
    let newer = br#"{"format":2,"entries":"of another form"}"#;
    let error = Node::read("x", newer).unwrap_err();
    assert_eq!(error, ReadError::NewerFormat { object: "x".to_owned(), format: 2 });
    let text = "the object x has format 2, which this version of lastmile does not know: a newer one is needed";
    assert_eq!(error.to_string(), text);
    assert!(matches!(Version::read("x", newer), Err(ReadError::NewerFormat { .. })));

    let (store, cache) = (MemoryStore::new(), NodeCache::new(0));
    let namespace = small(&store, &cache);
    fill(&namespace);
    store.set("namespaces/shop/pointer", newer.to_vec());
    let error = run(commit(&namespace, &changes([("t/", None)]))).unwrap_err();
    assert!(
        error.to_string().starts_with("the object namespaces/shop/pointer has format 2"),
        "{error}"
    );
    assert_eq!(store.content("namespaces/shop/pointer").unwrap(), newer, "it is left as it is");
}

#[test]
fn a_node_of_another_form_is_damaged() {
    let id = "0".repeat(64);
    for (text, problem) in [
        (r#"{"entries":[["a/","1"]]}"#.to_owned(), "missing field `format`"),
        (r#"{"format":0}"#.to_owned(), "there is no format 0"),
        (r#"{"format":1,"entries":[["a/","1"]]}"#.to_owned(), "missing field `commit`"),
        (r#"{"format":1,"commit":"c"}"#.to_owned(), "a node has entries, or children"),
        (r#"{"format":1,"commit":"c","entries":[]}"#.to_owned(), "it is empty"),
        (
            r#"{"format":1,"commit":"c","entries":[["a/","1"]],"level":1}"#.to_owned(),
            "a node has entries, or",
        ),
        (
            r#"{"format":1,"commit":"c","entries":[["a/","1"]],"more":1}"#.to_owned(),
            "unknown field `more`",
        ),
        (
            r#"{"format":1,"commit":"c","entries":[["a/",1]]}"#.to_owned(),
            "invalid type: integer `1`",
        ),
        (
            r#"{"format":1,"commit":"c","entries":[["b/","1"],["a/","1"]]}"#.to_owned(),
            r#"the key "a/" follows "b/""#,
        ),
        (
            r#"{"format":1,"commit":"c","entries":[["a/","1"],["a/","1"]]}"#.to_owned(),
            r#"the key "a/" follows "a/""#,
        ),
        (
            format!(r#"{{"format":1,"commit":"c","level":0,"children":[["a/","{id}"]]}}"#),
            "a node has entries, or",
        ),
        (
            r#"{"format":1,"commit":"c","level":1,"children":[["a/","../pointer"]]}"#.to_owned(),
            r#""../pointer" is not an id"#,
        ),
    ] {
        let error = Node::read("x", text.as_bytes()).unwrap_err().to_string();
        assert!(
            error.starts_with("the object x is damaged: ") && error.contains(problem),
            "{error}"
        );
    }
}

#[test]
fn a_node_has_to_be_what_its_parent_says() {
    let leaf = |keys: &[&str]| {
        let entries = keys.iter().map(|key| crate::Entry { key: (*key).into(), value: "".into() });
        Node::Leaf(entries.collect())
    };
    let place = |level, first: &str, before: Option<&str>| Reference {
        id: Id::of(b""),
        level,
        first: first.into(),
        before: before.map(Arc::from),
    };
    let node = leaf(&["b/", "c/"]);
    for (place, problem) in [
        (place(0, "b/", None), None),
        (place(0, "b/", Some("c/a")), None),
        (place(0, "b/", Some("c/")), Some(r#"its key "c/" is not before "c/""#)),
        (place(0, "a/", None), Some(r#"its first key is "b/", and its parent says "a/""#)),
        (place(1, "b/", None), Some("its level is 0, and its parent needs 1")),
    ] {
        let found = node.check("x", &place).map_err(|error| error.to_string());
        let expected = problem.map_or(Ok(()), |it| Err(format!("the object x is damaged: {it}")));
        assert_eq!(found, expected);
    }

    // In a tree, and also where the node is in the cache.
    let (store, cache) = (MemoryStore::new(), NodeCache::new(1 << 20));
    let namespace = small(&store, &cache);
    let bytes = node.write("c");
    let id = Id::of(&bytes);
    store.set(&namespace.object_key(id), bytes);
    let child = |first: &str| Child { first: first.into(), id };
    let root = Node::Inner { level: 1, children: vec![child("b/"), child("d/")] };
    let root = crate::format::Pointer { version: id, root: Some(root.write("c")) };
    store.set("namespaces/shop/pointer", root.write());
    let snapshot = run(namespace.load(None)).unwrap().unwrap();
    assert_eq!(run(namespace.topic(&snapshot, "b")).unwrap().len(), 1);
    let error = run(namespace.topic(&snapshot, "d")).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            r#"the object namespaces/shop/objects/{id} is damaged: its first key is "b/", and its parent says "d/""#
        )
    );
}
