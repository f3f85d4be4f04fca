//! The secrets and public keys that the sample subscriber checks signatures with.

use delivery::request::verification::{InvalidSignature, SignedHeaders, Verifier};
use local::subscriber::Received;

use crate::commands::named_secret;
use crate::terminal::usage::usage_error;

/// What signatures are checked with, if anything.
#[derive(Debug)]
pub(super) struct Signatures(Option<Verifier>);

/// What a check found.
pub(super) type Checked = Result<(), InvalidSignature>;

impl Signatures {
    /// Reads the secrets of these names.
    ///
    /// # Errors
    /// A usage error when one cannot be read or is no signing secret; never quotes it.
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

    /// Checks a request; `None` if nothing is checked, or it is a handshake, which nobody signs.
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
