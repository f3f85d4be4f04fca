//! Signs requests by Standard Webhooks 1.0, symmetric.
//!
//! `webhook-id` is the delivery's, the same in every attempt, so that a receiver recognises a
//! redelivery; `webhook-timestamp` is the attempt's, in seconds; `webhook-signature` is one `v1,`
//! entry per secret, so that a secret can be replaced while both are valid.
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use thiserror::Error;

use super::AttemptContext;
use crate::delivery::outcome::Unsendable;
use crate::subscription::secret::SecretName;
use crate::time::duration::SECOND_MS;

/// Standard Webhooks, "signature scheme": a key has at least 192 bits.
const KEY_MIN_BYTES: usize = 24;
/// The optional prefix of a signing secret.
const PREFIX: &str = "whsec_";

/// The three headers over this id, the current time and the body.
///
/// # Errors
/// [`Unsendable`] when a secret is missing, too short or not base64.
pub(super) fn headers(
    secrets: &[SecretName],
    id: &str,
    body: &[u8],
    context: AttemptContext<'_>,
) -> Result<[(String, String); 3], Unsendable> {
    let timestamp = (context.now_ms / SECOND_MS).to_string();
    let mut signatures = Vec::with_capacity(secrets.len());
    for name in secrets {
        let unready = |problem: &dyn fmt::Display| {
            Unsendable::Unready(format!("the signing secret {name} {problem}"))
        };
        let secret = context.keyring.get(name).ok_or_else(|| unready(&"was not looked up"))?;
        let key = Key::parse(secret.expose()).map_err(|problem| unready(&problem))?;
        signatures.push(format!("v1,{}", STANDARD.encode(key.sign(id, &timestamp, body))));
    }
    let named = [
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", timestamp),
        ("webhook-signature", signatures.join(" ")),
    ];
    Ok(named.map(|(name, value)| (name.to_owned(), value)))
}

/// Why a secret is no signing secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyError {
    /// It is not base64.
    #[error("is not base64, with or without {PREFIX} before it")]
    NotBase64,
    /// It has only so many bytes.
    #[error("has {0} bytes; at least {KEY_MIN_BYTES} are required")]
    TooShort(usize),
}

/// The key of a signing secret.
pub(super) struct Key(Vec<u8>);

impl Key {
    /// Reads a secret: base64, with or without its prefix.
    pub(super) fn parse(secret: &str) -> Result<Self, KeyError> {
        let encoded = secret.trim();
        let key = STANDARD.decode(encoded.strip_prefix(PREFIX).unwrap_or(encoded));
        let key = key.map_err(|_| KeyError::NotBase64)?;
        if key.len() < KEY_MIN_BYTES { Err(KeyError::TooShort(key.len())) } else { Ok(Self(key)) }
    }

    fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> [u8; 32] {
        self.signed_text(id, timestamp, body).finalize().into_bytes().into()
    }

    /// Whether this is its signature, compared in constant time.
    pub(super) fn has_signed(
        &self,
        signature: &[u8],
        id: &str,
        timestamp: &str,
        body: &[u8],
    ) -> bool {
        self.signed_text(id, timestamp, body).verify_slice(signature).is_ok()
    }

    fn signed_text(&self, id: &str, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::new_from_slice(&self.0).expect("HMAC takes keys of every length");
        // The signed text of Standard Webhooks: id, timestamp and body, with points between.
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscription::secret::{Keyring, Secret};

    fn keyring(secrets: &[(&str, &str)]) -> Keyring {
        let named = |(name, value): &(&str, &str)| {
            (name.parse().unwrap(), Secret::new((*value).to_owned()))
        };
        secrets.iter().map(named).collect()
    }

    /// The worked example of the reference libraries.
    #[test]
    fn the_signature_is_that_of_the_reference_libraries() {
        let keyring = keyring(&[
            ("env:A", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
            ("env:B", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"),
        ]);
        let context =
            AttemptContext { keyring: &keyring, now_ms: 1_614_265_330_999, timeout_ms: 1 };
        let names = ["env:A".parse().unwrap(), "env:B".parse().unwrap()];
        let [id, timestamp, signature] =
            headers(&names, "msg_p5jXN8AQM9LWM0D4loKWxJek", br#"{"test": 2432232314}"#, context)
                .unwrap();
        assert_eq!(id.1, "msg_p5jXN8AQM9LWM0D4loKWxJek");
        assert_eq!(timestamp.1, "1614265330");
        let one = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signature, ("webhook-signature".to_owned(), format!("{one} {one}")));
    }

    #[test]
    fn a_secret_that_is_none_is_named_and_not_shown() {
        let keyring = keyring(&[("env:A", "not base64!"), ("env:B", "whsec_")]);
        let context = AttemptContext { keyring: &keyring, now_ms: 0, timeout_ms: 1 };
        for (name, says) in [
            ("env:A", "env:A is not base64"),
            ("env:B", "env:B has 0 bytes"),
            ("ssm:b", "ssm:b was not looked up"),
        ] {
            let problem =
                headers(&[name.parse().unwrap()], "i", b"", context).unwrap_err().to_string();
            assert!(problem.contains(says) && !problem.contains("not base64!"), "{problem}");
        }
    }
}
