//! The meaning of a bucket's answers: the winner of a race, errors that a repetition may solve, and
//! permanent errors.

use std::sync::atomic::{AtomicUsize, Ordering};

use adapters::aws_ports::{s3_client as production_client, with_limits};
use adapters::blobs::S3Blobs;
use adapters::storage::{PutOutcome, Replaced, Storage, StorageError};
use delivery::ports::{PutBlob as _, PutError};
use lastmile_tests::scripted::{Scripted, Step, answer};
use local::aws::local_clients;

use crate::cloud::s3_client;
use crate::scripted_s3::{Answer, DENIED, EXISTS, RACED, SLOW_DOWN, TAKEN, answering, step};
use crate::storage::errors;

/// A write that has raced this often is given up.
const TRIES: usize = 4;

fn storage(server: &Scripted) -> Storage {
    Storage::bucket(s3_client(&server.endpoint()), "dead-letters")
}

/// The result of a conditional write with these answers, and the number of its requests.
async fn put_if_absent(answers: &'static [Answer]) -> (Result<PutOutcome, StorageError>, usize) {
    let server = answering(answers).await;
    let put = storage(&server).put_if_absent("a.json", b"{}".to_vec(), None).await;
    (put, server.requests().len())
}

/// The result of a replacement with these answers, and the number of its requests.
async fn replace(
    answers: &'static [Answer],
    known_etag: Option<&str>,
) -> (Result<Replaced, StorageError>, usize) {
    let server = answering(answers).await;
    let replaced = storage(&server).replace("a.json", b"{}".to_vec(), known_etag).await;
    (replaced, server.requests().len())
}

/// The result of writing a blob with these answers.
async fn put_blob(answers: &'static [Answer]) -> Result<(), PutError> {
    let server = answering(answers).await;
    let blobs = S3Blobs(s3_client(&server.endpoint()));
    blobs.put("dead-letters", "a.json", b"{}".to_vec(), None).await
}

#[tokio::test]
async fn a_write_that_raced_is_repeated_until_it_is_known_who_won() {
    assert_eq!(put_if_absent(&[RACED, TAKEN]).await, (Ok(PutOutcome::Written), 2));
    assert_eq!(put_if_absent(&[RACED, RACED, EXISTS]).await, (Ok(PutOutcome::AlreadyExists), 3));
    assert_eq!(put_if_absent(&[EXISTS]).await, (Ok(PutOutcome::AlreadyExists), 1));
}

#[tokio::test]
async fn a_write_that_keeps_racing_is_an_error_because_nothing_may_be_stored() {
    let (put, requests) = put_if_absent(&[RACED]).await;
    assert!(matches!(put, Err(StorageError::Unavailable(_))), "{put:?}");
    assert_eq!(requests, TRIES);
}

#[tokio::test]
async fn a_replacement_names_what_it_replaces_and_learns_its_new_etag() {
    for (known_etag, if_match, if_none_match) in
        [(Some("\"old\""), Some("\"old\""), None), (None, None, Some("*"))]
    {
        let script = |_: &_| vec![answer("200 OK", &[("etag", "\"new\"")], b"")];
        let server = Scripted::start(script).await.expect("a free port");
        let replaced = storage(&server).replace("a.json", b"{}".to_vec(), known_etag).await;
        assert_eq!(replaced, Ok(Replaced::Written { etag: "\"new\"".to_owned() }));
        let [request] = &server.requests()[..] else { panic!("one request") };
        assert_eq!(request.header("if-match"), if_match);
        assert_eq!(request.header("if-none-match"), if_none_match);
        assert_eq!(request.header("content-type"), Some("application/json"));
    }
}

#[tokio::test]
async fn a_replacement_of_what_changed_or_raced_is_for_the_caller_to_read_again() {
    for answers in [&[EXISTS], &[RACED], &[(404, "NoSuchKey")]] {
        for known_etag in [Some("\"old\""), None] {
            let replaced = replace(answers, known_etag).await;
            assert_eq!(replaced, (Ok(Replaced::Changed), 1), "{answers:?} {known_etag:?}");
        }
    }
}

#[tokio::test]
async fn a_replacement_that_failed_is_not_one_of_what_changed() {
    let (replaced, _) = replace(&[(404, "NoSuchBucket")], Some("\"old\"")).await;
    assert_eq!(replaced, Err(StorageError::NoSuchBucket("NoSuchBucket: said so".to_owned())));
    // The last answer means that the object was written, but without an ETag nobody could replace
    // it.
    for answers in [&[SLOW_DOWN], &[(500, "InternalError")], &[(404, "")], &[TAKEN]] {
        let (replaced, _) = replace(answers, Some("\"old\"")).await;
        assert!(matches!(replaced, Err(StorageError::Unavailable(_))), "{answers:?}: {replaced:?}");
    }
}

#[tokio::test]
async fn a_replacement_by_an_etag_that_no_answer_had_is_not_tried() {
    let (replaced, requests) = replace(&[TAKEN], Some("")).await;
    assert!(matches!(replaced, Err(StorageError::Unavailable(_))), "{replaced:?}");
    assert_eq!(requests, 0);
}

#[tokio::test]
async fn a_replacement_whose_answer_was_lost_finds_what_it_wrote_itself() {
    let given = AtomicUsize::new(0);
    let script = move |_: &_| match given.fetch_add(1, Ordering::SeqCst) {
        0 => vec![Step::Close],
        _ => vec![step(EXISTS)],
    };
    let server = Scripted::start(script).await.expect("a free port");
    let client = production_client(&with_limits(local_clients(&server.endpoint())));
    let storage = Storage::bucket(client, "config");
    let replaced = storage.replace("a.json", b"{}".to_vec(), Some("\"old\"")).await;
    assert_eq!(replaced, Ok(Replaced::Changed));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_blob_is_stored_once_it_was_taken_or_was_there() {
    for answers in [&[TAKEN][..], &[EXISTS], &[RACED, TAKEN], &[RACED, EXISTS]] {
        assert_eq!(put_blob(answers).await, Ok(()), "{answers:?}");
    }
}

#[tokio::test]
async fn a_blob_whose_write_keeps_racing_is_tried_again_later() {
    let put = put_blob(&[RACED]).await;
    assert!(matches!(put, Err(PutError::Unavailable(_))), "{put:?}");
}

#[tokio::test]
async fn a_bucket_that_denies_access_refuses_and_trying_again_is_no_use() {
    let server = answering(&[DENIED]).await;
    for error in errors(&storage(&server)).await {
        assert_eq!(error, StorageError::Refused("AccessDenied: said so".to_owned()));
    }
    let put = put_blob(&[DENIED]).await;
    assert_eq!(put, Err(PutError::Permanent("AccessDenied: said so".to_owned())));
}

#[tokio::test]
async fn a_bucket_that_cannot_be_meant_refuses_too() {
    for answers in [
        &[(403, "AllAccessDisabled")],
        &[(301, "PermanentRedirect")],
        &[(400, "InvalidBucketName")],
        &[(404, "NoSuchBucket")],
    ] {
        let put = put_blob(answers).await;
        assert!(matches!(put, Err(PutError::Permanent(_))), "{answers:?}: {put:?}");
    }
}

#[tokio::test]
async fn what_may_pass_is_tried_again_later() {
    for answers in [
        &[SLOW_DOWN],
        &[(500, "InternalError")],
        &[(403, "ExpiredToken")],
        &[(403, "RequestTimeTooSkewed")],
        // An answer without an error code of S3 is not a refusal by S3.
        &[(403, "")],
    ] {
        let put = put_blob(answers).await;
        assert!(matches!(put, Err(PutError::Unavailable(_))), "{answers:?}: {put:?}");
    }
}

#[tokio::test]
async fn the_client_of_the_functions_repeats_what_failed_once() {
    let server = answering(&[SLOW_DOWN, TAKEN]).await;
    let client = production_client(&with_limits(local_clients(&server.endpoint())));
    assert_eq!(S3Blobs(client).put("dead-letters", "a.json", b"{}".to_vec(), None).await, Ok(()));
    assert_eq!(server.requests().len(), 2);
}
