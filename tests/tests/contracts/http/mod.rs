//! `SendHttp` never fails. Every result is an `Exchange`, which ends within the timeout of the
//! request.

use std::sync::Arc;
use std::time::Duration;

use adapters::http::HttpSender;
use adapters::machine::Machine;
use delivery::address::{AddressPolicy, OwnAddresses, PrivateDestinations};
use delivery::delivery::outcome::{Content, Exchange, TransportResult};
use delivery::ports::{Clock as _, SendHttp};
use delivery::request::{ANSWER_MAX_BYTES, Method, Needs, Request};
use delivery::subscription::Concurrency;
use futures::future::join_all;
use lastmile_tests::scripted::{Scripted, Step, answer};
use tokio::net::TcpListener;
use tokio::sync::Barrier;

mod address_policy;
mod connections;
mod details;
mod heads;
mod honest;
mod hostile;
mod unprocessed;

use connections::first;

/// An exchange may exceed its timeout by this much on a busy machine.
const GRACE_MS: u64 = 60_000;
/// The timeout of requests that are expected to time out.
const SHORT_MS: u64 = 300;
/// The delay of a late response. It is long, because a busy machine may notice the timeout late.
const LATE: Duration = Duration::from_millis(10 * SHORT_MS);
/// The timeout of all other requests.
pub(crate) const LONG_MS: u64 = 60_000;
/// An address where nothing listens. A port that was just freed may be used again by another
/// program.
const NOBODY: &str = "http://127.0.0.1:1";

pub(crate) fn request(url: &str, timeout_ms: u64) -> Request {
    Request {
        method: Method::Post,
        url: url.parse().unwrap_or_else(|error| panic!("{url}: {error}")),
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: "{\"grüße\": \"🦀\"}".into(),
        timeout_ms,
        needs: Needs::Status,
        answer_max_bytes: ANSWER_MAX_BYTES,
        tls: delivery::request::tls::RequestTls::default(),
        signer: None,
        hidden: Vec::new(),
        deliveries: Vec::new(),
    }
}

/// A sender that may reach the loopback address, where the scripted server is.
pub(crate) fn sender() -> HttpSender {
    sender_allowing("127.0.0.1")
}

fn sender_allowing(private: &str) -> HttpSender {
    HttpSender::new(address_policy(private, &[])).expect("TLS works")
}

/// An address policy that allows these private destinations, except for these own addresses.
fn address_policy(private: &str, own: &[&str]) -> AddressPolicy {
    let own = OwnAddresses::parse(own.iter().copied()).expect("endpoints");
    AddressPolicy::new(PrivateDestinations::parse(private).expect("destinations"), own)
}

/// Runs an exchange with a server that responds to every request with these steps, with this
/// timeout.
async fn exchange(sender: &impl SendHttp, timeout_ms: u64, steps: &[Step]) -> (Exchange, Scripted) {
    let script = steps.to_vec();
    let server = Scripted::start(move |_| script.clone()).await.expect("a free port");
    let made = exchange_with(sender, &request(&server.endpoint(), timeout_ms)).await;
    (made, server)
}

/// Runs an exchange, and checks the promises of every exchange: it ends in time and reports its
/// times.
pub(crate) async fn exchange_with(sender: &impl SendHttp, request: &Request) -> Exchange {
    let before_ms = Machine.now_ms();
    let made = sender.exchange(request).await;
    let after_ms = Machine.now_ms();
    assert!(
        after_ms - before_ms <= request.timeout_ms + GRACE_MS,
        "{} ms: {made:?}",
        after_ms - before_ms
    );
    assert!(
        before_ms <= made.started_ms && made.ended_ms() <= after_ms,
        "{before_ms}..{after_ms}: {made:?}"
    );
    made
}

fn answered(status: u16, retry_after: Option<&str>, body: &[u8]) -> TransportResult {
    TransportResult::Answered {
        status,
        retry_after: retry_after.map(ToOwned::to_owned),
        body: body.to_vec(),
    }
}

/// The request is a POST with the given headers and body.
async fn sends_the_request_as_it_is(sender: &impl SendHttp) {
    let server = Scripted::start(|_| vec![answer("200 OK", &[], b"")]).await.expect("a free port");
    let mut request = request(&format!("{}/in/a%20b?code=1%2F2", server.endpoint()), LONG_MS);
    request.headers.extend(
        [("X-Twice", "1"), ("x-twice", "2"), ("x-latin", "größe")]
            .map(|(n, v)| (n.into(), v.into())),
    );
    assert_eq!(exchange_with(sender, &request).await.result, answered(200, None, b""));
    let [received] = &server.requests()[..] else { panic!("one request is expected") };
    assert!(
        received.head.starts_with("POST /in/a%20b?code=1%2F2 HTTP/1.1\r\n"),
        "{}",
        received.head
    );
    assert_eq!(received.body, request.body);
    assert_eq!(received.header("content-type"), Some("application/json"));
    assert_eq!(received.header("x-latin"), Some("größe"));
    let twice = received
        .head
        .lines()
        .filter(|line| line.to_ascii_lowercase().starts_with("x-twice:"))
        .count();
    assert_eq!(twice, 2, "{}", received.head);
    assert_eq!(received.header("referer"), None);
}

/// An empty body has a content length of 0.
async fn sends_the_length_of_an_empty_body(sender: &impl SendHttp) {
    let server = Scripted::start(|_| vec![answer("200 OK", &[], b"")]).await.expect("a free port");
    let mut request = request(&server.endpoint(), LONG_MS);
    request.body = bytes::Bytes::new();
    assert_eq!(exchange_with(sender, &request).await.result, answered(200, None, b""));
    assert_eq!(server.requests()[0].header("content-length"), Some("0"));
}

/// An exchange that timed out may stay open and report the late response; its times cover the whole
/// exchange.
async fn keeps_an_exchange_open_for_a_late_response(sender: &(impl SendHttp + Sync)) {
    let server = first(vec![Step::Pause(LATE), answer("200 OK", &[], b"late")]).await;
    let (made, open) = sender.exchange_or_late(&request(&server.endpoint(), SHORT_MS)).await;
    assert_eq!(made.result, TransportResult::TimedOut);
    let answer = open.expect("the exchange is open").await;
    assert_eq!(answer.result, answered(200, None, b"late"));
    assert_eq!(answer.started_ms, made.started_ms);
    assert!(answer.duration_ms > made.duration_ms, "{answer:?}");
    let (made, open) = sender.exchange_or_late(&request(&server.endpoint(), LONG_MS)).await;
    assert!(made.result == answered(200, None, b"") && open.is_none());
    assert_eq!(server.requests().len(), 2);
}

/// The sender reads no more of a late response than of any other response.
async fn cuts_a_late_response(sender: &(impl SendHttp + Sync)) {
    let long = vec![b'x'; 2 * ANSWER_MAX_BYTES];
    let server = Scripted::start(move |_| vec![answer("200 OK", &[], &long)]).await;
    let server = server.expect("a free port");
    let answer_max_bytes = 2 * ANSWER_MAX_BYTES + 1;
    let wanted = Request { answer_max_bytes, ..request(&server.endpoint(), LONG_MS) };
    let (made, _) = sender.exchange_or_late(&wanted).await;
    assert_eq!(made.result, answered(200, None, &[b'x'; ANSWER_MAX_BYTES]));
}

/// The sender sends user and password of a URL as RFC 7617 requires.
async fn sends_the_user_of_a_url(sender: &impl SendHttp) {
    let server = Scripted::start(|_| vec![answer("200 OK", &[], b"")]).await.expect("a free port");
    for (user, sent) in [
        ("u%40x:p%20p@", Some("Basic dUB4OnAgcA==")),
        ("u@", Some("Basic dTo=")),
        (":p@", Some("Basic OnA=")),
        ("", None),
    ] {
        let url = server.endpoint().replace("://", &format!("://{user}"));
        let made = exchange_with(sender, &request(&url, LONG_MS)).await;
        assert_eq!(made.result, answered(200, None, b""));
        let received = server.requests();
        assert_eq!(received.last().expect("a request").header("authorization"), sent, "{user}");
    }
}

/// Any status is a result, with its body and Retry-After as they were received.
async fn reports_status_body_and_retry_after(sender: &impl SendHttp) {
    for (line, headers, body, result) in [
        ("200 OK", vec![], "taken", answered(200, None, b"taken")),
        ("204 No Content", vec![], "", answered(204, None, b"")),
        ("299 Odd", vec![], "", answered(299, None, b"")),
        (
            "400 Bad Request",
            vec![],
            "{\"error\":\"größe\"}",
            answered(400, None, "{\"error\":\"größe\"}".as_bytes()),
        ),
        ("503 Busy", vec![("Retry-After", "7")], "", answered(503, Some("7"), b"")),
        (
            "429 Slow Down",
            vec![("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")],
            "",
            answered(429, Some("Wed, 21 Oct 2015 07:28:00 GMT"), b""),
        ),
        ("599 Own", vec![], "", answered(599, None, b"")),
    ] {
        let (made, _) = exchange(sender, LONG_MS, &[answer(line, &headers, body.as_bytes())]).await;
        assert_eq!(made.result, result, "{line}");
    }
}

/// The sender also reports the headers that describe the body, and whether it read the whole body.
async fn reports_what_the_response_says_about_its_body(sender: &impl SendHttp) {
    let headers = [
        ("Content-Type", "text/plain"),
        ("CE-Id", "1"),
        ("ce-type", "t"),
        // Raw UTF-8, which some subscribers send.
        ("ce-subject", "Grüße"),
        ("ce", "x"),
        ("x-ce-id", "x"),
    ];
    let attributes = [("id", "1"), ("type", "t"), ("subject", "Grüße")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    for (body, whole) in [("", true), ("short", true), (&"x".repeat(ANSWER_MAX_BYTES + 1), false)] {
        let (made, _) =
            exchange(sender, LONG_MS, &[answer("200 OK", &headers, body.as_bytes())]).await;
        let content_type = Some("text/plain".to_owned());
        assert_eq!(
            made.content,
            Some(Content {
                content_type,
                attributes: attributes.to_vec(),
                whole,
                ..Content::default()
            })
        );
    }
    let (made, _) = exchange(sender, LONG_MS, &[answer("204 No Content", &[], b"")]).await;
    assert_eq!(made.content, Some(Content { whole: true, ..Content::default() }));
    let (made, _) = exchange(sender, LONG_MS, &[Step::Close]).await;
    assert_eq!(made.content, None);
}

/// A request that allows a longer response gets it, up to its own limit.
async fn reads_as_much_as_the_request_allows(sender: &impl SendHttp) {
    let long = "0123456789abcdef".repeat(1_024 * 1_024 / 16);
    let whole = answer("200 OK", &[], long.as_bytes());
    let server = Scripted::start(move |_| vec![whole.clone()]).await.expect("a free port");
    for answer_max_bytes in [1, 1_000, 100_000, 512 * 1_024, long.len(), long.len() + 1] {
        let needs = Needs::Body;
        let received = Request { needs, answer_max_bytes, ..request(&server.endpoint(), LONG_MS) };
        let made = exchange_with(sender, &received).await;
        assert_eq!(
            made.result,
            answered(200, None, &long.as_bytes()[..answer_max_bytes.min(long.len())])
        );
        assert_eq!(made.content.map(|content| content.whole), Some(answer_max_bytes > long.len()));
    }
}

/// Silence before the end of the head ends with the timeout, and so does an endless head.
async fn times_out_wherever_the_silence_starts(sender: &impl SendHttp) {
    let write = |text: &str| Step::Write(text.as_bytes().to_vec());
    for steps in [
        vec![Step::Silence],
        vec![write("HTTP/1.1 200"), Step::Silence],
        vec![write("HTTP/1.1 200 OK\r\nx-drip: "), Step::Drip(b'x')],
        vec![write("HTTP/1.1 100 Continue\r\n\r\n"), Step::Silence],
    ] {
        let (made, _server) = exchange(sender, SHORT_MS, &steps).await;
        assert_eq!(made.result, TransportResult::TimedOut, "{steps:?}");
        assert!(made.duration_ms >= SHORT_MS, "{made:?}");
    }
}

/// A refused connection, or one that ends before the head is complete, is a connection failure.
async fn reports_a_broken_connection(sender: &impl SendHttp) {
    assert_eq!(
        exchange_with(sender, &request(NOBODY, LONG_MS)).await.result,
        TransportResult::SocketError
    );
    let write = |text: &str| Step::Write(text.as_bytes().to_vec());
    for steps in [
        vec![Step::Close],
        vec![Step::Reset],
        vec![write("HTTP/1.1 200 OK\r\ncontent-le"), Step::Close],
        vec![write("SSH-2.0-OpenSSH_9.9\r\n"), Step::Close],
    ] {
        let (made, _server) = exchange(sender, LONG_MS, &steps).await;
        assert_eq!(made.result, TransportResult::SocketError, "{steps:?}");
    }
}

/// A server without TLS where TLS is expected is a broken connection, not a refused certificate.
async fn reports_a_server_without_tls_as_a_broken_connection(sender: &impl SendHttp) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    let in_clear = async {
        let (stream, _) = listener.accept().await.expect("a connection");
        stream.writable().await.expect("a connection");
        stream.try_write(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("a write");
        stream
    };
    let request = request(&url, LONG_MS);
    let (made, _stream) = tokio::join!(exchange_with(sender, &request), in_clear);
    assert_eq!(made.result, TransportResult::SocketError);
}

/// Only the start of a body is read, and a response with an endless body is still a response.
async fn reads_no_more_than_the_start_of_a_body(sender: &impl SendHttp) {
    let long = "0123456789abcdef".repeat(1_024 * 1_024 / 16);
    let (made, _server) =
        exchange(sender, LONG_MS, &[answer("500 Long", &[], long.as_bytes())]).await;
    assert_eq!(made.result, answered(500, None, &long.as_bytes()[..ANSWER_MAX_BYTES]));
    assert_eq!(ANSWER_MAX_BYTES, 65_536);
    let head = Step::Write(b"HTTP/1.1 200 OK\r\n\r\n".to_vec());
    let endless = [head, Step::Write(long.into_bytes()), Step::Drip(b'x')];
    let (made, _server) = exchange(sender, LONG_MS, &endless).await;
    assert!(
        matches!(made.result, TransportResult::Answered { status: 200, ref body, .. } if body.len() == 65_536)
    );
}

/// A redirect is a response; it is not followed.
async fn follows_no_redirect(sender: &impl SendHttp) {
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"] {
        let elsewhere =
            Scripted::start(|_| vec![answer("200 OK", &[], b"")]).await.expect("a free port");
        let redirect = answer(status, &[("location", &elsewhere.endpoint())], b"");
        let (made, server) = exchange(sender, LONG_MS, &[redirect]).await;
        assert_eq!(made.status().map(|code| code.to_string()).as_deref(), status.get(..3));
        assert_eq!((server.requests().len(), elsewhere.requests().len()), (1, 0), "{status}");
    }
}

/// A connection that the destination closed while idle does not fail the next request.
async fn survives_a_connection_that_was_closed_while_idle(sender: &impl SendHttp) {
    let server = Scripted::start(|_| vec![answer("200 OK", &[], b""), Step::Close])
        .await
        .expect("a free port");
    for _ in 0..3 {
        let made = exchange_with(sender, &request(&server.endpoint(), LONG_MS)).await;
        assert_eq!(made.result, answered(200, None, b""));
    }
}

#[tokio::test]
async fn the_sender_sends_the_request_as_it_is() {
    sends_the_request_as_it_is(&sender()).await;
}

#[tokio::test]
async fn the_sender_sends_the_length_of_an_empty_body() {
    sends_the_length_of_an_empty_body(&sender()).await;
}

#[tokio::test]
async fn the_sender_keeps_an_exchange_open_for_a_late_response() {
    keeps_an_exchange_open_for_a_late_response(&sender()).await;
}

#[tokio::test]
async fn the_sender_cuts_a_late_response() {
    cuts_a_late_response(&sender()).await;
}

#[tokio::test]
async fn the_sender_sends_the_user_of_a_url() {
    sends_the_user_of_a_url(&sender()).await;
}

#[tokio::test]
async fn a_sender_for_a_person_keeps_all_headers_of_a_response_up_to_16_kib() {
    let long = "x".repeat(2_000);
    let names: Vec<String> = (0..10).map(|number| format!("x-long-{number}")).collect();
    let sent: Vec<_> = names.iter().map(|name| (name.as_str(), long.as_str())).collect();
    let (made, _) =
        exchange(&sender().keeping_headers(), LONG_MS, &[answer("200 OK", &sent, b"")]).await;
    let kept = made.content.expect("a response").headers;
    let kept: Vec<_> = kept.iter().filter(|(name, _)| name.starts_with("x-long-")).collect();
    // Eight of them have 16,064 bytes.
    assert_eq!(kept.len(), 8);
    let (made, _) = exchange(&sender(), LONG_MS, &[answer("200 OK", &sent, b"")]).await;
    assert_eq!(made.content.expect("a response").headers, []);
}

#[tokio::test]
async fn the_sender_reports_status_body_and_retry_after() {
    reports_status_body_and_retry_after(&sender()).await;
}

#[tokio::test]
async fn the_sender_reports_what_the_response_says_about_its_body() {
    reports_what_the_response_says_about_its_body(&sender()).await;
}

#[tokio::test]
async fn the_sender_reads_as_much_as_the_request_allows() {
    reads_as_much_as_the_request_allows(&sender()).await;
}

#[tokio::test]
async fn the_sender_times_out_wherever_the_silence_starts() {
    times_out_wherever_the_silence_starts(&sender()).await;
}

#[tokio::test]
async fn the_sender_reports_a_broken_connection() {
    reports_a_broken_connection(&sender()).await;
}

#[tokio::test]
async fn the_sender_reports_a_server_without_tls_as_a_broken_connection() {
    reports_a_server_without_tls_as_a_broken_connection(&sender()).await;
}

#[tokio::test]
async fn the_sender_reads_no_more_than_the_start_of_a_body() {
    reads_no_more_than_the_start_of_a_body(&sender()).await;
}

#[tokio::test]
async fn the_sender_follows_no_redirect() {
    follows_no_redirect(&sender()).await;
}

#[tokio::test]
async fn the_sender_survives_a_connection_that_was_closed_while_idle() {
    survives_a_connection_that_was_closed_while_idle(&sender()).await;
}

#[tokio::test]
async fn connections_are_reused_at_maximum_concurrency() {
    // No request is answered before all are in progress, so each needs its own connection.
    let all = Step::Meet(Arc::new(Barrier::new(Concurrency::DEFAULT.most as usize)));
    let steps = vec![all, answer("204 No Content", &[], b"")];
    let server = Scripted::start(move |_| steps.clone()).await.expect("a free port");
    let (sender, request) = (sender(), request(&server.endpoint(), LONG_MS));
    for _ in 0..3 {
        let exchanges = (0..Concurrency::DEFAULT.most).map(|_| sender.exchange(&request));
        let made = join_all(exchanges).await;
        assert!(made.iter().all(|made| made.result == answered(204, None, b"")), "{made:?}");
        assert_eq!(server.connections(), Concurrency::DEFAULT.most as usize);
    }
}

#[tokio::test]
async fn an_unresolvable_name_has_its_own_result() {
    // A label of more than 63 characters never resolves, and needs no lookup.
    let host = format!("{}.invalid", "a".repeat(64));
    let made =
        exchange_with(&sender_allowing(&host), &request(&format!("http://{host}/"), LONG_MS)).await;
    assert_eq!(made.result, TransportResult::ResolutionError);
}

#[tokio::test]
async fn a_header_that_cannot_be_sent_is_not_sent_and_nothing_else_is() {
    let server = Scripted::start(|_| vec![answer("200 OK", &[], b"")]).await.expect("a free port");
    for (name, value) in [
        ("bad name", "secret"),
        ("", "secret"),
        ("x-split:", "secret"),
        ("x-split\r\nx-injected", "secret"),
        ("x-größe", "secret"),
        ("x-split", "secret\r\nx-injected: b"),
        ("x-split", "secret\nx-injected: b"),
        ("x-split", "secret\r"),
        ("x-null", "secret\0"),
        ("x-delete", "secret\u{7f}"),
    ] {
        let mut request = request(&server.endpoint(), LONG_MS);
        request.headers.push((name.to_owned(), value.to_owned()));
        let made = exchange_with(&sender(), &request).await;
        assert_eq!(made.result, TransportResult::Unsendable, "{name:?} {value:?}");
        assert!(made.detail.is_some_and(|detail| !detail.contains("secret")), "{name:?} {value:?}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_url_of_another_scheme_is_not_sent() {
    for url in [
        "ftp://example.com/",
        "ws://example.com/",
        "file:///etc/passwd",
        "mailto:someone@example.com",
    ] {
        let made =
            exchange_with(&sender_allowing("0.0.0.0/0,example.com"), &request(url, LONG_MS)).await;
        assert!(
            matches!(made.result, TransportResult::Unsendable | TransportResult::Blocked),
            "{url}: {made:?}"
        );
    }
}

#[tokio::test]
async fn details_contain_no_query_string() {
    let unreachable = format!("{NOBODY}/?code=secret");
    let detail =
        exchange_with(&sender(), &request(&unreachable, LONG_MS)).await.detail.expect("a detail");
    assert!(detail.contains("refused") && !detail.contains("secret"), "{detail}");
}
