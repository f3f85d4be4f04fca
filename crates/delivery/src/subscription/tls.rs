//! [`CaBundle`]: certificate authorities that are trusted, in addition to the usual ones, when the
//! TLS certificate of a destination is verified.
//!
//! This module is separate because a bundle is neither a secret nor an identity: documents contain
//! it in plain text.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// Maximum size of a bundle in bytes. The limit is low because one file may contain many bundles.
pub const CA_BUNDLE_MAX_BYTES: usize = 64 * 1_024;

/// One or more certificates of certificate authorities, in PEM.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CaBundle(Arc<str>);

impl fmt::Debug for CaBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CaBundle({self})")
    }
}

/// Prints the number of certificates and the beginning of a digest. People can compare two bundles
/// by their digests.
impl fmt::Display for CaBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = hex::encode(&Sha256::digest(self.pem().as_bytes())[..8]);
        let count = certificates(self.pem()).unwrap_or_default();
        let many = if count == 1 { "" } else { "s" };
        write!(f, "{count} certificate{many}, SHA-256 of the text {digest}…")
    }
}

impl CaBundle {
    /// Creates a bundle from a text that consists of certificates in PEM.
    ///
    /// # Errors
    /// A description of the problem: the text is too long, contains a private key, contains no
    /// certificate, or contains an invalid certificate.
    pub fn new(pem: &str) -> Result<Self, String> {
        if pem.len() > CA_BUNDLE_MAX_BYTES {
            return Err(format!(
                "the bundle must have at most {CA_BUNDLE_MAX_BYTES} bytes, but has {}",
                pem.len()
            ));
        }
        if pem.contains("PRIVATE KEY-----") {
            return Err(
                "the bundle contains a private key; only certificates are allowed".to_owned()
            );
        }
        match certificates(pem) {
            Some(1..) => Ok(Self(pem.into())),
            Some(0) | None => {
                Err("not certificates in PEM format (-----BEGIN CERTIFICATE-----)".to_owned())
            }
        }
    }

    /// Returns the certificates in PEM.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.0
    }
}

/// Counts the PEM certificates in a text (RFC 7468). Returns `None` if one of them is malformed.
fn certificates(pem: &str) -> Option<usize> {
    let mut count = 0;
    for rest in pem.split("-----BEGIN CERTIFICATE-----").skip(1) {
        let (encoded, _) = rest.split_once("-----END CERTIFICATE-----")?;
        let encoded: String = encoded.split_ascii_whitespace().collect();
        STANDARD.decode(encoded).ok().filter(|der| !der.is_empty())?;
        count += 1;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEM: &str = include_str!("../../../../tests/golden/tls/untrusted-certificate.pem");

    #[test]
    fn certificates_are_counted_and_everything_else_is_refused() {
        let shown = |pem: &str| CaBundle::new(pem).map(|bundle| bundle.to_string());
        assert!(
            shown(PEM).is_ok_and(|text| text.starts_with("1 certificate, SHA-256 of the text "))
        );
        assert!(shown(&PEM.repeat(2)).is_ok_and(|text| text.starts_with("2 certificates, ")));
        let key = "-----BEGIN PRIVATE KEY-----\nMA==\n-----END PRIVATE KEY-----\n";
        for (pem, problem) in [
            ("", "not certificates"),
            ("hush", "not certificates"),
            ("-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n", "not certificates"),
            (key, "private key"),
            (&format!("{PEM}{key}"), "private key"),
            (&PEM.repeat(100), "at most 65536 bytes"),
        ] {
            let refused = shown(pem).expect_err(problem);
            assert!(refused.contains(problem), "{refused}");
        }
    }
}
