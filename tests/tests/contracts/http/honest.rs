//! Endpoints that are slow, wordy or given much to read, and honest: the budget of a connection is not for them.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use delivery::delivery::outcome::{Exchange, TransportResult};
use delivery::ports::SendHttp as _;
use delivery::request::{Needs, REPLY_MAX_BYTES, Request};
use futures::future::join_all;
use http_body_util::{BodyExt as _, Collected, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use lastmile_tests::certificates::{Authority, Validity};
use lastmile_tests::scripted::{Script, Scripted, Step, answer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::hostile::trusting;
use super::{LATE, LONG_MS, answered, exchange, exchange_with, request, sender};

/// As long as a batch of events may be.
const LONG_REQUEST_BYTES: usize = 1_024 * 1_024;

fn chunk(data: &str) -> Vec<u8> {
    format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
}

/// A response whose body comes in chunks like this one.
fn in_chunks(data: &str, count: usize) -> [Vec<Vec<u8>>; 3] {
    let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    [vec![head], vec![chunk(data); count], vec![b"0\r\n\r\n".to_vec()]]
}

fn length(made: &Exchange) -> Option<usize> {
    let TransportResult::Answered { status: 200, body, .. } = &made.result else { return None };
    Some(body.len())
}

#[tokio::test]
async fn an_answer_in_chunks_of_one_byte_is_read_to_its_end() {
    let steps = vec![Step::Write(in_chunks("x", REPLY_MAX_BYTES).concat().concat())];
    let server = Scripted::start(move |_| steps.clone()).await.expect("a free port");
    let request = Request {
        needs: Needs::Body,
        answer_max_bytes: 2 * REPLY_MAX_BYTES,
        ..request(&server.endpoint(), LONG_MS)
    };
    let made = exchange_with(&sender(), &request).await;
    assert_eq!(length(&made), Some(REPLY_MAX_BYTES), "{:?}", made.detail);
}

/// Each in a record of TLS by itself, which takes 22 bytes more.
#[tokio::test]
async fn an_answer_over_tls_in_chunks_of_four_bytes_is_read_to_its_end() {
    const CHUNKS: usize = 32 * 1_024;
    let authority = Authority::new().expect("a key");
    let config = authority.server("127.0.0.1", Validity::Always, &["http/1.1"]).expect("a key");
    let steps: Vec<Step> =
        in_chunks("abcd", CHUNKS).concat().into_iter().map(Step::Write).collect();
    let script = Script::Answers(Arc::new(move |_| steps.clone()));
    let server = Scripted::serve((Ipv4Addr::LOCALHOST, 0).into(), Some(config), script).await;
    let server = server.expect("a free port");
    let request = Request {
        needs: Needs::Body,
        answer_max_bytes: REPLY_MAX_BYTES,
        ..request(&server.endpoint(), LONG_MS)
    };
    let made = exchange_with(&trusting(&authority), &request).await;
    assert_eq!(length(&made), Some(4 * CHUNKS), "{:?}", made.detail);
}

#[tokio::test]
async fn early_hints_and_a_pause_before_the_answer_are_no_flood() {
    let hint = format!("HTTP/1.1 103 Early Hints\r\nlink: </{}>\r\n\r\n", "a".repeat(2_048));
    let hints = vec![Step::Write(hint.into_bytes()); 10];
    let steps = [hints, vec![Step::Pause(LATE), answer("200 OK", &[], b"slow")]].concat();
    let (made, server) = exchange(&sender(), LONG_MS, &steps).await;
    assert_eq!(made.result, answered(200, None, b"slow"), "{:?}", made.detail);
    assert_eq!(server.connections(), 1);
}

/// An endpoint over HTTP/2 that answers each request with its own body.
async fn echo(authority: &Authority) -> (u16, Arc<AtomicUsize>, JoinSet<()>) {
    let config = authority.server("127.0.0.1", Validity::Always, &["h2"]).expect("a key");
    let (tls, connections) = (TlsAcceptor::from(config), Arc::new(AtomicUsize::new(0)));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let (mut tasks, accepted) = (JoinSet::new(), Arc::clone(&connections));
    tasks.spawn(async move {
        let mut served = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            accepted.fetch_add(1, Ordering::SeqCst);
            let tls = tls.clone();
            served.spawn(async move {
                let Ok(stream) = tls.accept(stream).await else { return };
                let service = service_fn(async |request: hyper::Request<Incoming>| {
                    let body = request.into_body().collect().await;
                    let body = body.map_or(Bytes::new(), Collected::to_bytes);
                    // A long head, of which all is read.
                    let answer = hyper::Response::builder().header("x-long", "x".repeat(40_000));
                    Ok::<_, Infallible>(answer.body(Full::new(body)).expect("a header"))
                });
                let builder = auto::Builder::new(TokioExecutor::new());
                // An end of the connection is no error here.
                let _ = builder.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    (port, connections, tasks)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_long_requests_and_answers_share_a_connection() {
    let authority = Authority::new().expect("a key");
    let (port, connections, _tasks) = echo(&authority).await;
    let sender = trusting(&authority);
    let request = Request {
        body: vec![b' '; LONG_REQUEST_BYTES].into(),
        needs: Needs::Body,
        answer_max_bytes: 2 * LONG_REQUEST_BYTES,
        ..request(&format!("https://127.0.0.1:{port}/"), LONG_MS)
    };
    for at_once in [1, 16, 1] {
        let exchanges = (0..at_once).map(|_| sender.exchange(&request));
        for made in join_all(exchanges).await {
            assert_eq!(length(&made), Some(LONG_REQUEST_BYTES), "{:?}", made.detail);
        }
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}
