//! The certificate authorities that this machine trusts, for requests to destinations and calls to
//! AWS.
//!
//! Separate because both clients need them. Finding and reading the authorities takes milliseconds,
//! so a process does this once, when the first client needs TLS, and not at start.
//!
//! Promises: ignores unusable certificates, as other programs on the machine do. While no authority
//! has been found, each request searches again.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls_native_certs::{CertificateResult, load_native_certs};

static OF_THIS_MACHINE: OnceLock<Vec<CertificateDer<'static>>> = OnceLock::new();

/// Returns all usable trusted certificates, or the reason why there are none.
pub(crate) fn of_this_machine() -> Result<&'static [CertificateDer<'static>], String> {
    if let Some(known) = OF_THIS_MACHINE.get() {
        return Ok(known);
    }
    let CertificateResult { mut certs, errors, .. } = load_native_certs();
    certs.retain(is_usable);
    if certs.is_empty() {
        let problem = errors.first().map(ToString::to_string);
        let problem = problem.unwrap_or_else(|| "no certificate authorities were found".to_owned());
        return Err(format!(
            "{problem}; install the system's CA certificates, or set SSL_CERT_FILE to a PEM file"
        ));
    }
    Ok(OF_THIS_MACHINE.get_or_init(|| certs))
}

/// True if the bytes are a certificate. The AWS clients panic if text in PEM form does not contain
/// a certificate.
fn is_usable(certificate: &CertificateDer<'static>) -> bool {
    RootCertStore::empty().add(certificate.clone()).is_ok()
}

/// Encodes certificates in PEM form (RFC 7468), as the AWS clients require.
pub(crate) fn pem(certificates: &[CertificateDer<'_>]) -> String {
    let encode = |certificate: &CertificateDer<'_>| {
        let text = STANDARD.encode(certificate);
        format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
    };
    certificates.iter().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject as _;

    use super::*;

    #[test]
    fn the_pem_form_holds_the_same_certificates() {
        let certificates = of_this_machine().expect("this machine trusts somebody");
        let text = pem(certificates);
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
        assert_eq!(read.expect("PEM"), certificates);
    }

    #[test]
    fn bytes_that_are_no_certificate_are_not_used() {
        assert!(!is_usable(&CertificateDer::from(b"not a certificate".to_vec())));
    }
}
