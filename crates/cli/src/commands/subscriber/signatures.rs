//! Reads the secrets and public keys with which the sample subscriber verifies signatures.

use delivery::request::verification::{InvalidSignature, SignedHeaders, Verifier};
use local::subscriber::Received;

use crate::commands::named_secret;
use crate::terminal::usage::usage_error;

/// The verifier of signatures; `None` if no secrets or keys are given.
#[derive(Debug)]
pub(super) struct Signatures(Option<Verifier>);

/// The result of verifying a signature.
pub(super) type Checked = Result<(), InvalidSignature>;

impl Signatures {
    /// Reads the secrets and keys with these names.
    ///
    /// # Errors
    /// A usage error if one of them cannot be read, or is neither a signing secret nor a public
    /// key. The message never contains the secret.
    pub(super) fn read(names: &[String]) -> anyhow::Result<Self> {
        if names.is_empty() {
            return Ok(Self(None));
        }
        let secrets = names.iter().map(|name| named_secret::read(name, "signing secret"));
        let secrets = secrets.collect::<anyhow::Result<Vec<_>>>()?;
        for (name, secret) in names.iter().zip(&secrets) {
            Verifier::new([secret.as_str()])
                .map_err(|problem| usage_error(format!("the signing secret {name} {problem}")))?;
        }
        let verifier = Verifier::new(secrets.iter().map(String::as_str));
        Ok(Self(Some(verifier.map_err(|problem| usage_error(problem.to_string()))?)))
    }

    /// Verifies the signature of a request. Returns `None` without a verifier, or for a handshake
    /// request, which is never signed.
    pub(super) fn check(&self, received: &Received) -> Option<Checked> {
        let verifier = self.0.as_ref().filter(|_| !received.is_handshake())?;
        let header = |name| received.headers.get(name).and_then(|value| value.to_str().ok());
        let headers = SignedHeaders {
            id: header("webhook-id"),
            timestamp: header("webhook-timestamp"),
            signature: header("webhook-signature"),
        };
        Some(verifier.check(headers, &received.body, received.at_ms))
    }
}
