//! Addresses that never get a packet: checked with a server that counts connections, and with
//! scripted name resolution.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use adapters::http::{HttpSender, Lookup, Network};
use delivery::address::AddressPolicy;
use delivery::delivery::outcome::TransportResult;
use lastmile_tests::scripted::{Script, Scripted, Step, answer};

use super::{LONG_MS, address_policy, answered, exchange_with, request, sender_allowing};

/// Scripted answers to lookups, in order; the last one repeats. The names that were looked up are
/// recorded.
#[derive(Clone, Default)]
struct ScriptedNames {
    answers: Arc<Mutex<Vec<Vec<IpAddr>>>>,
    lookups: Arc<Mutex<Vec<String>>>,
}

impl ScriptedNames {
    fn answering(answers: &[&[&str]]) -> Self {
        let addresses = |answer: &&[&str]| {
            answer.iter().map(|text| text.parse().expect("an address")).collect()
        };
        Self {
            answers: Arc::new(Mutex::new(answers.iter().map(addresses).collect())),
            ..Self::default()
        }
    }

    fn lookup(&self) -> Lookup {
        let names = self.clone();
        Arc::new(move |host| {
            names.lookups.lock().expect("no panic").push(host);
            let mut answers = names.answers.lock().expect("no panic");
            let next = if answers.len() > 1 {
                answers.remove(0)
            } else {
                answers.first().cloned().unwrap_or_default()
            };
            Box::pin(async move { Ok(next) })
        })
    }

    fn sender(&self, address_policy: AddressPolicy) -> HttpSender {
        HttpSender::on(&Network { lookup: self.lookup(), authorities: Vec::new() }, address_policy)
            .expect("TLS works")
    }

    fn lookups(&self) -> Vec<String> {
        self.lookups.lock().expect("no panic").clone()
    }
}

/// A server that closes the connection after each response, so that the next request opens another
/// one.
fn closing_after_response() -> Script {
    Script::Answers(Arc::new(|_| {
        vec![answer("200 OK", &[("connection", "close")], b""), Step::Close]
    }))
}

async fn server() -> Scripted {
    Scripted::serve((Ipv4Addr::LOCALHOST, 0).into(), None, closing_after_response())
        .await
        .expect("a free port")
}

/// The port of the Runtime API: if it is free, a server that counts connections.
async fn runtime_api() -> Option<Scripted> {
    Scripted::serve((Ipv4Addr::LOCALHOST, 9001).into(), None, closing_after_response()).await.ok()
}

#[tokio::test]
async fn no_packet_leaves_for_an_address_that_is_not_allowed() {
    let (server, runtime_api) = (server().await, runtime_api().await);
    let port = server.port();
    let sender = sender_allowing("");
    for host in [
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0x7f.1",
        "localhost",
        "169.254.169.254",
        "[::ffff:169.254.169.254]",
        "10.0.0.1",
    ] {
        for url in [host.to_owned(), format!("{host}:{port}"), format!("{host}:9001")] {
            for scheme in ["https", "http"] {
                let made =
                    exchange_with(&sender, &request(&format!("{scheme}://{url}/"), LONG_MS)).await;
                assert_eq!(made.result, TransportResult::Blocked, "{scheme}://{url}");
                assert!(
                    made.detail.is_some_and(|detail| detail.contains("ALLOW_PRIVATE_DESTINATIONS")),
                    "{url}"
                );
            }
        }
    }
    assert_eq!(server.connections(), 0);
    assert_eq!(runtime_api.map_or(0, |server| server.connections()), 0);
}

#[tokio::test]
async fn no_packet_leaves_for_a_name_that_resolves_to_an_address_that_is_not_allowed() {
    let server = server().await;
    for addresses in [
        &["127.0.0.1"][..],
        &["::1"],
        &["::ffff:127.0.0.1"],
        &["169.254.169.254"],
        &["93.184.216.34", "127.0.0.1"],
        &["127.0.0.1", "93.184.216.34"],
        &["2606:4700::1111", "fd00:ec2::254"],
    ] {
        let names = ScriptedNames::answering(&[addresses]);
        let url = format!("https://mixed.example:{}/", server.port());
        let made =
            exchange_with(&names.sender(address_policy("", &[])), &request(&url, LONG_MS)).await;
        assert_eq!(made.result, TransportResult::Blocked, "{addresses:?}");
        let detail = made.detail.expect("a detail");
        assert!(
            detail.starts_with("mixed.example (") && detail.contains("is not a public address"),
            "{detail}"
        );
        assert_eq!(names.lookups(), ["mixed.example"]);
    }
    assert_eq!(server.connections(), 0);
}

/// The corpus that `rules` checks against the address policy, here against the sender: literals are
/// never looked up.
#[tokio::test]
async fn every_spelling_in_the_corpus_is_refused() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/addresses/refused.txt");
    let corpus = fs::read_to_string(path).expect("the corpus");
    let names = ScriptedNames::default();
    let sender = names.sender(address_policy("", &[]));
    for line in
        corpus.lines().filter(|line| line.starts_with("literal ") || line.starts_with("name "))
    {
        let mut words = line.split(' ');
        let (kind, host) = words.next().zip(words.next()).expect("a kind and a host");
        let addresses = words.next().filter(|_| kind == "name").unwrap_or_default();
        let addresses = addresses.split(',').filter_map(|address| address.parse().ok()).collect();
        *names.answers.lock().expect("no panic") = vec![addresses];
        names.lookups.lock().expect("no panic").clear();
        let made = exchange_with(&sender, &request(&format!("https://{host}/"), LONG_MS)).await;
        assert_eq!(made.result, TransportResult::Blocked, "{line}");
        assert_eq!(names.lookups().len(), usize::from(kind == "name"), "{line}");
    }
}

#[tokio::test]
async fn one_address_that_is_not_allowed_refuses_the_whole_name() {
    let server = server().await;
    let url = format!("http://mixed.example:{}/", server.port());
    for (addresses, reached) in [
        (&["127.0.0.1"][..], true),
        (&["127.0.0.1", "127.0.0.2"], false),
        (&["127.0.0.2", "127.0.0.1"], false),
    ] {
        let sender =
            ScriptedNames::answering(&[addresses]).sender(address_policy("127.0.0.1", &[]));
        let before = server.connections();
        let made = exchange_with(&sender, &request(&url, LONG_MS)).await;
        assert_eq!(
            made.result,
            if reached { answered(200, None, b"") } else { TransportResult::Blocked },
            "{addresses:?}"
        );
        assert_eq!(server.connections() - before, usize::from(reached), "{addresses:?}");
    }
}

/// A name that resolves differently the second time gains nothing (DNS rebinding): it is looked up
/// once.
#[tokio::test]
async fn the_sender_connects_to_the_address_that_was_checked() {
    let checked = server().await;
    let other = SocketAddr::from(([127, 0, 0, 2], checked.port()));
    let other = Scripted::serve(other, None, closing_after_response())
        .await
        .expect("the port of another address");
    let names = ScriptedNames::answering(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let sender = names.sender(address_policy("127.0.0.1", &[]));
    let request = request(&format!("http://rebinding.example:{}/", checked.port()), LONG_MS);
    assert_eq!(exchange_with(&sender, &request).await.result, answered(200, None, b""));
    assert_eq!((names.lookups().len(), checked.connections(), other.connections()), (1, 1, 0));
    assert_eq!(exchange_with(&sender, &request).await.result, TransportResult::Blocked);
    assert_eq!((names.lookups().len(), checked.connections(), other.connections()), (2, 1, 0));
}

#[tokio::test]
async fn no_packet_leaves_for_the_functions_own_addresses_whatever_is_allowed() {
    let (own, other) = (server().await, server().await);
    let allowed = address_policy(
        "localhost,own.example,0.0.0.0/0,::/0",
        &[&format!("127.0.0.1:{}", own.port())],
    );
    let names = ScriptedNames::answering(&[&["127.0.0.1"]]);
    let sender = names.sender(allowed);
    for host in [
        "127.0.0.1",
        "127.0.0.2",
        "0.0.0.0",
        "2130706433",
        "[::ffff:127.0.0.1]",
        "localhost",
        "own.example",
    ] {
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{host}:{}/", own.port());
            let made = exchange_with(&sender, &request(&url, LONG_MS)).await;
            assert_eq!(made.result, TransportResult::Blocked, "{url}");
            assert!(
                made.detail.is_some_and(|detail| detail.contains("the function itself")),
                "{url}"
            );
        }
        let url = format!("http://{host}:{}/", other.port());
        let made = exchange_with(&sender, &request(&url, LONG_MS)).await;
        let reached = if host == "127.0.0.2" {
            TransportResult::SocketError
        } else {
            answered(200, None, b"")
        };
        assert_eq!(made.result, reached, "{url}");
    }
    assert_eq!(own.connections(), 0);
}

#[tokio::test]
async fn no_packet_leaves_without_tls_unless_that_is_allowed() {
    let server = server().await;
    for url in ["http://example.com/", "http://8.8.8.8/", server.endpoint().as_str()] {
        let made = exchange_with(&sender_allowing(""), &request(url, LONG_MS)).await;
        assert_eq!(made.result, TransportResult::Blocked, "{url}");
    }
    assert_eq!(server.connections(), 0);
    for allowed in ["127.0.0.1", "127.0.0.0/8"] {
        let made =
            exchange_with(&sender_allowing(allowed), &request(&server.endpoint(), LONG_MS)).await;
        assert_eq!(made.result, answered(200, None, b""), "{allowed}");
    }
}
