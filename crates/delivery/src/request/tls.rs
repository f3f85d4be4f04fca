//! [`RequestTls`]: the TLS requirements for the connection of a request.
//!
//! This module is separate because connections are shared. Two requests may share a connection only
//! if their requirements are equal.

use crate::subscription::auth::ClientCertificate;
use sha2::{Digest as _, Sha256};

use crate::delivery::outcome::Unsendable;
use crate::subscription::Destination;
use crate::subscription::auth::Auth;
use crate::subscription::secret::{Keyring, Secret, SecretName};
use crate::subscription::tls::CaBundle;

/// The TLS requirements for the connection of a request. The default is no requirements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestTls {
    /// Certificate authorities to trust in addition to those of the machine.
    pub ca_bundle: Option<CaBundle>,
    /// The client certificate to send to the server; `None` if no certificate is sent.
    pub identity: Option<Identity>,
}

/// A client certificate and its private key, both in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The client certificate, followed by its intermediate certificates.
    pub certificate: Secret,
    /// The private key that belongs to the client certificate.
    pub key: Secret,
}

impl RequestTls {
    /// Returns the TLS requirements for requests to a destination.
    ///
    /// # Errors
    /// [`Unsendable`] if a secret was not loaded.
    pub(super) fn for_destination(
        destination: &Destination,
        keyring: &Keyring,
    ) -> Result<Self, Unsendable> {
        let secret = |name: &SecretName| {
            let missing = || Unsendable::Unready(format!("the secret {name} was not loaded"));
            keyring.get(name).cloned().ok_or_else(missing)
        };
        let identity = match &destination.auth {
            Some(Auth::ClientCertificate(ClientCertificate { certificate, key })) => {
                Some(Identity { certificate: secret(certificate)?, key: secret(key)? })
            }
            Some(
                Auth::Basic(_)
                | Auth::Bearer(_)
                | Auth::Header(_)
                | Auth::OAuth2(_)
                | Auth::Sigv4(_)
                | Auth::AwsIdentity(_),
            )
            | None => None,
        };
        Ok(Self { ca_bundle: destination.ca_bundle().cloned(), identity })
    }

    /// Returns a digest of the requirements; `None` if there are no requirements. Requests can
    /// share a connection only if their digests are equal.
    #[must_use]
    pub fn fingerprint(&self) -> Option<[u8; 32]> {
        let Self { ca_bundle, identity } = self;
        if ca_bundle.is_none() && identity.is_none() {
            return None;
        }
        let mut digest = Sha256::new();
        let bundle = ca_bundle.as_ref().map(CaBundle::pem);
        let certificate = identity.as_ref().map(|identity| identity.certificate.expose());
        let key = identity.as_ref().map(|identity| identity.key.expose());
        for part in [bundle, certificate, key].map(Option::unwrap_or_default) {
            // The digest includes the length of each part, so that no byte can move from one part
            // to the next.
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        Some(digest.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_tells_connections_apart() {
        let identity = |certificate: &str, key: &str| RequestTls {
            ca_bundle: None,
            identity: Some(Identity {
                certificate: Secret::new(certificate.to_owned()),
                key: Secret::new(key.to_owned()),
            }),
        };
        let pem = include_str!("../../../../tests/golden/tls/untrusted-certificate.pem");
        let bundle = CaBundle::new(pem).ok();
        let all = [
            RequestTls::default(),
            identity("a", "b"),
            identity("ab", ""),
            identity("b", "a"),
            RequestTls { ca_bundle: bundle.clone(), identity: None },
            RequestTls { ca_bundle: bundle, ..identity("a", "b") },
        ];
        let prints: std::collections::BTreeSet<_> =
            all.iter().map(RequestTls::fingerprint).collect();
        assert_eq!(prints.len(), all.len());
        assert_eq!(RequestTls::default().fingerprint(), None);
        assert_eq!(identity("a", "b").fingerprint(), identity("a", "b").fingerprint());
        assert!(!format!("{:?}", identity("hush", "hush")).contains("hush"));
    }
}
