//! The head of a response decides, unless the request needs the body.

use std::io::Write as _;

use delivery::delivery::outcome::TransportResult;
use delivery::request::{Needs, Request};
use flate2::Compression;
use flate2::write::GzEncoder;
use lastmile_tests::scripted::{Scripted, Step, answer};

use super::{LONG_MS, SHORT_MS, answered, exchange, exchange_with, request, sender};

fn write(text: &str) -> Step {
    Step::Write(text.as_bytes().to_vec())
}

/// Responses with a whole head and a body that breaks off or stays open, each with its status.
fn without_an_end(status: &str) -> Vec<Vec<Step>> {
    let known = write(&format!("HTTP/1.1 {status} X\r\ncontent-length: 60000\r\n\r\nhalf"));
    let chunked =
        write(&format!("HTTP/1.1 {status} X\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"));
    let ends = [Step::Close, Step::Reset, Step::Silence, Step::Drip(b'x')];
    ends.into_iter()
        .flat_map(|end| [vec![known.clone(), end.clone()], vec![chunked.clone(), end]])
        .collect()
}

#[tokio::test]
async fn a_whole_head_decides_whatever_happens_to_the_body() {
    for status in [200, 204, 400, 503] {
        for steps in without_an_end(&status.to_string()) {
            let (made, server) = exchange(&sender(), SHORT_MS, &steps).await;
            let found = made.answer().map(|(status, _)| status);
            assert_eq!(found, Some(status), "{steps:?}: {:?}", made.detail);
            assert_eq!(server.requests().len(), 1);
        }
    }
}

#[tokio::test]
async fn what_came_of_a_body_is_kept() {
    for steps in without_an_end("500") {
        // Long enough for the beginning to arrive on a busy machine.
        let (made, _server) = exchange(&sender(), 10 * SHORT_MS, &steps).await;
        let body = made.answer().map(|(_, body)| body.to_vec()).unwrap_or_default();
        let is_reset = matches!(steps[1], Step::Reset);
        assert!(body.starts_with(b"half") || is_reset, "{steps:?}: {body:?}");
        assert_eq!(made.content.map(|content| content.whole), Some(false), "{steps:?}");
    }
}

#[tokio::test]
async fn a_body_that_is_needed_and_does_not_come_is_a_failure_with_its_status() {
    for steps in without_an_end("200") {
        let script = steps.clone();
        let server = Scripted::start(move |_| script.clone()).await.expect("a free port");
        let needs_body = Request { needs: Needs::Body, ..request(&server.endpoint(), SHORT_MS) };
        let made = exchange_with(&sender(), &needs_body).await;
        assert!(
            matches!(made.result, TransportResult::TimedOut | TransportResult::SocketError),
            "{steps:?}: {made:?}"
        );
        assert_eq!((made.answer(), made.status()), (None, Some(200)), "{steps:?}");
    }
}

#[tokio::test]
async fn a_body_is_needed_for_a_reply_if_the_head_declares_one() {
    let event = "content-type: application/cloudevents+json";
    let in_headers = "ce-specversion: 1.0\r\ncontent-type: application/json";
    for (status, headers, needed) in [
        (200, event, true),
        (200, in_headers, true),
        (202, event, false),
        (200, "content-type: text/html", false),
        (400, event, false),
        (503, in_headers, false),
    ] {
        let head = format!("HTTP/1.1 {status} X\r\n{headers}\r\ncontent-length: 10\r\n\r\nthr");
        let steps = vec![write(&head), Step::Close];
        let server = Scripted::start(move |_| steps.clone()).await.expect("a free port");
        let may_reply = Request { needs: Needs::Reply, ..request(&server.endpoint(), LONG_MS) };
        let made = exchange_with(&sender(), &may_reply).await;
        assert_eq!(made.answer().is_none(), needed, "{status} {headers}: {made:?}");
        assert_eq!(made.status(), Some(status));
    }
}

#[tokio::test]
async fn a_head_has_at_most_a_thousand_headers_and_256_kib() {
    let head = |headers: usize, bytes: usize| {
        let lines: Vec<String> =
            (0..headers).map(|number| format!("x-{number}: {}\r\n", "v".repeat(bytes))).collect();
        write(&format!("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n{}\r\n", lines.concat()))
    };
    for (headers, bytes) in [(129, 10), (999, 10), (1, 200_000), (100, 2_500)] {
        let (made, _server) = exchange(&sender(), LONG_MS, &[head(headers, bytes)]).await;
        assert_eq!(made.result, answered(200, None, b""), "{headers}: {:?}", made.detail);
    }
    for (headers, bytes) in [(1_000, 10), (1, 300_000)] {
        let (made, _server) = exchange(&sender(), LONG_MS, &[head(headers, bytes)]).await;
        assert_eq!(made.result, TransportResult::SocketError, "{headers}");
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).and_then(|()| encoder.finish()).expect("a Vec takes everything")
}

#[tokio::test]
async fn a_body_is_asked_for_without_an_encoding_and_decoded_if_it_has_one() {
    let encoded = answer("422 No", &[("content-encoding", "gzip")], &gzip(b"{\"why\":\"no\"}"));
    let (made, server) = exchange(&sender(), LONG_MS, &[encoded]).await;
    assert_eq!(made.result, answered(422, None, b"{\"why\":\"no\"}"));
    assert_eq!(made.content.map(|content| content.whole), Some(true));
    assert_eq!(server.requests()[0].header("accept-encoding"), Some("identity"));
}

#[tokio::test]
async fn a_body_that_is_not_encoded_as_it_says_is_kept_or_fails_where_it_is_needed() {
    let wrong = answer("200 OK", &[("content-encoding", "gzip")], b"no gzip");
    let server = Scripted::start(move |_| vec![wrong.clone()]).await.expect("a free port");
    let needs = |needs| Request { needs, ..request(&server.endpoint(), LONG_MS) };
    let made = exchange_with(&sender(), &needs(Needs::Status)).await;
    assert_eq!(made.result, answered(200, None, b"no gzip"));
    let made = exchange_with(&sender(), &needs(Needs::Body)).await;
    assert_eq!((made.result, made.unread_status), (TransportResult::SocketError, Some(200)));
    assert!(made.detail.is_some_and(|detail| detail.contains("gzip")));
}
