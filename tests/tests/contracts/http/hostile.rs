//! Hostile destinations: every exchange ends in time, within the limits on what is read.

use std::net::Ipv4Addr;
use std::sync::Arc;

use adapters::http::{HttpSender, Network};
use delivery::delivery::outcome::TransportResult;
use delivery::request::ANSWER_MAX_BYTES;
use lastmile_tests::certificates::{Authority, Validity};
use lastmile_tests::hostile::{BOMB, Ends, catalogue};
use lastmile_tests::scripted::{Script, Scripted, answer};

use super::{LONG_MS, SHORT_MS, answered, exchange_with, fence, request};

/// More than the buffers of two sockets take.
const LARGE_BODY_BYTES: usize = 16 * 1_024 * 1_024;

/// A sender that may reach the loopback address and trusts this authority.
fn trusting(authority: &Authority) -> HttpSender {
    let authorities = vec![authority.certificate().expect("a certificate")];
    HttpSender::on(&Network { authorities, ..Network::default() }, fence("127.0.0.1", &[]))
        .expect("TLS works")
}

fn ends(result: &TransportResult, as_told: Ends) -> bool {
    match as_told {
        Ends::Answered(code) => {
            matches!(result, TransportResult::Answered { status, body, .. } if *status == code && body.len() <= ANSWER_MAX_BYTES)
        }
        Ends::TimedOut => *result == TransportResult::TimedOut,
        Ends::Broken => *result == TransportResult::SocketError,
        Ends::Somehow => [Ends::Answered(200), Ends::Answered(101), Ends::TimedOut, Ends::Broken]
            .into_iter()
            .any(|one| ends(result, one)),
    }
}

/// `exchange_with` asserts that each of them ends within its timeout plus a second.
#[tokio::test]
async fn every_hostile_exchange_ends_in_time_and_as_it_should() {
    let authority = Authority::new().expect("a key");
    let sender = trusting(&authority);
    let mut otherwise = Vec::new();
    for hostility in catalogue() {
        let server = hostility.serve(&authority).await.expect("a free port");
        let timeout_ms = match hostility.ends {
            Ends::TimedOut | Ends::Somehow => SHORT_MS,
            Ends::Answered(_) | Ends::Broken => LONG_MS,
        };
        let mut request = request(&hostility.url(&server), timeout_ms);
        request.body = vec![b' '; LARGE_BODY_BYTES].into();
        if !hostility.name.starts_with("a connection") {
            request.body = "{}".into();
        }
        let made = exchange_with(&sender, &request).await;
        if !ends(&made.result, hostility.ends) || server.connections() != 1 {
            let (name, expected, connections) =
                (hostility.name, hostility.ends, server.connections());
            let result = made.detail.unwrap_or_else(|| format!("{:?}", made.result));
            otherwise.push(format!(
                "{name}: not {expected:?}, over {connections} connections: {result}"
            ));
        }
    }
    assert!(otherwise.is_empty(), "{otherwise:#?}");
}

/// A gzip bomb is kept as compressed bytes and never decompressed.
#[tokio::test]
async fn a_gzip_bomb_is_bytes() {
    let gzip = answer("200 OK", &[("content-encoding", "gzip")], BOMB);
    let server = Scripted::start(move |_| vec![gzip.clone()]).await.expect("a free port");
    let made = exchange_with(&super::sender(), &request(&server.endpoint(), LONG_MS)).await;
    assert_eq!(made.result, answered(200, None, BOMB));
}

/// A certificate counts if a trusted authority issued it, for this host and this time; otherwise
/// nothing is sent.
#[tokio::test]
async fn a_certificate_counts_for_its_host_and_its_time() {
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
        assert_eq!(server.asked().len(), usize::from(taken), "{name} {validity:?}");
    }
}
