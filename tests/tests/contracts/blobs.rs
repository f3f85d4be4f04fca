//! `PutBlob`: two writes of the same key leave one blob, the first. The tests read and list blobs
//! through the adapter with which the command line reads dead letters.

use adapters::blobs::S3Blobs;
use adapters::storage::{ListRequest, Page, Storage, StorageError};
use delivery::ports::{PutBlob, PutError};
use futures::future::join_all;

use crate::cloud::{Cloud, s3_client};
use crate::storage::list_all;

/// The bucket that every implementation under test has.
const BUCKET: &str = "dead-letters";

async fn list(storage: &Storage, prefix: &str) -> Result<Page, StorageError> {
    list_all(storage, ListRequest { prefix: prefix.to_owned(), ..ListRequest::default() }).await
}

async fn keys(storage: &Storage, prefix: &str) -> Vec<String> {
    let page = list(storage, prefix).await.expect("a list");
    page.entries.into_iter().map(|entry| entry.key).collect()
}

/// Both writes succeed, and the first content stays.
async fn the_first_write_of_a_key_wins(blobs: &impl PutBlob, storage: &Storage) {
    for bytes in [b"first".to_vec(), b"second".to_vec(), b"third, longer".to_vec()] {
        assert_eq!(blobs.put(BUCKET, "a/b.json", bytes, None).await, Ok(()));
    }
    assert_eq!(storage.get("a/b.json").await, Ok(Some(b"first".to_vec())));
    let entries = list(storage, "").await.expect("a list").entries;
    let listed: Vec<_> = entries.iter().map(|entry| (entry.key.as_str(), entry.bytes)).collect();
    assert_eq!(listed, [("a/b.json", 5)]);
}

/// Concurrent writes of one key all succeed, and one of their contents is stored completely.
async fn concurrent_writes_all_succeed_and_leave_one_content(
    blobs: &impl PutBlob,
    storage: &Storage,
) {
    for key in ["1", "2", "3", "4", "5"] {
        let contents = [vec![b'a'; 50_000], vec![b'b'; 40_000], vec![b'c'; 30_000]];
        let puts = contents.clone().map(|bytes| blobs.put(BUCKET, key, bytes, None));
        assert_eq!(join_all(puts).await, vec![Ok(()); 3], "{key}");
        let stored = storage.get(key).await.expect("an answer").expect("a blob");
        assert!(contents.contains(&stored), "{key} has {} bytes", stored.len());
    }
}

/// A listing has the written blobs below its prefix, in byte order of the keys.
async fn a_listing_shows_what_was_written_before_it(blobs: &impl PutBlob, storage: &Storage) {
    for key in ["b/2.json", "b/10.json", "a/%C3%B6%20.json", "c.json", "b/A.json"] {
        assert_eq!(blobs.put(BUCKET, key, b"{}".to_vec(), None).await, Ok(()));
    }
    assert_eq!(
        keys(storage, "").await,
        ["a/%C3%B6%20.json", "b/10.json", "b/2.json", "b/A.json", "c.json"]
    );
    assert_eq!(keys(storage, "b").await, ["b/10.json", "b/2.json", "b/A.json"]);
    assert_eq!(keys(storage, "none").await, [""; 0]);
}

/// A missing container is a permanent error, different from a temporary refusal.
async fn a_missing_container_is_a_permanent_error(blobs: &impl PutBlob, missing: &Storage) {
    let refused = blobs.put("no-such-bucket", "a.json", b"{}".to_vec(), None).await;
    assert!(matches!(refused, Err(PutError::Permanent(_))), "{refused:?}");
    let listed = list(missing, "").await;
    assert!(matches!(listed, Err(StorageError::NoSuchBucket(_))), "{listed:?}");
}

async fn on_s3() -> (Cloud, S3Blobs, Storage) {
    let cloud = Cloud::start().await;
    let blobs = S3Blobs(cloud.s3.clone());
    let storage = Storage::bucket(cloud.s3.clone(), BUCKET);
    (cloud, blobs, storage)
}

#[tokio::test]
async fn in_s3_the_first_write_of_a_key_wins() {
    let (_cloud, blobs, storage) = on_s3().await;
    the_first_write_of_a_key_wins(&blobs, &storage).await;
}

#[tokio::test]
async fn in_s3_concurrent_writes_all_succeed_and_leave_one_content() {
    let (_cloud, blobs, storage) = on_s3().await;
    concurrent_writes_all_succeed_and_leave_one_content(&blobs, &storage).await;
}

#[tokio::test]
async fn in_s3_a_listing_shows_what_was_written_before_it() {
    let (_cloud, blobs, storage) = on_s3().await;
    a_listing_shows_what_was_written_before_it(&blobs, &storage).await;
}

#[tokio::test]
async fn in_s3_a_missing_container_is_a_permanent_error() {
    let (cloud, blobs, _) = on_s3().await;
    let missing = Storage::bucket(cloud.s3.clone(), "no-such-bucket");
    a_missing_container_is_a_permanent_error(&blobs, &missing).await;
}

#[tokio::test]
async fn in_s3_what_was_never_written_is_none() {
    let (_cloud, _, storage) = on_s3().await;
    assert_eq!(storage.get("never.json").await, Ok(None));
}

#[tokio::test]
async fn in_s3_a_listing_of_more_than_a_page_is_complete() {
    let (_cloud, blobs, storage) = on_s3().await;
    let expected: Vec<String> = (0..1_005).map(|index| format!("many/{index:04}.json")).collect();
    for key in &expected {
        assert_eq!(blobs.put(BUCKET, key, b"{}".to_vec(), None).await, Ok(()));
    }
    assert_eq!(keys(&storage, "many").await, expected);
}

#[tokio::test]
async fn a_blob_in_s3_has_the_content_type_of_json() {
    let (cloud, blobs, _) = on_s3().await;
    assert_eq!(blobs.put(BUCKET, "a.json", b"{}".to_vec(), None).await, Ok(()));
    let head =
        cloud.s3.head_object().bucket(BUCKET).key("a.json").send().await.expect("the object");
    assert_eq!(head.content_type(), Some("application/json"));
}

#[tokio::test]
async fn unreachable_storage_is_a_temporary_error() {
    let (cloud, ..) = on_s3().await;
    let client = s3_client(&cloud.aws.endpoint());
    cloud.aws.stop().await;
    let refused = S3Blobs(client.clone()).put(BUCKET, "a.json", b"{}".to_vec(), None).await;
    assert!(matches!(refused, Err(PutError::Unavailable(_))), "{refused:?}");
    let storage = Storage::bucket(client, BUCKET);
    assert!(storage.get("a.json").await.is_err());
    assert!(list(&storage, "").await.is_err());
}
