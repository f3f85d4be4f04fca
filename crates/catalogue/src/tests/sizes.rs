//! What a large topic costs, in bytes and requests.

use super::memory_store::MemoryStore;
use super::{changes, commit, run};
use crate::{Changes, Hint, Namespace, NodeCache, TopicLeaf};

const ENTRIES: usize = 100_000;

fn key(at: usize) -> String {
    format!("orders/customer-{at:06}")
}

/// A topic of 100,000 entries with values of about 700 bytes, between two small ones.
fn fill(namespace: &Namespace<'_, MemoryStore>) {
    let value = |at: usize| {
        let filler = r#","filter":{"exact":{"type":"order.created"}}"#.repeat(15);
        format!(r#"{{"v":1,"endpoint":"https://{at}.example.com/events"{filler}}}"#)
    };
    let mut changes = Changes::default();
    for at in 0..ENTRIES {
        changes.put(key(at), value(at));
    }
    for at in 0..40 {
        changes.put(format!("billing/{at}"), value(at));
        changes.put(format!("shipping/{at}"), value(at));
    }
    run(commit(namespace, &changes)).unwrap();
}

#[test]
fn a_change_of_a_large_topic_is_small_and_so_is_a_small_topic_beside_it() {
    let store = MemoryStore::new();
    let cache = NodeCache::new(0);
    let namespace = Namespace::new(&store, &cache, "shop");
    fill(&namespace);
    let filled = store.take_counts();
    println!("100,000 entries: {} objects, {} bytes", filled.writes, filled.bytes_written);

    let (mut most_written, mut most_read) = (0, 0);
    for at in [0, 1, 49_999, 77_777, ENTRIES - 1] {
        let name = key(at);
        let split = format!("orders/customer-{at:06}-new");
        let large = "x".repeat(40_000);
        let of_one =
            [(&*name, Some("changed")), (&*split, Some(&*large)), (&*split, None), (&*name, None)];
        for one in of_one {
            run(commit(&namespace, &changes([one]))).unwrap();
            let counts = store.take_counts();
            let pointer = store.content("namespaces/shop/pointer").unwrap().len() as u64;
            most_written = most_written.max(counts.bytes_written);
            most_read = most_read.max(counts.bytes_read.saturating_sub(pointer));
            // Where a leaf is divided, those of its topic are counted, which takes its inner nodes.
            let calls_max = if one.1 == Some(&*large) { 18 } else { 14 };
            assert!(counts.calls <= calls_max, "{counts:?}");
        }
    }
    println!(
        "one change: at most {most_written} bytes written, {most_read} read beside the pointer"
    );
    assert!(most_written <= 200 * 1024, "{most_written}");
    assert!(most_read <= 256 * 1024, "{most_read}");

    let snapshot = run(namespace.load(None)).unwrap().unwrap();
    store.take_counts();
    for topic in ["billing", "shipping"] {
        assert_eq!(run(namespace.topic(&snapshot, topic)).unwrap().len(), 40);
        let small = store.take_counts();
        println!("{topic}, 40 entries: {} requests, {} bytes", small.reads, small.bytes_read);
        assert!(small.reads <= 3 && small.bytes_read <= 3 * 64 * 1024, "{small:?}");
    }

    let entries = run(namespace.topic(&snapshot, "orders")).unwrap();
    let large = store.take_counts();
    assert_eq!(entries.len(), ENTRIES - 5);
    let values: usize = entries.iter().map(|it| it.key.len() + it.value.len()).sum();
    println!(
        "its large topic: {} requests, {} bytes, of which keys and values {values}",
        large.reads, large.bytes_read
    );
    assert!(large.bytes_read < filled.bytes_written, "{large:?}");

    run(namespace.load(Some(&snapshot))).unwrap().unwrap();
    assert_eq!(store.take_counts().bytes_read, 0, "the pointer has not changed");

    // Who has read it before needs the hint, the pointer, the inner nodes and one leaf.
    let before = run(namespace.topic_leaves(&snapshot, "orders")).unwrap();
    run(commit(&namespace, &changes([(&*key(50_000), Some("changed"))]))).unwrap();
    store.take_counts();
    run(Hint::load(&store, None)).unwrap().unwrap();
    let newest = run(namespace.load(Some(&snapshot))).unwrap().unwrap();
    let after = run(namespace.topic_leaves(&newest, "orders")).unwrap();
    let is_new = |leaf: &&TopicLeaf| before.iter().all(|it| it.id() != leaf.id());
    let new: Vec<&TopicLeaf> = after.iter().filter(is_new).collect();
    assert_eq!(new.len(), 1);
    run(namespace.leaf_entries(&newest, "orders", &new)).unwrap();
    let change = store.take_counts();
    println!("one change of it: {} requests, {} bytes read", change.reads, change.bytes_read);
    assert!(change.bytes_read <= 512 * 1024, "{change:?}");
}
