//! `Storage`: a bucket and a folder keep the same promises.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adapters::storage::{
    Entry, Fetched, ListRequest, PAGE_MAX, Page, PutOutcome, Replaced, Storage, StorageError,
    Version,
};
use futures::future::{join, join_all};
use lastmile_tests::scripted::{Scripted, answer};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::cloud::{Cloud, s3_client};

/// A storage without objects, and the owner of its resources.
struct Fixture<T> {
    storage: Storage,
    owner: T,
}

async fn bucket() -> Fixture<Cloud> {
    let cloud = Cloud::start().await;
    Fixture { storage: Storage::bucket(cloud.s3.clone(), "dead-letters"), owner: cloud }
}

/// A folder that does not exist yet, alone within another one.
async fn folder() -> Fixture<TempDir> {
    let outside = tempfile::tempdir().expect("a folder");
    Fixture { storage: Storage::folder(outside.path().join("root")), owner: outside }
}

/// Checks each promise for both kinds of storage.
macro_rules! promises {
    ($($promise:ident)*) => {
        mod of_a_bucket {
            $(#[tokio::test]
            async fn $promise() {
                super::$promise(&super::bucket().await.storage).await;
            })*
        }

        mod of_a_folder {
            $(#[tokio::test]
            async fn $promise() {
                super::$promise(&super::folder().await.storage).await;
            })*
        }
    };
}

promises! {
    what_was_put_is_got_and_a_later_put_replaces_it
    the_first_write_of_a_key_wins_and_the_second_is_told_so
    of_conditional_writes_that_race_exactly_one_is_the_first
    what_has_not_changed_is_not_read_again
    a_replacement_has_an_etag_with_which_it_is_replaced_in_turn
    what_somebody_else_wrote_is_not_replaced
    what_was_absent_is_created_once
    what_was_removed_is_not_replaced
    of_increments_by_many_writers_none_is_lost
    no_put_and_no_delete_is_undone_by_a_replacement_under_way
    what_was_never_put_is_missing_and_no_error
    what_is_larger_than_asked_for_is_not_read
    a_listing_is_complete_over_pages_and_in_the_order_of_the_keys_bytes
    a_listing_has_the_keys_of_its_prefix
    a_listing_by_folder_names_each_folder_once
    a_listing_begins_after_a_key
    what_was_deleted_is_missing_and_may_be_deleted_twice
    a_hostile_key_is_refused_or_is_a_key_like_any_other
}

async fn put(storage: &Storage, key: &str, text: &str) {
    let bytes = text.as_bytes().to_vec();
    storage.put(key, bytes).await.expect("a put");
}

async fn put_all(storage: &Storage, keys: &[impl AsRef<str>]) {
    join_all(keys.iter().map(|key| put(storage, key.as_ref(), "{}"))).await;
}

async fn get(storage: &Storage, key: &str) -> Option<String> {
    let bytes = storage.get(key).await.expect("an answer");
    bytes.map(|bytes| String::from_utf8(bytes).expect("a text"))
}

/// Lists all pages from this request on, as one page.
pub(crate) async fn list_all(
    storage: &Storage,
    mut request: ListRequest,
) -> Result<Page, StorageError> {
    let mut all = Page::default();
    loop {
        let page = storage.list_page(&request).await?;
        all.entries.extend(page.entries);
        all.folders.extend(page.folders);
        request.page_token = page.next;
        if request.page_token.is_none() {
            return Ok(all);
        }
    }
}

async fn keys(storage: &Storage, prefix: &str) -> Vec<String> {
    let request = ListRequest { prefix: prefix.to_owned(), ..ListRequest::default() };
    let page = list_all(storage, request).await.expect("a listing");
    assert!(page.folders.is_empty(), "{:?}", page.folders);
    page.entries.into_iter().map(|entry| entry.key).collect()
}

async fn what_was_put_is_got_and_a_later_put_replaces_it(storage: &Storage) {
    for text in ["first", "second, longer", ""] {
        put(storage, "a/b.json", text).await;
        assert_eq!(get(storage, "a/b.json").await.as_deref(), Some(text));
    }
    assert_eq!(keys(storage, "").await, ["a/b.json"]);
}

async fn the_first_write_of_a_key_wins_and_the_second_is_told_so(storage: &Storage) {
    for (text, outcome) in [
        ("first", PutOutcome::Written),
        ("second", PutOutcome::AlreadyExists),
        ("third, longer", PutOutcome::AlreadyExists),
    ] {
        let put = storage.put_if_absent("a/b.json", text.into(), None).await;
        assert_eq!(put, Ok(outcome), "{text}");
    }
    assert_eq!(get(storage, "a/b.json").await.as_deref(), Some("first"));
    assert_eq!(keys(storage, "").await, ["a/b.json"]);
}

async fn of_conditional_writes_that_race_exactly_one_is_the_first(storage: &Storage) {
    for key in ["1", "2", "3", "a/4", "a/5"] {
        let contents = [vec![b'a'; 50_000], vec![b'b'; 40_000], vec![b'c'; 30_000]];
        let puts = contents.iter().map(|bytes| {
            let bytes = bytes.clone();
            storage.put_if_absent(key, bytes, None)
        });
        let outcomes = join_all(puts).await;
        let written: Vec<usize> =
            (0..3).filter(|index| outcomes[*index] == Ok(PutOutcome::Written)).collect();
        let lost =
            outcomes.iter().filter(|outcome| **outcome == Ok(PutOutcome::AlreadyExists)).count();
        assert_eq!((written.len(), lost), (1, 2), "{key}: {outcomes:?}");
        let stored = storage.get(key).await.expect("an answer").expect("an object");
        assert!(stored == contents[written[0]], "{key} has {} bytes", stored.len());
    }
}

async fn what_has_not_changed_is_not_read_again(storage: &Storage) {
    let fetch = |etag: Option<String>| async move {
        storage.get_if_changed("a.yaml", etag.as_deref()).await.expect("an answer")
    };
    assert_eq!(fetch(None).await, Fetched::Missing);
    put(storage, "a.yaml", "first").await;
    let Fetched::Changed { bytes, etag, .. } = fetch(None).await else { panic!("it is new") };
    assert_eq!(bytes, b"first");
    assert_eq!(fetch(Some(etag.clone())).await, Fetched::Unchanged);
    put(storage, "a.yaml", "second, longer").await;
    let Fetched::Changed { bytes, etag: newer, .. } = fetch(Some(etag.clone())).await else {
        panic!("it has changed")
    };
    assert_eq!(bytes, b"second, longer");
    assert_ne!(newer, etag);
    storage.delete(&["a.yaml".to_owned()]).await.expect("a delete");
    assert_eq!(fetch(Some(newer)).await, Fetched::Missing);
}

/// The text of an object, with its ETag.
async fn read(storage: &Storage, key: &str) -> Option<(String, String)> {
    match storage.get_if_changed(key, None).await.expect("an answer") {
        Fetched::Changed { bytes, etag, .. } => {
            Some((String::from_utf8(bytes).expect("a text"), etag))
        }
        Fetched::Missing => None,
        Fetched::Unchanged => panic!("nothing was known"),
    }
}

/// Replaces an object. Returns the new ETag, or `None` if the object had changed.
async fn replace(storage: &Storage, key: &str, text: &str, known: Option<&str>) -> Option<String> {
    match storage.replace(key, text.into(), known).await.expect("an answer") {
        Replaced::Written { etag } => Some(etag),
        Replaced::Changed => None,
    }
}

async fn a_replacement_has_an_etag_with_which_it_is_replaced_in_turn(storage: &Storage) {
    put(storage, "a/b.json", "0").await;
    let (_, mut etag) = read(storage, "a/b.json").await.expect("an object");
    for text in ["1", "2", "3, longer", "4"] {
        let new = replace(storage, "a/b.json", text, Some(&etag)).await.expect("it is the same");
        assert_ne!(new, etag);
        etag = new;
        assert_eq!(read(storage, "a/b.json").await, Some((text.to_owned(), etag.clone())));
        let fetched = storage.get_if_changed("a/b.json", Some(&etag)).await;
        assert_eq!(fetched, Ok(Fetched::Unchanged));
    }
    assert_eq!(keys(storage, "").await, ["a/b.json"]);
}

async fn what_somebody_else_wrote_is_not_replaced(storage: &Storage) {
    let first = replace(storage, "a.json", "1", None).await.expect("it is absent");
    let second = replace(storage, "a.json", "2", Some(&first)).await.expect("it is the same");
    for old in [first.as_str(), "\"another\""] {
        assert_eq!(replace(storage, "a.json", "3", Some(old)).await, None, "{old}");
        assert_eq!(read(storage, "a.json").await, Some(("2".to_owned(), second.clone())));
    }
    put(storage, "a.json", "4").await;
    assert_eq!(replace(storage, "a.json", "5", Some(&second)).await, None);
    assert_eq!(get(storage, "a.json").await.as_deref(), Some("4"));
}

async fn what_was_absent_is_created_once(storage: &Storage) {
    let etag = replace(storage, "a/b.json", "1", None).await.expect("it is absent");
    assert_eq!(replace(storage, "a/b.json", "2", None).await, None);
    assert_eq!(read(storage, "a/b.json").await, Some(("1".to_owned(), etag)));
    let creations = (0..8).map(|_| replace(storage, "a/c.json", "1", None));
    let created = join_all(creations).await.into_iter().flatten().count();
    assert_eq!(created, 1);
}

async fn what_was_removed_is_not_replaced(storage: &Storage) {
    assert_eq!(replace(storage, "a/b.json", "1", Some("\"etag\"")).await, None, "it never was");
    let first = replace(storage, "a/b.json", "1", None).await.expect("it is absent");
    storage.delete(&["a/b.json".to_owned()]).await.expect("a delete");
    assert_eq!(replace(storage, "a/b.json", "2", Some(&first)).await, None);
    assert_eq!(get(storage, "a/b.json").await, None);
    replace(storage, "a/b.json", "3", None).await.expect("it is absent again");
    assert_eq!(replace(storage, "a/b.json", "4", Some(&first)).await, None);
    assert_eq!(get(storage, "a/b.json").await.as_deref(), Some("3"));
}

/// The time limit of writers that race, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
/// The number of writers of one counter, and the number of increments by each writer.
const WRITERS: usize = 8;
const INCREMENTS: usize = 25;

async fn of_increments_by_many_writers_none_is_lost(storage: &Storage) {
    let writers = join_all((0..WRITERS).map(|_| async {
        for _ in 0..INCREMENTS {
            increment(storage).await;
        }
    }));
    timeout(LIMIT, writers).await.expect("one of those that race succeeds");
    assert_eq!(get(storage, "counter.json").await.as_deref(), Some("200"));
}

async fn increment(storage: &Storage) {
    loop {
        let found = read(storage, "counter.json").await;
        let (count, etag) = found.unwrap_or_else(|| ("0".to_owned(), String::new()));
        let known = (!etag.is_empty()).then_some(etag.as_str());
        // All counts have the same length, because the ETag should not depend on the length.
        let next = format!("{:03}", count.parse::<usize>().expect("a number") + 1);
        if replace(storage, "counter.json", &next, known).await.is_some() {
            return;
        }
    }
}

/// The number of puts beside writers that append to the object. A delete follows every second put.
const DISTURBANCES: usize = 50;

async fn no_put_and_no_delete_is_undone_by_a_replacement_under_way(storage: &Storage) {
    replace(storage, "a.json", "", None).await.expect("it is absent");
    let is_done = AtomicBool::new(false);
    let append = || async {
        while !is_done.load(Ordering::Relaxed) {
            if let Some((text, etag)) = read(storage, "a.json").await {
                replace(storage, "a.json", &(text + "+"), Some(&etag)).await;
            }
        }
    };
    let disturb = async {
        for round in 0..DISTURBANCES {
            let own = format!("{round}:");
            put(storage, "a.json", &own).await;
            let appended = loop {
                let text = get(storage, "a.json").await.expect("an object");
                if text != own {
                    break text;
                }
            };
            assert!(appended.starts_with(&own), "{own} was lost: {appended}");
            if round % 2 == 0 {
                storage.delete(&["a.json".to_owned()]).await.expect("a delete");
                assert_eq!(get(storage, "a.json").await, None, "in round {round}");
            }
        }
        is_done.store(true, Ordering::Relaxed);
    };
    let all = join(disturb, join_all((0..4).map(|_| append())));
    timeout(LIMIT, all).await.expect("what was put is appended to");
}

async fn what_was_never_put_is_missing_and_no_error(storage: &Storage) {
    put(storage, "a/b.json", "{}").await;
    for key in ["never.json", "a", "a/never.json", "never/b.json", "a/b.json/c"] {
        assert_eq!(storage.get(key).await, Ok(None), "{key}");
    }
    assert_eq!(keys(storage, "never/").await, [""; 0]);
}

async fn what_is_larger_than_asked_for_is_not_read(storage: &Storage) {
    put(storage, "a.json", "12345").await;
    let fetched = storage.get_at_most(5, "a.json", None).await;
    assert!(matches!(fetched, Ok(Fetched::Changed { bytes, .. }) if bytes == b"12345"));
    let refused = storage.get_at_most(4, "a.json", None).await;
    assert_eq!(refused.map(drop), Err(StorageError::TooLarge { bytes: 5, max_bytes: 4 }));
}

async fn a_listing_is_complete_over_pages_and_in_the_order_of_the_keys_bytes(storage: &Storage) {
    let mut expected: Vec<String> =
        (0..PAGE_MAX + 5).map(|index| format!("many/{index:04}.json")).collect();
    // In the order of bytes, `-` and `.` are before `/`, and capitals before small letters.
    expected.extend(["many-more", "many.json", "Many/1", "many/%C3%B6 ö.json"].map(str::to_owned));
    for keys in expected.chunks(50) {
        put_all(storage, keys).await;
    }
    expected.sort();
    assert_eq!(keys(storage, "").await, expected);
    let first = storage.list_page(&ListRequest::default()).await.expect("a page");
    assert_eq!((first.entries.len(), first.next.is_some()), (PAGE_MAX, true));
    let Entry { bytes, modified_ms, .. } = first.entries[0];
    // 2026-01-01 in milliseconds; a time in seconds would be smaller.
    assert!(bytes == 2 && modified_ms > 1_767_225_600_000, "{bytes} {modified_ms}");
}

async fn a_listing_has_the_keys_of_its_prefix(storage: &Storage) {
    put_all(storage, &["b/2.json", "b/10.json", "a/1.json", "bc/1.json", "b.json", "b/x/1"]).await;
    for (prefix, expected) in [
        ("b/", &["b/10.json", "b/2.json", "b/x/1"][..]),
        ("b", &["b.json", "b/10.json", "b/2.json", "b/x/1", "bc/1.json"]),
        ("b/1", &["b/10.json"]),
        ("b/x/", &["b/x/1"]),
        ("c", &[]),
    ] {
        assert_eq!(keys(storage, prefix).await, expected, "{prefix}");
    }
}

async fn a_listing_by_folder_names_each_folder_once(storage: &Storage) {
    put_all(storage, &["a/1", "a/b/2", "a/b/3", "a/c/d/4", "5"]).await;
    for (prefix, folders, keys) in [
        ("", &["a/"][..], &["5"][..]),
        ("a/", &["a/b/", "a/c/"], &["a/1"]),
        ("a/c/", &["a/c/d/"], &[]),
    ] {
        let request = ListRequest { prefix: prefix.to_owned(), ..ListRequest::default() };
        let page = list_all(storage, ListRequest { by_folder: true, ..request }).await;
        let page = page.expect("a listing");
        let found: Vec<&str> = page.entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!((page.folders.as_slice(), found.as_slice()), (&as_strings(folders)[..], keys));
    }
}

fn as_strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

async fn a_listing_begins_after_a_key(storage: &Storage) {
    put_all(storage, &["a/1", "a/2", "a/3"]).await;
    for (start_after, expected) in
        [("a/1", &["a/2", "a/3"][..]), ("a/10", &["a/2", "a/3"]), ("a/3", &[])]
    {
        let start_after = Some(start_after.to_owned());
        let request =
            ListRequest { prefix: "a/".to_owned(), start_after, ..ListRequest::default() };
        let page = list_all(storage, request).await.expect("a listing");
        let found: Vec<&str> = page.entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(found, expected);
    }
}

async fn what_was_deleted_is_missing_and_may_be_deleted_twice(storage: &Storage) {
    put_all(storage, &["a/1", "a/2", "b/c/3"]).await;
    for _ in 0..2 {
        let keys = as_strings(&["a/1", "b/c/3", "never"]);
        assert_eq!(storage.delete(&keys).await, Ok(()));
    }
    assert_eq!(storage.get("a/1").await, Ok(None));
    assert_eq!(keys(storage, "").await, ["a/2"]);
    put(storage, "b", "where a folder was").await;
    assert_eq!(keys(storage, "").await, ["a/2", "b"]);
}

/// Keys that would lead out of a folder, or that a folder cannot hold.
const HOSTILE: [&str; 12] = [
    "",
    ".",
    "..",
    "../x",
    "../config/x",
    "a/../../x",
    "a/../x",
    "/etc/lastmile-x",
    "a//x",
    "a/",
    "./x",
    "a\u{0}x",
];

async fn a_hostile_key_is_refused_or_is_a_key_like_any_other(storage: &Storage) {
    let mut accepted = Vec::new();
    for key in HOSTILE {
        let put = storage.put(key, b"hostile".to_vec()).await;
        let new = storage.put_if_absent(key, b"second".to_vec(), None).await;
        let created = storage.replace(key, b"third".to_vec(), None).await;
        match put {
            Ok(()) => {
                assert_eq!(new, Ok(PutOutcome::AlreadyExists), "{key:?}");
                assert_eq!(created, Ok(Replaced::Changed), "{key:?}");
                assert_eq!(get(storage, key).await.as_deref(), Some("hostile"), "{key:?}");
                accepted.push(key.to_owned());
            }
            Err(_) => {
                assert!(new.is_err() && created.is_err(), "{key:?}: {new:?} {created:?}");
                assert!(!matches!(storage.get(key).await, Ok(Some(_))), "{key:?}");
            }
        }
    }
    accepted.sort();
    assert_eq!(keys(storage, "").await, accepted);
}

#[tokio::test]
async fn no_key_of_a_folder_leads_out_of_it() {
    let folder = folder().await;
    for key in HOSTILE {
        let put = folder.storage.put(key, b"x".to_vec()).await;
        assert_eq!(put, Err(StorageError::InvalidKey(key.to_owned())));
        let replaced = folder.storage.replace(key, b"x".to_vec(), None).await;
        assert_eq!(replaced, Err(StorageError::InvalidKey(key.to_owned())));
        let deleted = folder.storage.delete(&[key.to_owned()]).await;
        assert_eq!(deleted, Err(StorageError::InvalidKey(key.to_owned())));
    }
    let listed = ListRequest { prefix: "../".to_owned(), ..ListRequest::default() };
    assert!(folder.storage.list_page(&listed).await.is_err());
    assert_eq!(names_in(folder.owner.path()), [""; 0], "nothing was written");
}

#[tokio::test]
async fn no_key_of_a_bucket_leads_into_another_one() {
    let bucket = bucket().await;
    for key in HOSTILE {
        let _ = bucket.storage.put(key, b"x".to_vec()).await;
    }
    let other = Storage::bucket(bucket.owner.s3.clone(), "config");
    assert_eq!(keys(&other, "").await, [""; 0]);
}

#[tokio::test]
async fn a_bucket_that_cannot_be_reached_or_does_not_exist_is_not_missing_an_object() {
    let Fixture { owner: cloud, .. } = bucket().await;
    let nowhere = Storage::bucket(cloud.s3.clone(), "no-such-bucket");
    for error in errors(&nowhere).await {
        assert!(matches!(error, StorageError::NoSuchBucket(_)), "{error:?}");
    }
    let unreachable = Storage::bucket(s3_client(&cloud.aws.endpoint()), "dead-letters");
    cloud.aws.stop().await;
    for error in errors(&unreachable).await {
        assert!(matches!(error, StorageError::Unavailable(_)), "{error:?}");
    }
}

/// The error of each operation that asks the bucket.
pub(crate) async fn errors(storage: &Storage) -> [StorageError; 8] {
    let keys = ["a.json".to_owned()];
    [
        storage.get("a.json").await.expect_err("get"),
        storage.get_if_changed("a.json", Some("\"etag\"")).await.expect_err("get if changed"),
        storage.put("a.json", b"{}".to_vec()).await.expect_err("put"),
        storage.put_if_absent("a.json", b"{}".to_vec(), None).await.expect_err("put if absent"),
        storage.replace("a.json", b"{}".to_vec(), Some("\"etag\"")).await.expect_err("replace"),
        storage.replace("a.json", b"{}".to_vec(), None).await.expect_err("create"),
        storage.list_page(&ListRequest::default()).await.expect_err("list"),
        storage.delete(&keys).await.expect_err("delete"),
    ]
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_cannot_be_read_is_not_missing() {
    let folder = folder().await;
    put(&folder.storage, "a.json", "{}").await;
    let link = folder.owner.path().join("root/loop.json");
    std::os::unix::fs::symlink(&link, &link).expect("a link");
    let read = folder.storage.get("loop.json").await;
    assert!(matches!(read, Err(StorageError::Unavailable(_))), "{read:?}");
    let fetched = folder.storage.get_if_changed("loop.json", None).await;
    assert!(matches!(fetched, Err(StorageError::Unavailable(_))), "{fetched:?}");
}

/// A name of 300 bytes is too long for a file.
#[tokio::test]
async fn a_file_that_cannot_be_removed_is_an_error() {
    let folder = folder().await;
    put_all(&folder.storage, &["a/1", "b/2"]).await;
    let removed = folder.storage.delete(&["x".repeat(300)]).await;
    assert!(removed.is_err(), "{removed:?}");
    // A deletion of a folder is no error, because a folder is no object.
    assert_eq!(folder.storage.delete(&["a".to_owned()]).await, Ok(()));
    assert_eq!(keys(&folder.storage, "").await, ["a/1", "b/2"]);
}

#[tokio::test]
async fn a_file_that_is_being_written_is_not_listed_and_leaves_nothing_behind() {
    let folder = folder().await;
    put_all(&folder.storage, &["a/1", "a/2"]).await;
    let new = folder.storage.put_if_absent("a/1", b"x".to_vec(), None).await;
    assert_eq!(new, Ok(PutOutcome::AlreadyExists));
    assert_eq!(names_in(&folder.owner.path().join("root/a")), ["1", "2"]);
    std::fs::write(folder.owner.path().join("root/a/.lastmile-1-2"), "half").expect("a file");
    assert_eq!(keys(&folder.storage, "").await, ["a/1", "a/2"]);
    assert!(folder.storage.get("a/.lastmile-1-2").await.is_err(), "no key begins like this");
}

#[tokio::test]
async fn the_lock_of_a_folder_is_no_key_and_stays_without_harm() {
    let Fixture { storage, owner: outside } = folder().await;
    assert_eq!(replace(&storage, "a/1", "x", Some("etag")).await, None);
    assert_eq!(names_in(outside.path()), [""; 0], "nothing was made for nothing");
    for _ in 0..2 {
        replace(&storage, "a/1", "x", None).await.expect("it is absent");
        assert_eq!(names_in(&outside.path().join("root/a")), [".lastmile-0-0", "1"]);
        assert_eq!(keys(&storage, "").await, ["a/1"]);
        assert!(storage.get("a/.lastmile-0-0").await.is_err());
        storage.delete(&["a/1".to_owned()]).await.expect("a delete");
        let by_folder = ListRequest { by_folder: true, ..ListRequest::default() };
        assert_eq!(storage.list_page(&by_folder).await, Ok(Page::default()));
    }
}

#[tokio::test]
async fn a_name_that_resembles_a_temporary_file_is_a_key_like_any_other() {
    let Fixture { storage, owner: _outside } = folder().await;
    put_all(&storage, &["a/.lastmile-notes.yaml", "a/.lastmile-1"]).await;
    assert_eq!(keys(&storage, "").await, ["a/.lastmile-1", "a/.lastmile-notes.yaml"]);
}

#[tokio::test]
async fn a_404_that_does_not_name_the_missing_object_is_an_error() {
    for (code, is_missing) in [("NoSuchKey", true), ("NoSuchAccessPoint", false), ("", false)] {
        let body = match code {
            "" => "not found".to_owned(),
            code => format!("<Error><Code>{code}</Code><Message>m</Message></Error>"),
        };
        let server = Scripted::start(move |_| vec![answer("404 Not Found", &[], body.as_bytes())]);
        let server = server.await.expect("a free port");
        let found = Storage::bucket(s3_client(&server.endpoint()), "b").get("k").await;
        assert_eq!(found == Ok(None), is_missing, "{code}: {found:?}");
    }
}

#[tokio::test]
async fn a_folder_has_the_current_version_of_a_file_only() {
    let Fixture { storage, owner: _outside } = folder().await;
    assert_eq!(storage.versions("a.json").await, Ok(vec![]));
    for text in ["first", "second"] {
        storage.put("a.json", text.into()).await.expect("a put");
        let versions = storage.versions("a.json").await.expect("versions");
        let [Version { id, is_current: true, .. }] = &versions[..] else { panic!("{versions:?}") };
        let stored = storage.get_version(u64::MAX, "a.json", id).await.expect("an answer");
        assert_eq!(stored.map(|stored| stored.bytes), Some(text.into()));
    }
    assert_eq!(storage.get_version(u64::MAX, "a.json", "other").await, Ok(None));
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().into_string().expect("a text")).collect();
    names.sort();
    names
}
