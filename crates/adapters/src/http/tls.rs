//! The TLS configurations of the sender: one for all requests that need nothing of their own, and one for each identity
//! and bundle of authorities.
//!
//! Separate because connections are told apart by it: whoever has another identity has another client, and no session of
//! one configuration is resumed by another. Reading the machine's certificates takes milliseconds, and megabytes of memory;
//! all configurations share them.
//!
//! Promises: no error quotes a certificate or a key.

use std::sync::Arc;

use delivery::request::tls::{Identity, RequestTls};
use delivery::subscription::tls::CaBundle;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    version,
};
use rustls_platform_verifier::Verifier;

use super::Network;
use super::clients::ClientError;

/// The configurations, each built for its client.
#[derive(Debug)]
pub(super) struct TlsConfigs {
    provider: Arc<CryptoProvider>,
    /// Trusts the machine's authorities, and those of the network.
    verifier: Arc<Verifier>,
    common: Arc<ClientConfig>,
}

impl TlsConfigs {
    /// TLS 1.2 or later for HTTP/2 and HTTP/1.1, with the certificate authorities of the machine and
    /// the network.
    pub(super) fn new(network: &Network) -> Result<Self, Error> {
        let provider = CryptoProvider::get_default().cloned();
        let provider = provider.unwrap_or_else(|| Arc::new(aws_lc_rs::default_provider()));
        let authorities = network.authorities.iter().cloned();
        let verifier = Verifier::new_with_extra_roots(authorities, Arc::clone(&provider))?;
        let verifier = Arc::new(verifier);
        let mut common = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&version::TLS13, &version::TLS12])?
            // The verifier checks as much as the default one, by the machine's own certificates.
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&verifier) as Arc<dyn ServerCertVerifier>)
            .with_no_client_auth();
        common.alpn_protocols = ["h2", "http/1.1"].map(|name| name.as_bytes().to_vec()).to_vec();
        Ok(Self { provider, verifier, common: Arc::new(common) })
    }

    /// The configuration for requests like this.
    pub(super) fn of(&self, tls: &RequestTls) -> Result<Arc<ClientConfig>, ClientError> {
        if tls.fingerprint().is_none() {
            return Ok(Arc::clone(&self.common));
        }
        let mut config = ClientConfig::clone(&self.common);
        // The sessions of the common one would be resumed without, or with another, identity.
        config.resumption = Resumption::default();
        if let Some(identity) = &tls.identity {
            let key = certified_key(identity, &self.provider).map_err(ClientError::Identity)?;
            config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(key));
        }
        if let Some(bundle) = &tls.ca_bundle {
            let verifier = self.with_bundle(bundle).map_err(ClientError::CaBundle)?;
            config.dangerous().set_certificate_verifier(Arc::new(verifier));
        }
        Ok(Arc::new(config))
    }

    fn with_bundle(&self, bundle: &CaBundle) -> Result<WithBundle, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(bundle.pem().as_bytes()) {
            let certificate = certificate.map_err(|_| "it is not in PEM form".to_owned())?;
            roots.add(certificate).map_err(|error| error.to_string())?;
        }
        let provider = Arc::clone(&self.provider);
        let bundle = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let bundle = bundle.map_err(|error| error.to_string())?;
        Ok(WithBundle { machine: Arc::clone(&self.verifier), bundle })
    }
}

fn certified_key(identity: &Identity, provider: &CryptoProvider) -> Result<CertifiedKey, String> {
    // Not the reader's errors: they may quote a line.
    let chain = CertificateDer::pem_slice_iter(identity.certificate.expose().as_bytes());
    let chain = chain.collect::<Result<Vec<_>, _>>().ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or("its secret holds no certificate in PEM form")?;
    let key = PrivateKeyDer::from_pem_slice(identity.key.expose().as_bytes());
    let key = key
        .map_err(|_| "the secret of its key holds no private key in PEM form without a password")?;
    CertifiedKey::from_der(chain, key, provider).map_err(|error| error.to_string())
}

/// Trusts what the machine trusts, and what a bundle does.
#[derive(Debug)]
struct WithBundle {
    machine: Arc<Verifier>,
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
