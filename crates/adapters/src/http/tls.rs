//! The TLS configurations of the sender: a common configuration, and one for each identity and
//! bundle of authorities.
//!
//! Separate because each configuration has its own connections: each identity has its own client,
//! and a session of one configuration is never resumed by another. The machine's certificates are
//! read only when the first request over TLS is sent. All configurations share these certificates.
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

/// The reason why there is no TLS configuration for a request.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The machine trusts no authority, so no certificate can be verified.
    #[error("the CA certificates of this machine cannot be read: {0}")]
    Authorities(String),
    /// The network's authorities are invalid, or the cryptography provider supports no required TLS
    /// version.
    #[error("the TLS configuration cannot be built")]
    Config(#[from] Error),
    /// The secrets for the client certificate of a subscription are not a certificate and its key.
    #[error("the client certificate cannot be used: {0}")]
    Identity(String),
    /// The authorities of a subscription are invalid.
    #[error("the caBundle cannot be used: {0}")]
    CaBundle(String),
}

/// Builds TLS configurations on demand.
#[derive(Debug)]
pub(super) struct TlsConfigs {
    provider: Arc<CryptoProvider>,
    of_network: Vec<CertificateDer<'static>>,
    /// Configuration for requests without TLS; it trusts no authority.
    in_clear: Arc<ClientConfig>,
    trusting: OnceLock<Trusting>,
}

/// The verifier and the configuration that trust the certificate authorities of this machine and
/// the additional ones of [`Network`].
#[derive(Debug, Clone)]
struct Trusting {
    verifier: Arc<WebPkiServerVerifier>,
    common: Arc<ClientConfig>,
}

impl TlsConfigs {
    /// Prepares configurations with TLS 1.2 or later, for HTTP/2 and HTTP/1.1, with the certificate
    /// authorities of the machine and the network.
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

    pub(super) fn in_clear(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.in_clear)
    }

    /// Returns the configuration for requests with these TLS requirements.
    pub(super) fn config(&self, tls: &RequestTls) -> Result<Arc<ClientConfig>, TlsError> {
        let Trusting { verifier, common } = self.trusting()?;
        if tls.fingerprint().is_none() {
            return Ok(common);
        }
        let mut config = ClientConfig::clone(&common);
        // Without this, sessions of the common configuration would be resumed with a different
        // identity, or with none.
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

    /// Returns a configuration that trusts the machine's authorities. If none can be found, the
    /// next request searches again.
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
            // The authorities of the network are sufficient.
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
            let certificate =
                certificate.map_err(|_| "the certificate is not in PEM format".to_owned())?;
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
    // Do not use the errors of the PEM reader, because they may quote a line.
    let chain = CertificateDer::pem_slice_iter(identity.certificate.expose().as_bytes());
    let chain = chain.collect::<Result<Vec<_>, _>>().ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or("the secret contains no certificate in PEM format")?;
    let key = PrivateKeyDer::from_pem_slice(identity.key.expose().as_bytes());
    let key =
        key.map_err(|_| "the secret of the key contains no unencrypted private key in PEM format")?;
    CertifiedKey::from_der(chain, key, provider).map_err(|error| tls_words(&error))
}

/// Verifies certificates against the machine's authorities and a bundle of a subscription.
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
        // If an authority of the bundle issued the certificate, report the error of the bundle's
        // verifier, such as a wrong host name. Otherwise report the error of the machine's
        // verifier.
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
