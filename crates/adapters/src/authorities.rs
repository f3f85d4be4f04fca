//! The certificate authorities that this machine trusts, for requests to destinations and for calls to AWS.
//!
//! Separate because both need them, and neither does before its first request over TLS: finding and reading them takes
//! milliseconds, which a start should not. So they are read once in a process, when the first client needs them.
//!
//! Promises: a certificate that cannot be read is left out, as by other programs of the machine.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls_native_certs::{CertificateResult, load_native_certs};

static OF_THIS_MACHINE: LazyLock<CertificateResult> = LazyLock::new(load_native_certs);

/// The certificates; read at the first call.
pub(crate) fn of_this_machine() -> &'static [CertificateDer<'static>] {
    &OF_THIS_MACHINE.certs
}

/// Why some of them cannot be read, if there is a reason.
pub(crate) fn problem() -> Option<String> {
    OF_THIS_MACHINE.errors.first().map(ToString::to_string)
}

/// The same certificates in PEM form (RFC 7468), which the clients of AWS want.
pub(crate) fn pem() -> String {
    let one = |certificate: &CertificateDer<'_>| {
        let text = STANDARD.encode(certificate);
        format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
    };
    of_this_machine().iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject as _;

    use super::*;

    #[test]
    fn the_pem_form_holds_the_same_certificates() {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem().as_bytes()).collect();
        assert_eq!(read.expect("PEM"), of_this_machine());
    }
}
