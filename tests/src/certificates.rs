//! Server certificates for tests, issued by an authority that the test may trust or not.

use std::sync::Arc;

use adapters::http::Certificate;
use rcgen::{BasicConstraints, CertificateParams, Error, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate authority that only clients with its certificate trust.
#[derive(Debug)]
pub struct Authority {
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// When a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// Now.
    Always,
    /// In the past.
    Expired,
    /// In the future.
    Future,
}

impl Authority {
    /// A new authority.
    ///
    /// # Errors
    /// If no key can be generated.
    pub fn new() -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new([])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
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
            .with_no_client_auth();
        let mut config = config
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("the key belongs to the certificate");
        config.alpn_protocols =
            protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Ok(Arc::new(config))
    }
}
