//! Creates keys for signatures in the form that `signature` parses: `whsec_` for `v1`, `whsk_` and
//! `whpk_` for `v1a`.
//!
//! This module is separate because deployed functions never create keys. It is pure: the caller
//! passes random bytes.
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::SigningKey;

use super::signature::SECRET_PREFIX;
use crate::subscription::public_key::{PRIVATE_PREFIX, PublicKey};
use crate::subscription::secret::Secret;

/// Length in bytes of a new key. A shared secret may have 24 to 64 bytes (Standard Webhooks); an
/// Ed25519 seed has 32.
pub const KEY_BYTES: usize = 32;

/// A private key, and the public key that verifies its signatures.
#[derive(Debug)]
pub struct KeyPair {
    /// The private key: `whsk_`, followed by seed and public key in base64, as the reference
    /// libraries write it.
    pub private_key: Secret,
    /// The public key: `whpk_`, followed by the key in base64.
    pub public_key: PublicKey,
}

/// Encodes random bytes as a new shared secret with the prefix `whsec_`.
#[must_use]
pub fn shared_secret(random: [u8; KEY_BYTES]) -> Secret {
    Secret::new(format!("{SECRET_PREFIX}{}", STANDARD.encode(random)))
}

/// Returns the Ed25519 key pair that is derived from this seed.
#[must_use]
pub fn key_pair(seed: [u8; KEY_BYTES]) -> KeyPair {
    let key = SigningKey::from_bytes(&seed);
    let private_key = format!("{PRIVATE_PREFIX}{}", STANDARD.encode(key.to_keypair_bytes()));
    KeyPair { private_key: Secret::new(private_key), public_key: key.verifying_key().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_its_prefix_and_the_bytes_in_base64() {
        let secret = shared_secret([0; KEY_BYTES]);
        assert_eq!(secret.expose(), "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    }

    /// The key pair of RFC 8037, appendix A.
    #[test]
    fn a_key_pair_is_that_of_rfc_8037() {
        let seed = STANDARD.decode("nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=").unwrap();
        let KeyPair { private_key, public_key } = key_pair(seed.try_into().unwrap());
        let private = "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2DXWpgBgrEKt9VL/tPJZAc6DuFy89qmIyWvAhpo9wdRGg==";
        assert_eq!(private_key.expose(), private);
        assert_eq!(public_key.to_string(), "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=");
    }
}
