//! TLS of the sender: the report about an untrusted certificate, the authorities that a request may
//! add, and the certificate by which a request shows who is calling.
//!
//! The certificate in `golden/tls` is self-signed, for 127.0.0.1; it and its key protect nothing.

use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use delivery::delivery::outcome::TransportResult;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

use delivery::delivery::outcome::Exchange;
use delivery::ports::SendHttp as _;
use delivery::request::Request;
use delivery::request::tls::{Identity, RequestTls};
use delivery::subscription::secret::Secret;
use delivery::subscription::tls::CaBundle;
use lastmile_tests::certificates::{Authority, ClientIdentity, Validity};
use lastmile_tests::scripted::{Script, Scripted, Step, answer};

use crate::http::{LONG_MS, exchange_with, request, sender};

/// The server side of one connection, with the certificate of `golden/tls`.
fn untrusted() -> ServerConnection {
    let file = |name: &str| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/tls").join(name);
    let certificate =
        CertificateDer::from_pem_file(file("untrusted-certificate.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(file("untrusted-key.pem")).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let config = config
        .with_safe_default_protocol_versions()
        .expect("TLS 1.2 and 1.3")
        .with_no_client_auth();
    let config =
        config.with_single_cert(vec![certificate], key).expect("the key of the certificate");
    ServerConnection::new(Arc::new(config)).expect("a connection")
}

/// Accepts the first client and runs the TLS handshake, or returns why that failed.
fn accept_and_handshake(
    listener: &TcpListener,
    mut connection: ServerConnection,
) -> io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream)?;
    }
    Ok(())
}

#[tokio::test]
async fn an_untrusted_certificate_is_distinguished_from_a_broken_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("https://{}/", listener.local_addr().expect("an address"));
    let server = tokio::task::spawn_blocking(move || accept_and_handshake(&listener, untrusted()));
    let made = exchange_with(&sender(), &request(&url, LONG_MS)).await;
    assert_eq!(made.result, TransportResult::TlsError);
    let refused = server
        .await
        .expect("no panic")
        .expect_err("the client disconnects before it sends a request");
    assert!(refused.to_string().contains("fatal alert"), "{refused}");
}

/// A server with a certificate of a private authority, which asks clients for a certificate of
/// another authority. It closes each connection after its answer, so that the next one may resume
/// the session.
async fn asking(authority: &Authority, clients: &Authority, is_required: bool) -> Scripted {
    let config = authority.server_that_asks("127.0.0.1", clients, is_required);
    let closing = || vec![answer("200 OK", &[("connection", "close")], b""), Step::Close];
    let script = Script::Answers(Arc::new(move |_| closing()));
    let address = "127.0.0.1:0".parse().expect("an address");
    Scripted::serve(address, Some(config.expect("a key")), script).await.expect("a free port")
}

fn with(
    server: &Scripted,
    trusted: Option<&Authority>,
    identity: Option<&ClientIdentity>,
) -> Request {
    let identity = identity.map(|client| Identity {
        certificate: Secret::new(client.certificate.clone()),
        key: Secret::new(client.key.clone()),
    });
    let ca_bundle =
        trusted.map(|authority| CaBundle::new(&authority.pem()).expect("a certificate"));
    Request { tls: RequestTls { ca_bundle, identity }, ..request(&server.endpoint(), LONG_MS) }
}

fn status(exchange: &Exchange) -> Result<u16, &TransportResult> {
    exchange.status().ok_or(&exchange.result)
}

#[tokio::test]
async fn a_request_trusts_its_own_authorities_and_no_other_request_does() {
    let [ours, theirs] = [(); 2].map(|()| Authority::new().expect("a key"));
    let (server, sender) = (asking(&ours, &theirs, false).await, sender());
    for (trusted, expected) in [
        (None, Err(&TransportResult::TlsError)),
        (Some(&ours), Ok(200)),
        (Some(&theirs), Err(&TransportResult::TlsError)),
        (None, Err(&TransportResult::TlsError)),
    ] {
        let exchange = sender.exchange(&with(&server, trusted, None)).await;
        assert_eq!(status(&exchange), expected, "{exchange:?}");
    }
}

#[tokio::test]
async fn a_server_that_a_bundle_vouches_for_under_another_name_is_told_by_that() {
    let [ours, theirs] = [(); 2].map(|()| Authority::new().expect("a key"));
    let config = ours.server("other.example.com", Validity::Always, &["http/1.1"]).expect("a key");
    let address = "127.0.0.1:0".parse().expect("an address");
    let script = Script::Answers(Arc::new(|_| vec![Step::Close]));
    let server = Scripted::serve(address, Some(config), script).await.expect("a free port");
    for (trusted, why) in [(&ours, "not valid for name"), (&theirs, "from an unknown issuer")] {
        let exchange = sender().exchange(&with(&server, Some(trusted), None)).await;
        assert_eq!(status(&exchange), Err(&TransportResult::TlsError), "{exchange:?}");
        let detail = exchange.detail.unwrap_or_default();
        assert!(detail.contains(why), "{detail}");
    }
}

#[tokio::test]
async fn a_certificate_is_shown_by_its_own_requests_only_also_when_a_session_is_resumed() {
    let [ours, clients] = [(); 2].map(|()| Authority::new().expect("a key"));
    let [a, b] =
        ["a.example.com", "b.example.com"].map(|name| clients.client(name).expect("a key"));
    let (server, sender) = (asking(&ours, &clients, false).await, sender());
    let order = [None, Some(&a), Some(&b), None, Some(&a), Some(&a), None, Some(&b)];
    for identity in order {
        let exchange = sender.exchange(&with(&server, Some(&ours), identity)).await;
        assert_eq!(status(&exchange), Ok(200), "{exchange:?}");
    }
    let seen: Vec<_> = server.requests().into_iter().map(|request| request.certificate).collect();
    let expected: Vec<_> =
        order.iter().map(|identity| identity.map(|client| client.der.clone())).collect();
    assert!(seen == expected, "another identity was shown");
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_of_its_authority_takes_no_other_and_not_none() {
    let [ours, clients, others] = [(); 3].map(|()| Authority::new().expect("a key"));
    let (server, sender) = (asking(&ours, &clients, true).await, sender());
    let [right, wrong] =
        [&clients, &others].map(|authority| authority.client("a.example.com").expect("a key"));
    let exchange = sender.exchange(&with(&server, Some(&ours), Some(&right))).await;
    assert_eq!(status(&exchange), Ok(200), "{exchange:?}");
    for (identity, alert) in [
        (None, "a client certificate is required"),
        (Some(&wrong), "the issuer of the client certificate is unknown"),
    ] {
        let exchange = sender.exchange(&with(&server, Some(&ours), identity)).await;
        assert_eq!(status(&exchange), Err(&TransportResult::Aborted), "{exchange:?}");
        let detail = exchange.detail.expect("it says why");
        let expected = format!("the endpoint refused the client certificate: {alert}");
        assert_eq!(detail, expected);
    }
}

#[tokio::test]
async fn a_refused_certificate_does_not_blame_an_endpoint_that_speaks_http_2() {
    let [ours, clients] = [(); 2].map(|()| Authority::new().expect("a key"));
    let config = ours.server_that_asks("127.0.0.1", &clients, true).expect("a key");
    let mut config = (*config).clone();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let address = "127.0.0.1:0".parse().expect("an address");
    let script = Script::Answers(Arc::new(|_| vec![Step::Close]));
    let server = Scripted::serve(address, Some(config.into()), script).await.expect("a free port");
    let exchange = sender().exchange(&with(&server, Some(&ours), None)).await;
    assert_eq!(status(&exchange), Err(&TransportResult::Aborted), "{exchange:?}");
}

#[tokio::test]
async fn a_request_in_clear_that_has_a_certificate_to_show_is_not_sent() {
    let clients = Authority::new().expect("a key");
    let server = Scripted::start(|_| vec![answer("200 OK", &[], b"")]).await.expect("a free port");
    let a = clients.client("a.example.com").expect("a key");
    let exchange = sender().exchange(&with(&server, None, Some(&a))).await;
    assert_eq!(status(&exchange), Err(&TransportResult::Aborted), "{exchange:?}");
    assert!(exchange.detail.is_some_and(|detail| detail.contains("https only")));
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_secret_that_is_no_certificate_aborts_the_attempt_and_is_not_quoted() {
    let [ours, clients] = [(); 2].map(|()| Authority::new().expect("a key"));
    let (server, sender) = (asking(&ours, &clients, true).await, sender());
    let [a, b] =
        ["a.example.com", "b.example.com"].map(|name| clients.client(name).expect("a key"));
    for (certificate, key, why) in [
        ("hush", &*a.key, "the secret contains no certificate in PEM format"),
        (&*a.certificate, "hush", "contains no unencrypted private key in PEM format"),
        (&a.certificate, &b.key, "does not match the private key"),
    ] {
        let identity = ClientIdentity {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            der: Vec::new(),
        };
        let exchange = sender.exchange(&with(&server, Some(&ours), Some(&identity))).await;
        let detail = exchange.detail.as_deref().unwrap_or_default();
        assert_eq!(exchange.result, TransportResult::Aborted);
        assert!(detail.contains(why) && !detail.contains("hush"), "{detail}");
    }
    assert_eq!(server.connections(), 0);
}
