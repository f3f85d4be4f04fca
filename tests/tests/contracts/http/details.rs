//! The details of exchanges without a complete response: words for people, none of a library or of the operating system.

use std::net::Ipv4Addr;
use std::sync::Arc;

use delivery::ports::SendHttp;
use lastmile_tests::certificates::{Authority, Validity};
use lastmile_tests::scripted::{Script, Scripted, Step, answer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::hostile::trusting;
use super::{LONG_MS, NOBODY, SHORT_MS, exchange_with, request, sender, sender_allowing};

const FOREIGN: [&str; 8] = [
    "os error",
    "error sending",
    "client error",
    "tcp connect",
    "peer certificate",
    "Error",
    "hyper",
    "(",
];

async fn detail(sender: &impl SendHttp, url: &str, timeout_ms: u64) -> String {
    let made = exchange_with(sender, &request(url, timeout_ms)).await;
    let detail = made.detail.expect("a detail");
    FOREIGN.iter().for_each(|word| assert!(!detail.contains(word), "{word} in {detail}"));
    detail
}

#[tokio::test]
async fn a_broken_connection_has_a_detail_in_words() {
    let silent = vec![Step::Silence];
    let headers = vec![("x", "y"); 2_000];
    for (steps, timeout_ms, expected) in [
        (vec![Step::Reset], LONG_MS, "connection reset"),
        (vec![Step::Close], LONG_MS, "connection closed before the response was complete"),
        (vec![Step::Write(b"SSH-2.0-x\r\n\r\n".to_vec())], LONG_MS, "not valid HTTP"),
        (vec![answer("200 OK", &headers, b"")], LONG_MS, "head"),
        (silent, SHORT_MS, "no complete response within"),
    ] {
        let server = Scripted::start(move |_| steps.clone()).await.expect("a free port");
        let detail = detail(&sender(), &server.endpoint(), timeout_ms).await;
        assert!(detail.contains(expected), "{expected}: {detail}");
    }
    assert_eq!(detail(&sender(), NOBODY, LONG_MS).await, "connection refused");
    let unknown = sender_allowing("0.0.0.0/0,nowhere.invalid");
    let detail = detail(&unknown, "http://nowhere.invalid/", LONG_MS).await;
    assert_eq!(detail, "nowhere.invalid does not resolve");
}

#[tokio::test]
async fn a_refused_certificate_has_a_detail_in_words() {
    let (known, unknown) = (Authority::new().expect("a key"), Authority::new().expect("a key"));
    let sender = trusting(&known);
    for (authority, name, validity, expected) in [
        (&known, "127.0.0.1", Validity::Expired, "certificate expired at "),
        (&known, "127.0.0.1", Validity::Future, "certificate not valid yet; valid from "),
        (&known, "other.example", Validity::Always, "certificate not valid for name 127.0.0.1"),
        (&unknown, "127.0.0.1", Validity::Always, "certificate from an unknown issuer"),
    ] {
        let config = authority.server(name, validity, &["http/1.1"]).expect("a certificate");
        let script = Script::Answers(Arc::new(|_| vec![answer("200 OK", &[], b"")]));
        let server = Scripted::serve((Ipv4Addr::LOCALHOST, 0).into(), Some(config), script).await;
        let server = server.expect("a free port");
        let detail = detail(&sender, &server.endpoint(), LONG_MS).await;
        assert!(detail.starts_with(expected), "{expected}: {detail}");
    }
    let in_clear = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let url = format!("https://{}/", in_clear.local_addr().expect("an address"));
    tokio::spawn(async move {
        let (mut connection, _) = in_clear.accept().await.expect("a connection");
        _ = connection.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        // Open until the other side has read it.
        _ = connection.read(&mut [0; 1_024]).await;
    });
    assert_eq!(detail(&sender, &url, LONG_MS).await, "the port does not speak TLS");
}
