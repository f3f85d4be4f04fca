//! Server certificates for tests, issued by an authority that the test may or may not trust.

use std::sync::Arc;

use adapters::http::Certificate;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, Error, IsCa, Issuer, KeyPair, date_time_ymd,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};

/// A certificate authority that only clients with its certificate trust.
#[derive(Debug)]
pub struct Authority {
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// Encodes bytes in PEM form (RFC 7468).
fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
}

/// A client certificate with its key.
#[derive(Debug, Clone)]
pub struct ClientIdentity {
    /// The certificate in PEM form.
    pub certificate: String,
    /// The private key in PEM form.
    pub key: String,
    /// The certificate as a server sees it.
    pub der: Vec<u8>,
}

/// The validity of a certificate at the current time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// Valid now.
    Always,
    /// Valid in the past only.
    Expired,
    /// Valid in the future only.
    Future,
}

impl Authority {
    /// Creates an authority with a unique name.
    ///
    /// # Errors
    /// If no key can be generated.
    pub fn new() -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new([])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let name = STANDARD.encode(&key.public_key_raw()[..24]);
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key)?;
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// The certificate, for a client that trusts it.
    #[must_use]
    pub fn certificate(&self) -> Certificate<'static> {
        self.certificate.der().clone()
    }

    /// The certificate as DER bytes, for a client in another process.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        self.certificate.der()
    }

    /// The certificate in PEM form.
    #[must_use]
    pub fn pem(&self) -> String {
        pem("CERTIFICATE", self.der())
    }

    /// Issues a client certificate for this name.
    ///
    /// # Errors
    /// If no key can be generated.
    pub fn client(&self, name: &str) -> Result<ClientIdentity, Error> {
        let key = KeyPair::generate()?;
        let certificate =
            CertificateParams::new([name.to_owned()])?.signed_by(&key, &self.issuer)?;
        Ok(ClientIdentity {
            der: certificate.der().to_vec(),
            certificate: pem("CERTIFICATE", certificate.der()),
            key: pem("PRIVATE KEY", &key.serialize_der()),
        })
    }

    /// The configuration of a server that requests client certificates of the authority `clients`.
    /// Without `is_required`, it also serves clients that have none.
    ///
    /// # Errors
    /// If no key can be generated.
    pub fn server_that_asks(
        &self,
        name: &str,
        clients: &Self,
        is_required: bool,
    ) -> Result<Arc<ServerConfig>, Error> {
        let mut roots = RootCertStore::empty();
        roots.add(clients.certificate()).expect("it is an authority");
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
        let verifier = if is_required { verifier } else { verifier.allow_unauthenticated() };
        let verifier = verifier.build().expect("there is an authority");
        self.server_with(name, Validity::Always, &["http/1.1"], Some(verifier))
    }

    /// The configuration of a server with a certificate of this authority, for this name or
    /// address, that offers these protocols by ALPN.
    ///
    /// # Errors
    /// If no key can be generated.
    pub fn server(
        &self,
        name: &str,
        validity: Validity,
        protocols: &[&str],
    ) -> Result<Arc<ServerConfig>, Error> {
        self.server_with(name, validity, protocols, None)
    }

    fn server_with(
        &self,
        name: &str,
        validity: Validity,
        protocols: &[&str],
        clients: Option<Arc<dyn ClientCertVerifier>>,
    ) -> Result<Arc<ServerConfig>, Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new([name.to_owned()])?;
        let (from, to) = match validity {
            Validity::Always => (2000, 4000),
            Validity::Expired => (2000, 2001),
            Validity::Future => (3999, 4000),
        };
        (params.not_before, params.not_after) =
            (date_time_ymd(from, 1, 1), date_time_ymd(to, 1, 1));
        let certificate = params.signed_by(&key, &self.issuer)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let config = config
            .with_safe_default_protocol_versions()
            .expect("TLS 1.2 and 1.3")
            .with_client_cert_verifier(
                clients.unwrap_or_else(WebPkiClientVerifier::no_client_auth),
            );
        let mut config = config
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("the key belongs to the certificate");
        config.alpn_protocols =
            protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Ok(Arc::new(config))
    }
}
