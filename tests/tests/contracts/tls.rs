//! How the sender reports a certificate that no trusted authority issued.
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
