//! Buckets, tested with the real S3 client.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_s3::error::{ProvideErrorMetadata as _, SdkError};
use aws_sdk_s3::operation::list_objects_v2::ListObjectsV2Output;
use aws_sdk_s3::operation::put_object::builders::PutObjectFluentBuilder;
use aws_sdk_s3::presigning::PresigningConfig;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{Delete, ObjectIdentifier};

use super::{Started, exchange, start};

const BUCKET: &str = "dead-letters";

impl Started {
    fn put(&self, key: &str, content: impl Into<Vec<u8>>) -> PutObjectFluentBuilder {
        self.s3.put_object().bucket(BUCKET).key(key).body(ByteStream::from(content.into()))
    }

    async fn content(&self, key: &str) -> Vec<u8> {
        let got = self.s3.get_object().bucket(BUCKET).key(key).send().await.expect("a get");
        got.body.collect().await.expect("a body").to_vec()
    }
}

fn status<E>(error: &SdkError<E>) -> u16 {
    error.raw_response().expect("a response").status().as_u16()
}

#[tokio::test]
async fn an_object_is_a_plain_file_and_nothing_else() {
    let started = start(30).await;
    let key = "shop%2Fx/orders/é/2026/11/20/7/a guid+1.json";
    let put = started.put(key, "{\"a\":1}").send().await.expect("a put");
    let path = started.folder.path().join(BUCKET).join(key);
    assert_eq!(std::fs::read(&path).expect("a file"), b"{\"a\":1}");
    assert_eq!(std::fs::read_dir(path.parent().expect("a folder")).expect("a folder").count(), 1);
    let got = started.s3.get_object().bucket(BUCKET).key(key).send().await.expect("a get");
    assert_eq!(
        (got.content_type(), got.content_length(), got.e_tag()),
        (Some("application/json"), Some(7), put.e_tag())
    );
    assert!(got.last_modified().is_some());
    let head = started.s3.head_object().bucket(BUCKET).key(key).send().await.expect("a head");
    assert_eq!((head.content_length(), head.e_tag()), (Some(7), put.e_tag()));
    assert_eq!(started.content(key).await, b"{\"a\":1}");
    started.aws.stop().await;
}

#[tokio::test]
async fn the_entity_tag_is_the_md5_of_the_content() {
    let started = start(30).await;
    let put = started.put("hello", "hello").send().await.expect("a put");
    assert_eq!(put.e_tag(), Some("\"5d41402abc4b2a76b9719d911017c592\""));
    started.aws.stop().await;
}

#[tokio::test]
async fn a_body_streamed_in_chunks_arrives_without_their_framing() {
    let started = start(30).await;
    let content: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
    let source = started.folder.path().join("source");
    std::fs::write(&source, &content).expect("a file");
    let body = ByteStream::from_path(&source).await.expect("a stream");
    started.put("streamed", "").body(body).send().await.expect("a put");
    assert_eq!(started.content("streamed").await, content);
    started.aws.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_puts_of_an_absent_key_exactly_one_wins() {
    let started = start(30).await;
    for round in 0..5 {
        let key = format!("race/{round}/x.json");
        let writers = (0..20).map(|writer| {
            let put =
                started.put(&key, format!("writer {writer}").repeat(5_000)).if_none_match("*");
            async move { (writer, put.send().await) }
        });
        let (mut won, mut lost) = (Vec::new(), BTreeSet::new());
        for (writer, put) in futures::future::join_all(writers).await {
            match put {
                Ok(_) => won.push(writer),
                Err(error) => drop(lost.insert((status(&error), error.code().map(str::to_owned)))),
            }
        }
        assert_eq!(won.len(), 1, "{won:?} {lost:?}");
        assert_eq!(lost, BTreeSet::from([(412, Some("PreconditionFailed".to_owned()))]));
        assert_eq!(
            started.content(&key).await,
            format!("writer {}", won[0]).repeat(5_000).into_bytes()
        );
    }
    started.aws.stop().await;
}

#[tokio::test]
async fn a_put_replaces_unless_it_wants_the_key_absent() {
    let started = start(30).await;
    started.put("key", "first").send().await.expect("a put");
    started.put("key", "second").send().await.expect("a put");
    let error =
        started.put("key", "third").if_none_match("*").send().await.expect_err("it is there");
    assert_eq!(status(&error), 412);
    assert_eq!(started.content("key").await, b"second");
    started.s3.delete_object().bucket(BUCKET).key("key").send().await.expect("a delete");
    started.put("key", "fourth").if_none_match("*").send().await.expect("it is absent again");
    started.aws.stop().await;
}

#[tokio::test]
async fn a_put_of_a_known_etag_replaces_what_has_it_and_nothing_else() {
    let started = start(30).await;
    let failed = async |put: PutObjectFluentBuilder| {
        let error = put.send().await.expect_err("refused");
        (status(&error), error.code().map(str::to_owned).unwrap_or_default())
    };
    let missing = (404, "NoSuchKey".to_owned());
    assert_eq!(failed(started.put("a/key", "first").if_match("\"never\"")).await, missing);
    let first = started.put("a/key", "first").send().await.expect("a put").e_tag.expect("a tag");
    let second = started.put("a/key", "second").if_match(&first).send().await.expect("a put");
    let second = second.e_tag.expect("a tag");
    let old = failed(started.put("a/key", "third").if_match(&first)).await;
    assert_eq!(old, (412, "PreconditionFailed".to_owned()));
    assert_eq!(started.content("a/key").await, b"second");
    started.put("a/key", "fourth").if_match(&second).send().await.expect("a put");
    started.s3.delete_object().bucket(BUCKET).key("a/key").send().await.expect("a delete");
    assert_eq!(failed(started.put("a/key", "fifth").if_match(&second)).await, missing);
    let nowhere = failed(started.put("a/key", "x").bucket("nowhere").if_match(&first)).await;
    assert_eq!(nowhere, (404, "NoSuchBucket".to_owned()));
    for put in [
        started.put("a/key", "x").if_match("*"),
        started.put("a/key", "x").if_none_match(&first),
        started.put("a/key", "x").if_match(&first).if_none_match("*"),
    ] {
        assert_eq!(failed(put).await, (501, "NotImplemented".to_owned()));
    }
    let list = started.s3.list_objects_v2().bucket(BUCKET).send().await.expect("a listing");
    assert_eq!(list.key_count(), Some(0));
    started.aws.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_puts_of_one_known_etag_exactly_one_wins() {
    let started = start(30).await;
    let mut known = started.put("key", "begin").send().await.expect("a put").e_tag.expect("a tag");
    for round in 0..10 {
        let writers = (0..20).map(|writer| {
            let put = started.put("key", format!("{round} {writer} ").repeat(5_000));
            put.if_match(&known).send()
        });
        let (mut won, mut lost) = (Vec::new(), BTreeSet::new());
        for put in futures::future::join_all(writers).await {
            match put {
                Ok(put) => won.push(put.e_tag.expect("a tag")),
                Err(error) => drop(lost.insert((status(&error), error.code().map(str::to_owned)))),
            }
        }
        assert_eq!(won.len(), 1, "{won:?} {lost:?}");
        assert_eq!(lost, BTreeSet::from([(412, Some("PreconditionFailed".to_owned()))]));
        known = won.remove(0);
        let found = started.s3.head_object().bucket(BUCKET).key("key").send().await;
        assert_eq!(found.expect("a head").e_tag(), Some(known.as_str()));
    }
    started.aws.stop().await;
}

/// In both orders the unconditional put wins. The conditional put is either refused or overwritten.
#[tokio::test(flavor = "multi_thread")]
async fn a_put_beside_one_of_a_known_etag_is_not_lost() {
    let started = start(30).await;
    for round in 0..50 {
        let key = format!("race/{round}/x.json");
        let begin = started.put(&key, "begin").send().await.expect("a put");
        let known = started.put(&key, "known").if_match(begin.e_tag.expect("a tag")).send();
        let (known, any) = futures::future::join(known, started.put(&key, "any").send()).await;
        any.expect("a put");
        assert_eq!(known.err().map_or(412, |error| status(&error)), 412);
        assert_eq!(started.content(&key).await, b"any", "in round {round}");
    }
    started.aws.stop().await;
}

#[tokio::test]
async fn a_get_of_a_known_etag_is_not_modified() {
    let started = start(30).await;
    let tag = started.put("key", "first").send().await.expect("a put").e_tag.expect("a tag");
    let get = || started.s3.get_object().bucket(BUCKET).key("key").if_none_match(&tag);
    assert_eq!(status(&get().send().await.expect_err("not modified")), 304);
    started.put("key", "second").send().await.expect("a put");
    get().send().await.expect("modified");
    started.aws.stop().await;
}

#[tokio::test]
async fn requests_need_no_signature_and_may_have_one_in_the_url() {
    let started = start(30).await;
    let put = format!(
        "PUT /{BUCKET}/key HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello"
    );
    let answer = exchange(&started, &put).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let valid = PresigningConfig::expires_in(Duration::from_secs(60)).expect("a duration");
    let get = started.s3.get_object().bucket(BUCKET).key("key").presigned(valid).await;
    let url: http::Uri = get.expect("a URL").uri().parse().expect("a URL");
    let path = url.path_and_query().expect("a path");
    let get = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let answer = exchange(&started, &get).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\nhello"), "{answer}");
    started.aws.stop().await;
}

#[tokio::test]
async fn a_part_of_an_object_can_be_read() {
    let started = start(30).await;
    started.put("key", "0123456789").send().await.expect("a put");
    let raw = format!(
        "GET /{BUCKET}/key HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nrange: bytes=2-4\r\n\r\n"
    );
    let answer = exchange(&started, &raw).await;
    assert!(answer.starts_with("HTTP/1.1 206"), "{answer}");
    let get = |range: &str| started.s3.get_object().bucket(BUCKET).key("key").range(range).send();
    let part = get("bytes=2-4").await.expect("a part");
    assert_eq!(part.content_range(), Some("bytes 2-4/10"));
    assert_eq!(part.body.collect().await.expect("a body").to_vec(), b"234");
    assert_eq!(status(&get("bytes=10-").await.expect_err("past the end")), 416);
    started.aws.stop().await;
}

#[tokio::test]
async fn what_is_absent_is_reported_as_by_s3() {
    let started = start(30).await;
    let get = started
        .s3
        .get_object()
        .bucket(BUCKET)
        .key("no/such.json")
        .send()
        .await
        .expect_err("no key");
    assert_eq!((status(&get), get.code()), (404, Some("NoSuchKey")));
    let head = started.s3.head_object().bucket(BUCKET).key("no").send().await.expect_err("no key");
    assert!(head.into_service_error().is_not_found());
    let bucket =
        started.s3.get_object().bucket("nowhere").key("x").send().await.expect_err("no bucket");
    assert_eq!((status(&bucket), bucket.code()), (404, Some("NoSuchBucket")));
    started.s3.head_bucket().bucket("nowhere").send().await.expect_err("no bucket");
    started
        .s3
        .delete_object()
        .bucket(BUCKET)
        .key("no/such.json")
        .send()
        .await
        .expect("nothing to delete is fine");
    started.aws.stop().await;
}

#[tokio::test]
async fn keys_that_cannot_be_files_are_refused_and_touch_nothing() {
    let started = start(30).await;
    for key in ["../escaped", "a/../../escaped", "a//b", "a/", "./a", "a/./b", "/a"] {
        let error = started.put(key, "x").send().await.expect_err("refused");
        assert!((400..500).contains(&status(&error)), "{key}: {error:?}");
    }
    for key in ["x".repeat(256), ["x".repeat(250).as_str(); 5].join("/")] {
        let long = started.put(&key, "x").send().await.expect_err("too long");
        assert_eq!(long.code(), Some("KeyTooLongError"), "{key}");
    }
    for key in [format!("/{}/x", "x".repeat(256)), "tab\tbed".to_owned()] {
        let error = started.put(&key, "x").send().await.expect_err("refused");
        assert_eq!(error.code(), Some("InvalidArgument"), "{key}: the first part decides");
    }
    std::fs::write(started.folder.path().join("config/tab\tbed"), "x").expect("a file");
    let listed = started.s3.list_objects_v2().bucket("config").send().await.expect("a listing");
    assert_eq!(listed.key_count(), Some(0), "its name cannot be in a listing");
    started.put("folder/file", "x").send().await.expect("a put");
    for key in ["folder", "folder/file/inside"] {
        let error = started.put(key, "x").if_none_match("*").send().await.expect_err("in the way");
        assert_eq!((status(&error), error.code()), (400, Some("InvalidArgument")), "{key}");
    }
    let names: BTreeSet<_> = std::fs::read_dir(started.folder.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(names, BTreeSet::from(["config", "dead-letters"].map(Into::into)));
    started.aws.stop().await;
}

#[tokio::test]
async fn a_listing_has_pages_prefixes_and_folders() {
    let started = start(30).await;
    for key in ["a/1.json", "a/2.json", "a/b/3.json", "c.json", "a.json"] {
        started.put(key, key).send().await.expect("a put");
    }
    let list = || started.s3.list_objects_v2().bucket(BUCKET);
    let pages: Result<Vec<_>, _> = list().into_paginator().page_size(2).send().collect().await;
    let pages = pages.expect("pages");
    let objects = pages.iter().flat_map(ListObjectsV2Output::contents);
    let keys: Vec<_> = objects.filter_map(|object| object.key()).collect();
    assert_eq!(keys, ["a.json", "a/1.json", "a/2.json", "a/b/3.json", "c.json"]);
    assert_eq!(pages.len(), 3);
    let folders = list().prefix("a/").delimiter("/").send().await.expect("a page");
    assert_eq!(folders.common_prefixes()[0].prefix(), Some("a/b/"));
    assert_eq!((folders.contents().len(), folders.key_count()), (2, Some(3)));
    assert_eq!(folders.contents()[0].size(), Some(8));
    let after = list().start_after("a/2.json").max_keys(1).send().await.expect("a page");
    assert_eq!((after.contents()[0].key(), after.is_truncated()), (Some("a/b/3.json"), Some(true)));
    for outside in ["../", "a/../../"] {
        let page = list().prefix(outside).delimiter("/").send().await.expect("a page");
        assert_eq!(page.key_count(), Some(0), "{outside}");
    }
    list().delimiter("x").send().await.expect_err("only / delimits");
    started.aws.stop().await;
}

#[tokio::test]
async fn deleted_objects_leave_no_folders_behind() {
    let started = start(30).await;
    let mut delete = Delete::builder();
    for key in ["x/y/1", "x/y/2", "x/3"] {
        started.put(key, key).send().await.expect("a put");
        delete = delete.objects(ObjectIdentifier::builder().key(key).build().expect("a key"));
    }
    let delete = delete.objects(ObjectIdentifier::builder().key("../x").build().expect("a key"));
    let request =
        started.s3.delete_objects().bucket(BUCKET).delete(delete.build().expect("a request"));
    let deleted = request.send().await.expect("an answer");
    assert_eq!((deleted.deleted().len(), deleted.errors().len()), (3, 1));
    assert!(started.folder.path().join(BUCKET).is_dir());
    assert!(!started.folder.path().join(BUCKET).join("x").exists());
    started.aws.stop().await;
}

#[tokio::test]
async fn buckets_are_folders() {
    let started = start(30).await;
    started.s3.create_bucket().bucket("another").send().await.expect("a bucket");
    assert!(started.folder.path().join("another").is_dir());
    let buckets = started.s3.list_buckets().send().await.expect("a list");
    let names: Vec<_> = buckets.buckets().iter().filter_map(|bucket| bucket.name()).collect();
    assert_eq!(names, ["another", "config", "dead-letters"]);
    started.s3.head_bucket().bucket("another").send().await.expect("the bucket");
    for path in ["/..%2Foutside", "/.hidden", "/Upper"] {
        let put = format!("PUT {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let answer = exchange(&started, &put).await;
        assert!(answer.contains("<Code>InvalidBucketName</Code>"), "{answer}");
    }
    started.aws.stop().await;
}

#[tokio::test]
async fn an_object_that_is_too_large_is_refused() {
    let started = start(30).await;
    let limit_bytes = 64 * 1024 * 1024;
    let error = started.put("large", vec![0; limit_bytes + 1]).send().await.expect_err("too large");
    assert_eq!((status(&error), error.code()), (400, Some("EntityTooLarge")));
    started.aws.stop().await;
}
