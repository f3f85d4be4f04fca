//! Signs requests with Standard Webhooks 1.0: `v1` with a shared secret, `v1a` with a private key.
//!
//! - `webhook-id` is the id of the delivery. It is the same in every attempt, so that a receiver
//!   detects a redelivery.
//! - `webhook-timestamp` is the time of the attempt, in seconds.
//! - `webhook-signature` has one signature for each secret, so that a secret can be rotated while
//!   the old and the new one are valid.
//!
//! The prefix of a secret determines its type.
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use thiserror::Error;

use super::context::AttemptContext;
use crate::delivery::outcome::Unsendable;
use crate::subscription::public_key::{PRIVATE_PREFIX, PUBLIC_KEY_RULE, PUBLIC_PREFIX, PublicKey};
use crate::subscription::secret::SecretName;
use crate::time::duration::SECOND_MS;

/// Minimum length of a shared secret: 192 bits (Standard Webhooks, "signature scheme").
const KEY_MIN_BYTES: usize = 24;
/// Optional prefix of a shared secret.
pub(super) const SECRET_PREFIX: &str = "whsec_";

/// Returns the headers `webhook-id`, `webhook-timestamp` and `webhook-signature` of a request with
/// this id and body. The timestamp is the current time.
///
/// # Errors
/// [`Unsendable`] if a secret is missing or is not a valid signing key.
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
        let secret = context.keyring.get(name).ok_or_else(|| unready(&"was not loaded"))?;
        let key = Key::parse(secret.expose()).map_err(|problem| unready(&problem))?;
        let signature =
            key.sign([id, &timestamp], body).ok_or_else(|| unready(&KeyError::Public))?;
        signatures.push(format!("{},{}", key.scheme(), STANDARD.encode(signature)));
    }
    let named = [
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", timestamp),
        ("webhook-signature", signatures.join(" ")),
    ];
    Ok(named.map(|(name, value)| (name.to_owned(), value)))
}

/// The reason why a secret is not a valid signing or verification key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyError {
    /// A shared secret is not valid base64 after its optional prefix `whsec_`.
    #[error("is not base64; the prefix {SECRET_PREFIX} is optional")]
    NotBase64,
    /// A shared secret is shorter than `KEY_MIN_BYTES`. The value is its length in bytes.
    #[error("has {0} bytes; at least {KEY_MIN_BYTES} are required")]
    TooShort(usize),
    /// The text has the prefix of a private key, but its content is invalid.
    #[error(
        "is not {PRIVATE_PREFIX} followed by the base64 of a 32-byte Ed25519 key, or of that key \
         and its public key"
    )]
    NotPrivate,
    /// The text has the prefix of a public key, but its content is invalid.
    #[error("is not a public key: {PUBLIC_KEY_RULE}")]
    NotPublic,
    /// The text is a public key, which cannot sign.
    #[error(
        "is a public key ({PUBLIC_PREFIX}), but signing requires a private key ({PRIVATE_PREFIX})"
    )]
    Public,
}

/// A key that signs requests or verifies signatures.
pub(super) enum Key {
    /// A secret that sender and receiver share (`whsec_`).
    Shared(Vec<u8>),
    /// The private key of the sender (`whsk_`).
    Private(Box<SigningKey>),
    /// The public key for the receiver (`whpk_`).
    Public(PublicKey),
}

impl Key {
    /// Parses a key. The prefix determines its type; a text without a prefix is a shared secret.
    pub(super) fn parse(secret: &str) -> Result<Self, KeyError> {
        let secret = secret.trim();
        if let Some(encoded) = secret.strip_prefix(PRIVATE_PREFIX) {
            return private_key(encoded)
                .map(|key| Self::Private(Box::new(key)))
                .ok_or(KeyError::NotPrivate);
        }
        if secret.starts_with(PUBLIC_PREFIX) {
            return secret.parse().map(Self::Public).map_err(|_| KeyError::NotPublic);
        }
        let key = STANDARD.decode(secret.strip_prefix(SECRET_PREFIX).unwrap_or(secret));
        let key = key.map_err(|_| KeyError::NotBase64)?;
        if key.len() < KEY_MIN_BYTES {
            Err(KeyError::TooShort(key.len()))
        } else {
            Ok(Self::Shared(key))
        }
    }

    /// Returns the scheme of the key's signatures in `webhook-signature`: `v1` or `v1a`.
    pub(super) const fn scheme(&self) -> &'static str {
        match self {
            Self::Shared(_) => "v1",
            Self::Private(_) | Self::Public(_) => "v1a",
        }
    }

    /// Returns the signature of a request; `None` for a public key. `head` contains the id and the
    /// timestamp.
    fn sign(&self, head: [&str; 2], body: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Shared(key) => Some(mac(key, head, body).finalize().into_bytes().to_vec()),
            Self::Private(key) => Some(key.sign(&signed(head, body).concat()).to_bytes().to_vec()),
            Self::Public(_) => None,
        }
    }

    /// Verifies a signature. Signatures with a shared secret are compared in constant time.
    pub(super) fn has_signed(&self, signature: &[u8], head: [&str; 2], body: &[u8]) -> bool {
        let by_public = |key: PublicKey| key.has_signed(&signed(head, body).concat(), signature);
        match self {
            Self::Shared(key) => mac(key, head, body).verify_slice(signature).is_ok(),
            Self::Private(key) => by_public(key.verifying_key().into()),
            Self::Public(key) => by_public(*key),
        }
    }
}

/// Parses an Ed25519 private key from base64: a seed, or a seed followed by its public key, as in
/// libsodium and Standard Webhooks.
fn private_key(encoded: &str) -> Option<SigningKey> {
    let bytes = STANDARD.decode(encoded).ok()?;
    match <&[u8; 64]>::try_from(&bytes[..]) {
        Ok(pair) => SigningKey::from_keypair_bytes(pair).ok(),
        Err(_) => Some(SigningKey::from_bytes(bytes[..].try_into().ok()?)),
    }
}

/// Returns the parts of the signed text of Standard Webhooks: id, timestamp and body, separated by
/// periods.
fn signed<'a>([id, timestamp]: [&'a str; 2], body: &'a [u8]) -> [&'a [u8]; 5] {
    [id.as_bytes(), b".", timestamp.as_bytes(), b".", body]
}

fn mac(key: &[u8], head: [&str; 2], body: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::new_from_slice(key).expect("HMAC takes keys of every length");
    signed(head, body).iter().for_each(|part| mac.update(part));
    mac
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
        let entry = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signature, ("webhook-signature".to_owned(), format!("{entry} {entry}")));
    }

    /// The key pair of RFC 8037, appendix A, as a seed and as a pair. The expected signature is
    /// from openssl.
    #[test]
    fn a_private_key_signs_beside_a_secret_and_its_signature_is_that_of_openssl() {
        const SEED: &str = "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
        const PAIR: &str = "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2DXWpgBgrEKt9VL/tPJZAc6DuFy89qmIyWvAhpo9wdRGg==";
        let keyring = keyring(&[
            ("env:A", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
            ("env:B", SEED),
            ("env:C", PAIR),
        ]);
        let context =
            AttemptContext { keyring: &keyring, now_ms: 1_614_265_330_999, timeout_ms: 1 };
        let names = ["env:A", "env:B", "env:C"].map(|name| name.parse().unwrap());
        let [_, _, signature] =
            headers(&names, "msg_p5jXN8AQM9LWM0D4loKWxJek", br#"{"test": 2432232314}"#, context)
                .unwrap();
        let v1 = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        let v1a = "v1a,fldxM4gAKugP6nnt1hdz3sgGfZ6d99nzrMFnZOELIxbzEHoVmAb2ADpkJK7zgPePmPsle0zV9jSeGlHFG2NVAw==";
        assert_eq!(signature.1, format!("{v1} {v1a} {v1a}"));
    }

    #[test]
    fn a_secret_that_is_none_is_named_and_not_shown() {
        let keyring = keyring(&[
            ("env:A", "not base64!"),
            ("env:B", "whsec_"),
            ("env:C", "whsk_aGFsZiBhIGtleQ=="),
            // This is the private key of RFC 8037 with the public key of a different pair.
            (
                "env:D",
                "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2D1WpgBgrEKt9VL/tPJZAc6DuFy89qmIyWvAhpo9wdRGg==",
            ),
            ("env:E", "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="),
        ]);
        let context = AttemptContext { keyring: &keyring, now_ms: 0, timeout_ms: 1 };
        for (name, says) in [
            ("env:A", "env:A is not base64"),
            ("env:B", "env:B has 0 bytes"),
            ("env:C", "env:C is not whsk_ followed by the base64 of a 32-byte Ed25519 key"),
            ("env:D", "env:D is not whsk_ followed by"),
            ("env:E", "env:E is a public key (whpk_), but signing requires a private key (whsk_)"),
            ("ssm:b", "ssm:b was not loaded"),
        ] {
            let problem =
                headers(&[name.parse().unwrap()], "i", b"", context).unwrap_err().to_string();
            assert!(problem.contains(says) && !problem.contains("not base64!"), "{problem}");
        }
    }
}
