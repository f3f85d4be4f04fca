//! A request that an endpoint over HTTP/2 says it has not processed is sent again at once, once, on another connection.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use delivery::delivery::outcome::TransportResult;
use lastmile_tests::certificates::{Authority, Validity};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::hostile::trusting;
use super::{LONG_MS, answered, exchange_with, request};

const PREFACE_BYTES: usize = 24;
const HEAD_BYTES: usize = 9;
/// The flag of the last frame of a request.
const END_STREAM: u8 = 1;
/// The kinds of the frames that a request has.
const DATA_AND_HEADERS: [u8; 2] = [0, 1];

/// A SETTINGS frame without settings.
const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
/// The connection goes away, and no stream was processed.
const GO_AWAY_BEFORE_ALL: &[u8] = b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";
/// The connection goes away, and the first stream may have been processed.
const GO_AWAY_AFTER_THE_FIRST: &[u8] = b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x01\0\0\0\0";
/// The first stream was refused.
const REFUSED: &[u8] = b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x07";
/// The first stream was cancelled, perhaps after it was processed.
const CANCELLED: &[u8] = b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08";
/// The response to the first stream: 200, without a body.
const OK: &[u8] = b"\0\0\x01\x01\x05\0\0\0\x01\x88";

/// Reads frames until a request has come whole.
async fn whole_request(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<()> {
    stream.read_exact(&mut [0; PREFACE_BYTES]).await?;
    loop {
        let mut head = [0; HEAD_BYTES];
        stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await?;
        if DATA_AND_HEADERS.contains(&head[3]) && head[4] & END_STREAM != 0 {
            return Ok(());
        }
    }
}

/// An endpoint whose connections answer a request with these frames, one after the other, and all further ones with 200.
async fn endpoint(
    authority: &Authority,
    answers: Vec<&'static [u8]>,
) -> (String, Arc<AtomicUsize>, JoinSet<()>) {
    let config = authority.server("127.0.0.1", Validity::Always, &["h2"]).expect("a key");
    let (tls, requests) = (TlsAcceptor::from(config), Arc::new(AtomicUsize::new(0)));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let url = format!("https://{}/", listener.local_addr().expect("an address"));
    let (mut tasks, received) = (JoinSet::new(), Arc::clone(&requests));
    tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = tls.accept(stream).await else { continue };
            if stream.write_all(SETTINGS).await.is_err()
                || whole_request(&mut stream).await.is_err()
            {
                continue;
            }
            let number = received.fetch_add(1, Ordering::SeqCst);
            let answer = answers.get(number).copied().unwrap_or(OK);
            let _ = stream.write_all(answer).await;
            let _ = stream.shutdown().await;
        }
    });
    (url, requests, tasks)
}

#[tokio::test]
async fn a_request_that_was_not_processed_is_repeated_once() {
    let authority = Authority::new().expect("a key");
    let (ok, broken) = (answered(200, None, b""), TransportResult::SocketError);
    for (answers, expected, requests) in [
        (vec![GO_AWAY_BEFORE_ALL], &ok, 2),
        (vec![REFUSED], &ok, 2),
        (vec![GO_AWAY_BEFORE_ALL, REFUSED], &broken, 2),
        (vec![REFUSED, REFUSED, REFUSED], &broken, 2),
        // These may have been processed.
        (vec![GO_AWAY_AFTER_THE_FIRST], &broken, 1),
        (vec![CANCELLED], &broken, 1),
    ] {
        let (url, received, _tasks) = endpoint(&authority, answers.clone()).await;
        let made = exchange_with(&trusting(&authority), &request(&url, LONG_MS)).await;
        assert_eq!(made.result, *expected, "{answers:?}: {:?}", made.detail);
        assert_eq!(received.load(Ordering::SeqCst), requests, "{answers:?}");
    }
}
