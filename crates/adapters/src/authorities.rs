//! The certificate authorities that this machine trusts, for requests to destinations and for calls to AWS.
//!
//! Separate because both need them, and neither does before its first request over TLS: finding and reading them takes
//! milliseconds, which a start should not. So they are read once in a process, when the first client needs them.
//!
//! Promises: a certificate that cannot be used is left out, as by other programs of the machine; while there is none, each
//! request looks again.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls_native_certs::{CertificateResult, load_native_certs};

static OF_THIS_MACHINE: OnceLock<Vec<CertificateDer<'static>>> = OnceLock::new();

/// The certificates, at least one; or why there is none.
pub(crate) fn of_this_machine() -> Result<&'static [CertificateDer<'static>], String> {
    if let Some(known) = OF_THIS_MACHINE.get() {
        return Ok(known);
    }
    let CertificateResult { mut certs, errors, .. } = load_native_certs();
    certs.retain(is_usable);
    if certs.is_empty() {
        let problem = errors.first().map(ToString::to_string);
        let problem = problem.unwrap_or_else(|| "there are none".to_owned());
        return Err(format!(
            "{problem}; install the system's, or name a file of them in SSL_CERT_FILE"
        ));
    }
    Ok(OF_THIS_MACHINE.get_or_init(|| certs))
}

/// Whether it is a certificate, and not only bytes in the form of one: the clients of AWS panic at such bytes.
fn is_usable(certificate: &CertificateDer<'static>) -> bool {
    RootCertStore::empty().add(certificate.clone()).is_ok()
}

/// These certificates in PEM form (RFC 7468), which the clients of AWS want.
pub(crate) fn pem(certificates: &[CertificateDer<'_>]) -> String {
    let one = |certificate: &CertificateDer<'_>| {
        let text = STANDARD.encode(certificate);
        format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
    };
    certificates.iter().map(one).collect()
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
