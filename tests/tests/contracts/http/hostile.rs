//! Hostile destinations: every exchange ends in time, within the limits on what is read.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adapters::http::{HttpSender, Network};
use delivery::delivery::outcome::TransportResult;
use delivery::ports::SendHttp as _;
use delivery::request::{ANSWER_MAX_BYTES, Needs, REPLY_MAX_BYTES, Request};
use lastmile_tests::certificates::{Authority, Validity};
use lastmile_tests::hostile::{BOMB, ExpectedEnd, catalogue};
use lastmile_tests::scripted::{Script, Scripted, Step, answer};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{LONG_MS, SHORT_MS, address_policy, answered, exchange_with, request};

/// More than the buffers of two sockets take.
const LARGE_BODY_BYTES: usize = 16 * 1_024 * 1_024;

/// A sender that may reach the loopback address and trusts this authority.
pub(super) fn trusting(authority: &Authority) -> HttpSender {
    let authorities = vec![authority.certificate()];
    HttpSender::on(&Network { authorities, ..Network::default() }, address_policy("127.0.0.1", &[]))
        .expect("TLS works")
}

fn expected(result: &TransportResult, as_scripted: ExpectedEnd) -> bool {
    match as_scripted {
        ExpectedEnd::Answered(code) => {
            matches!(result, TransportResult::Answered { status, body, .. } if *status == code && body.len() <= ANSWER_MAX_BYTES)
        }
        ExpectedEnd::TimedOut => *result == TransportResult::TimedOut,
        ExpectedEnd::Broken => *result == TransportResult::SocketError,
        ExpectedEnd::Unspecified => [
            ExpectedEnd::Answered(200),
            ExpectedEnd::Answered(101),
            ExpectedEnd::TimedOut,
            ExpectedEnd::Broken,
        ]
        .into_iter()
        .any(|end| expected(result, end)),
    }
}

/// `exchange_with` asserts that each of them ends soon after its timeout; by itself none would.
#[tokio::test]
async fn every_hostile_exchange_ends_in_time_and_as_expected() {
    let authority = Authority::new().expect("a key");
    let sender = trusting(&authority);
    let mut unexpected = Vec::new();
    for behaviour in catalogue() {
        let server = behaviour.serve(&authority).await.expect("a free port");
        let timeout_ms = match behaviour.expected {
            ExpectedEnd::TimedOut | ExpectedEnd::Unspecified => SHORT_MS,
            ExpectedEnd::Answered(_) | ExpectedEnd::Broken => LONG_MS,
        };
        let mut request = request(&behaviour.url(&server), timeout_ms);
        request.body = vec![b' '; LARGE_BODY_BYTES].into();
        if !behaviour.name.starts_with("a connection") {
            request.body = "{}".into();
        }
        let made = exchange_with(&sender, &request).await;
        if !expected(&made.result, behaviour.expected) || server.connections() != 1 {
            let (name, expected, connections) =
                (behaviour.name, behaviour.expected, server.connections());
            let result = made.detail.unwrap_or_else(|| format!("{:?}", made.result));
            unexpected.push(format!(
                "{name}: not {expected:?}, over {connections} connections: {result}"
            ));
        }
    }
    assert!(unexpected.is_empty(), "{unexpected:#?}");
}

/// Six long answers that begin at once and then come byte by byte, of so many addresses: another address
/// gets its own read meanwhile.
#[tokio::test]
async fn long_answers_that_trickle_keep_nobody_else_waiting() {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {REPLY_MAX_BYTES}\r\n\r\n");
    let begun = Step::Write([head.as_bytes(), &[b'x'; ANSWER_MAX_BYTES + 1]].concat());
    let answer = answer("200 OK", &[], &[b'x'; 100_000]);
    let friendly = Scripted::start(move |_| vec![answer.clone()]).await.expect("a free port");
    for addresses in [1, 3, 6] {
        let steps = vec![begun.clone(), Step::Drip(b'x')];
        let hostile = Scripted::start(move |_| steps.clone()).await.expect("a free port");
        let (sender, mut trickling) = (super::sender(), JoinSet::new());
        let long = |url: &str, timeout_ms| Request {
            needs: Needs::Body,
            answer_max_bytes: REPLY_MAX_BYTES,
            ..request(url, timeout_ms)
        };
        for number in 0..6 {
            let url = format!("{}/{}", hostile.endpoint(), number % addresses);
            let (sender, long) = (sender.clone(), long(&url, 10 * LONG_MS));
            trickling.spawn(async move { sender.exchange(&long).await });
        }
        while hostile.requests().len() < 6 {
            sleep(Duration::from_millis(10)).await;
        }
        // Until their beginnings have been read; without that, the test proves less.
        sleep(Duration::from_millis(SHORT_MS)).await;
        let made = exchange_with(&sender, &long(&friendly.endpoint(), LONG_MS)).await;
        let expected = answered(200, None, &[b'x'; 100_000]);
        assert!(made.result == expected, "{addresses}: {:?}", made.detail);
    }
}

/// Two answers that begin and go on no further: a short one of their address is read meanwhile.
#[tokio::test]
async fn a_short_answer_waits_for_no_other_one() {
    let begun = Step::Write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx".to_vec());
    let requests = AtomicUsize::new(0);
    let script = move |_: &_| match requests.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => vec![begun.clone(), Step::Silence],
        _ => vec![answer("200 OK", &[], b"short")],
    };
    let server = Scripted::start(script).await.expect("a free port");
    let request = |timeout_ms| Request {
        needs: Needs::Body,
        answer_max_bytes: REPLY_MAX_BYTES,
        ..request(&server.endpoint(), timeout_ms)
    };
    let (sender, mut waiting) = (super::sender(), JoinSet::new());
    for number in 1..=2 {
        let (sender, request) = (sender.clone(), request(10 * LONG_MS));
        waiting.spawn(async move { sender.exchange(&request).await });
        while server.requests().len() < number {
            sleep(Duration::from_millis(10)).await;
        }
    }
    // Until their beginnings have been read; without that, the test proves less.
    sleep(Duration::from_millis(SHORT_MS)).await;
    let made = exchange_with(&sender, &request(LONG_MS)).await;
    assert_eq!(made.result, answered(200, None, b"short"));
}

/// A gzip bomb is decompressed as far as any body is read.
#[tokio::test]
async fn a_gzip_bomb_is_decompressed_as_far_as_a_body_is_read() {
    let gzip = answer("200 OK", &[("content-encoding", "gzip")], BOMB);
    let server = Scripted::start(move |_| vec![gzip.clone()]).await.expect("a free port");
    let made = exchange_with(&super::sender(), &request(&server.endpoint(), LONG_MS)).await;
    assert_eq!(made.result, answered(200, None, &[0; ANSWER_MAX_BYTES]));
}

/// A certificate counts if a trusted authority issued it, for this host and this time; otherwise
/// nothing is sent.
#[tokio::test]
async fn a_certificate_is_valid_for_its_host_and_its_time_only() {
    let (known, unknown) = (Authority::new().expect("a key"), Authority::new().expect("a key"));
    let sender = trusting(&known);
    for (authority, name, validity, taken) in [
        (&known, "127.0.0.1", Validity::Always, true),
        (&known, "127.0.0.2", Validity::Always, false),
        (&known, "other.example", Validity::Always, false),
        (&known, "127.0.0.1", Validity::Expired, false),
        (&known, "127.0.0.1", Validity::Future, false),
        (&unknown, "127.0.0.1", Validity::Always, false),
    ] {
        let config = authority.server(name, validity, &["http/1.1"]).expect("a certificate");
        let script = Script::Answers(Arc::new(|_| vec![answer("200 OK", &[], b"")]));
        let server = Scripted::serve((Ipv4Addr::LOCALHOST, 0).into(), Some(config), script)
            .await
            .expect("a free port");
        let made = exchange_with(&sender, &request(&server.endpoint(), LONG_MS)).await;
        let expected = if taken { answered(200, None, b"") } else { TransportResult::TlsError };
        assert_eq!(made.result, expected, "{name} {validity:?}: {:?}", made.detail);
        assert_eq!(server.requests().len(), usize::from(taken), "{name} {validity:?}");
    }
}
