//! The TLS configurations of the sender: one for all requests that need nothing of their own, and one for each identity
//! and bundle of authorities.
//!
//! Separate because connections are told apart by it: whoever has another identity has another client, and no session of
//! one configuration is resumed by another. Nothing is read of the machine's certificates before the first request over
//! TLS; then all configurations share them.
//!
//! Promises: no error quotes a certificate or a key.

use std::sync::{Arc, OnceLock};

use delivery::request::tls::{Identity, RequestTls};
use delivery::subscription::tls::CaBundle;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme, WantsVerifier, version,
};
use thiserror::Error;

use super::Network;
use crate::authorities;
use crate::tls_words::tls_words;

/// Why there is no TLS configuration for a request.
#[derive(Debug, Error)]
pub enum TlsError {
    /// This machine trusts nobody, so no certificate could be checked.
    #[error("the certificate authorities of this machine cannot be read: {0}")]
    Authorities(String),
    /// Those of the network cannot be trusted, or the provider of cryptography knows no version of TLS.
    #[error("no TLS configuration can be built")]
    Config(#[from] Error),
    /// The secrets of a subscription are no certificate and its key.
    #[error("the client certificate cannot be used: {0}")]
    Identity(String),
    /// A bundle of a subscription cannot be trusted.
    #[error("the caBundle cannot be used: {0}")]
    CaBundle(String),
}

/// The configurations, each built for its client.
#[derive(Debug)]
pub(super) struct TlsConfigs {
    provider: Arc<CryptoProvider>,
    of_network: Vec<CertificateDer<'static>>,
    /// That of requests without TLS, which trusts nobody.
    in_clear: Arc<ClientConfig>,
    trusting: OnceLock<Trusting>,
}

/// What trusts the machine's authorities, and those of the network.
#[derive(Debug, Clone)]
struct Trusting {
    verifier: Arc<WebPkiServerVerifier>,
    common: Arc<ClientConfig>,
}

impl TlsConfigs {
    /// TLS 1.2 or later for HTTP/2 and HTTP/1.1, with the certificate authorities of the machine and
    /// the network.
    pub(super) fn new(network: &Network) -> Result<Self, TlsError> {
        let provider = CryptoProvider::get_default().cloned();
        let provider = provider.unwrap_or_else(|| Arc::new(aws_lc_rs::default_provider()));
        let builder = builder(&provider)?;
        let mut in_clear =
            builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        in_clear.resumption = Resumption::disabled();
        let (of_network, trusting) = (network.authorities.clone(), OnceLock::new());
        Ok(Self { provider, of_network, in_clear: Arc::new(in_clear), trusting })
    }

    /// That of requests without TLS.
    pub(super) fn in_clear(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.in_clear)
    }

    /// The configuration for requests like this.
    pub(super) fn of(&self, tls: &RequestTls) -> Result<Arc<ClientConfig>, TlsError> {
        let Trusting { verifier, common } = self.trusting()?;
        if tls.fingerprint().is_none() {
            return Ok(common);
        }
        let mut config = ClientConfig::clone(&common);
        // The sessions of the common one would be resumed without, or with another, identity.
        config.resumption = Resumption::default();
        if let Some(identity) = &tls.identity {
            let key = certified_key(identity, &self.provider).map_err(TlsError::Identity)?;
            config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(key));
        }
        if let Some(bundle) = &tls.ca_bundle {
            let bundle = self.verifier_of(bundle).map_err(TlsError::CaBundle)?;
            let verifier = WithBundle { machine: verifier, bundle };
            config.dangerous().set_certificate_verifier(Arc::new(verifier));
        }
        Ok(Arc::new(config))
    }

    /// What trusts the machine; where that has no authorities, the next request looks again.
    fn trusting(&self) -> Result<Trusting, TlsError> {
        if let Some(trusting) = self.trusting.get() {
            return Ok(trusting.clone());
        }
        let mut roots = RootCertStore::empty();
        for authority in &self.of_network {
            roots.add(authority.clone())?;
        }
        match authorities::of_this_machine() {
            Ok(of_machine) => {
                roots.add_parsable_certificates(of_machine.iter().cloned());
            }
            Err(problem) if roots.is_empty() => return Err(TlsError::Authorities(problem)),
            // Those of the network are enough.
            Err(_) => {}
        }
        let provider = Arc::clone(&self.provider);
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let verifier = verifier.map_err(|error| TlsError::Authorities(error.to_string()))?;
        let builder = builder(&self.provider)?.with_webpki_verifier(Arc::clone(&verifier));
        let mut common = builder.with_no_client_auth();
        common.alpn_protocols = ["h2", "http/1.1"].map(|name| name.as_bytes().to_vec()).to_vec();
        let trusting = Trusting { verifier, common: Arc::new(common) };
        Ok(self.trusting.get_or_init(|| trusting).clone())
    }

    fn verifier_of(&self, bundle: &CaBundle) -> Result<Arc<WebPkiServerVerifier>, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(bundle.pem().as_bytes()) {
            let certificate = certificate.map_err(|_| "it is not in PEM form".to_owned())?;
            roots.add(certificate).map_err(|error| tls_words(&error))?;
        }
        let provider = Arc::clone(&self.provider);
        let bundle = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        bundle.map_err(|error| error.to_string())
    }
}

fn builder(
    provider: &Arc<CryptoProvider>,
) -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, Error> {
    ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])
}

fn certified_key(identity: &Identity, provider: &CryptoProvider) -> Result<CertifiedKey, String> {
    // Not the reader's errors: they may quote a line.
    let chain = CertificateDer::pem_slice_iter(identity.certificate.expose().as_bytes());
    let chain = chain.collect::<Result<Vec<_>, _>>().ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or("its secret holds no certificate in PEM form")?;
    let key = PrivateKeyDer::from_pem_slice(identity.key.expose().as_bytes());
    let key = key
        .map_err(|_| "the secret of its key holds no private key in PEM form without a password")?;
    CertifiedKey::from_der(chain, key, provider).map_err(|error| tls_words(&error))
}

/// Trusts what the machine trusts, and what a bundle does.
#[derive(Debug)]
struct WithBundle {
    machine: Arc<WebPkiServerVerifier>,
    bundle: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for WithBundle {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let by = |verifier: &dyn ServerCertVerifier| {
            verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
        };
        let of_bundle = match by(&*self.bundle) {
            Ok(verified) => return Ok(verified),
            Err(problem) => problem,
        };
        // Whoever the bundle vouches for fails for another reason, such as another name.
        let is_unknown = of_bundle == Error::InvalidCertificate(CertificateError::UnknownIssuer);
        by(&*self.machine).map_err(|of_machine| if is_unknown { of_machine } else { of_bundle })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.bundle.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.bundle.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.bundle.supported_verify_schemes()
    }
}
