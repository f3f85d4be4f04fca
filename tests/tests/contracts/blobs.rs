//! `PutBlob` and `ReadBlobs`: two writes of the same key leave one blob, the first; a listing shows
//! what was written.

use adapters::blobs::S3Blobs;
use delivery::ports::{BlobName, PutBlob, PutError, ReadBlobs};
use delivery::subscription::sink::Container;
use futures::future::join_all;

use crate::cloud::{Cloud, s3_client};

/// The bucket that every implementation under test has.
const BUCKET: &str = "dead-letters";

fn container(text: &str) -> Container {
    text.parse().expect("a container")
}

async fn keys(blobs: &impl ReadBlobs, of: &str) -> Vec<String> {
    blobs.list(&container(of)).await.expect("a list").into_iter().map(|blob| blob.key).collect()
}

/// Both writes succeed, and the first content stays.
async fn the_first_write_of_a_key_wins(blobs: &(impl PutBlob + ReadBlobs)) {
    for bytes in [b"first".to_vec(), b"second".to_vec(), b"third, longer".to_vec()] {
        assert_eq!(blobs.put(BUCKET, "a/b.json", bytes).await, Ok(()));
    }
    assert_eq!(blobs.get(BUCKET, "a/b.json").await, Ok(Some(b"first".to_vec())));
    assert_eq!(
        blobs.list(&container(BUCKET)).await,
        Ok(vec![BlobName { key: "a/b.json".to_owned(), bytes: 5 }])
    );
}

/// Concurrent writes of one key all succeed, and one of their contents is stored completely.
async fn concurrent_writes_all_succeed_and_leave_one_content(blobs: &(impl PutBlob + ReadBlobs)) {
    for key in ["1", "2", "3", "4", "5"] {
        let contents = [vec![b'a'; 50_000], vec![b'b'; 40_000], vec![b'c'; 30_000]];
        let puts = contents.clone().map(|bytes| blobs.put(BUCKET, key, bytes));
        assert_eq!(join_all(puts).await, vec![Ok(()); 3], "{key}");
        let stored = blobs.get(BUCKET, key).await.expect("an answer").expect("a blob");
        assert!(contents.contains(&stored), "{key} has {} bytes", stored.len());
    }
}

/// What was written is listed, under its container's prefix, in byte order of the keys.
async fn a_listing_shows_what_was_written_before_it(blobs: &(impl PutBlob + ReadBlobs)) {
    for key in ["b/2.json", "b/10.json", "a/%C3%B6%20.json", "c.json", "b/A.json"] {
        assert_eq!(blobs.put(BUCKET, key, b"{}".to_vec()).await, Ok(()));
    }
    assert_eq!(
        keys(blobs, BUCKET).await,
        ["a/%C3%B6%20.json", "b/10.json", "b/2.json", "b/A.json", "c.json"]
    );
    assert_eq!(keys(blobs, "dead-letters/b").await, ["b/10.json", "b/2.json", "b/A.json"]);
    assert_eq!(keys(blobs, "dead-letters/none").await, [""; 0]);
}

/// A missing container is a permanent error, different from a temporary refusal.
async fn a_missing_container_is_a_permanent_error(blobs: &(impl PutBlob + ReadBlobs)) {
    let refused = blobs.put("no-such-bucket", "a.json", b"{}".to_vec()).await;
    assert!(matches!(refused, Err(PutError::NoSuchContainer(_))), "{refused:?}");
    assert!(blobs.list(&container("no-such-bucket")).await.is_err());
}

/// A missing key is no error.
async fn what_was_never_written_is_none(blobs: &impl ReadBlobs) {
    assert_eq!(blobs.get(BUCKET, "never.json").await, Ok(None));
}

async fn on_s3() -> (Cloud, S3Blobs) {
    let cloud = Cloud::start().await;
    let blobs = S3Blobs::new(cloud.s3.clone());
    (cloud, blobs)
}

#[tokio::test]
async fn in_s3_the_first_write_of_a_key_wins() {
    let (_cloud, blobs) = on_s3().await;
    the_first_write_of_a_key_wins(&blobs).await;
}

#[tokio::test]
async fn in_s3_concurrent_writes_all_succeed_and_leave_one_content() {
    let (_cloud, blobs) = on_s3().await;
    concurrent_writes_all_succeed_and_leave_one_content(&blobs).await;
}

#[tokio::test]
async fn in_s3_a_listing_shows_what_was_written_before_it() {
    let (_cloud, blobs) = on_s3().await;
    a_listing_shows_what_was_written_before_it(&blobs).await;
}

#[tokio::test]
async fn in_s3_a_missing_container_is_a_permanent_error() {
    let (_cloud, blobs) = on_s3().await;
    a_missing_container_is_a_permanent_error(&blobs).await;
}

#[tokio::test]
async fn in_s3_what_was_never_written_is_none() {
    let (_cloud, blobs) = on_s3().await;
    what_was_never_written_is_none(&blobs).await;
}

#[tokio::test]
async fn in_s3_a_listing_of_more_than_a_page_is_complete() {
    let (_cloud, blobs) = on_s3().await;
    let expected: Vec<String> = (0..1_005).map(|index| format!("many/{index:04}.json")).collect();
    for key in &expected {
        assert_eq!(blobs.put(BUCKET, key, b"{}".to_vec()).await, Ok(()));
    }
    assert_eq!(keys(&blobs, "dead-letters/many").await, expected);
}

#[tokio::test]
async fn a_blob_in_s3_has_the_content_type_of_json() {
    let (cloud, blobs) = on_s3().await;
    assert_eq!(blobs.put(BUCKET, "a.json", b"{}".to_vec()).await, Ok(()));
    let head =
        cloud.s3.head_object().bucket(BUCKET).key("a.json").send().await.expect("the object");
    assert_eq!(head.content_type(), Some("application/json"));
}

#[tokio::test]
async fn unreachable_storage_is_a_temporary_error() {
    let (cloud, _) = on_s3().await;
    let unreachable = S3Blobs::new(s3_client(&cloud.aws.endpoint()));
    cloud.aws.stop().await;
    let refused = unreachable.put(BUCKET, "a.json", b"{}".to_vec()).await;
    assert!(matches!(refused, Err(PutError::Refused(_))), "{refused:?}");
    assert!(unreachable.get(BUCKET, "a.json").await.is_err());
    assert!(unreachable.list(&container(BUCKET)).await.is_err());
}
