//! Public keys of asymmetric signatures (Standard Webhooks, `v1a`), and the key sets in which
//! receivers find them.
//!
//! This module is separate from secrets because documents contain the public keys of a
//! subscription. So publishing them needs no access to a secret. No code here checks that a public
//! key matches a signing secret; a mismatch is detected only when a receiver verifies a signature.
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signature, VerifyingKey};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::subscription::name::{SubscriptionName, segment};

/// Prefix of the text of a public key.
pub const PUBLIC_PREFIX: &str = "whpk_";
/// Prefix of the text of a private key.
pub const PRIVATE_PREFIX: &str = "whsk_";
/// The rule for public keys, for error messages. No message quotes a key, because it may be a
/// private key by mistake.
pub const PUBLIC_KEY_RULE: &str = "a public key is whpk_ followed by the base64 of a 32-byte Ed25519 key; keep the private key (whsk_) in a store of secrets";

/// An Ed25519 public key, which verifies signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Returns true if the signature of the text was created with the matching private key.
    #[must_use]
    pub fn has_signed(&self, text: &[u8], signature: &[u8]) -> bool {
        let signature = Signature::from_slice(signature);
        signature.is_ok_and(|signature| self.0.verify_strict(text, &signature).is_ok())
    }

    /// Returns the value of the member `x` of the JSON Web Key (RFC 8037, 2).
    fn coordinate(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.as_bytes())
    }

    /// Returns the value of the member `kid`: the thumbprint of the key (RFC 7638, 3; RFC 8037,
    /// appendix A.3).
    fn id(&self) -> String {
        let members = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, self.coordinate());
        URL_SAFE_NO_PAD.encode(Sha256::digest(members))
    }
}

impl From<VerifyingKey> for PublicKey {
    fn from(key: VerifyingKey) -> Self {
        Self(key)
    }
}

impl FromStr for PublicKey {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = text.strip_prefix(PUBLIC_PREFIX).and_then(|text| STANDARD.decode(text).ok());
        let bytes: Option<[u8; 32]> = bytes.and_then(|bytes| bytes.try_into().ok());
        let key = bytes.and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok());
        // Weak keys are refused: with such a key, one signature is valid for many texts.
        key.filter(|key| !key.is_weak()).map(Self).ok_or(PUBLIC_KEY_RULE)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PUBLIC_PREFIX}{}", STANDARD.encode(self.0.as_bytes()))
    }
}

/// Returns the object key of a subscription's key set in the bucket of public keys. Each
/// subscription has a key set of its own. Otherwise a request that was signed for one receiver
/// would be valid for another.
#[must_use]
pub fn key_set_path(name: &SubscriptionName) -> String {
    let SubscriptionName { topic, name } = name;
    let [namespace, topic, name] = [&topic.namespace, &topic.topic, name].map(|part| segment(part));
    format!("{namespace}/{topic}/{name}.json")
}

/// Returns these keys as a JSON Web Key Set (RFC 7517, 5; RFC 8037).
#[must_use]
pub fn key_set(keys: &[PublicKey]) -> String {
    let keys = keys.iter().map(|key| {
        json!({
            "kty": "OKP", "crv": "Ed25519", "x": key.coordinate(), "kid": key.id(), "use": "sig", "alg": "EdDSA"
        })
    });
    json!({ "keys": keys.collect::<Vec<_>>() }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of RFC 8037, appendix A, in the form of Standard Webhooks.
    const KEY: &str = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

    #[test]
    fn a_key_is_read_back_from_what_it_prints_and_is_that_of_rfc_8037_in_a_key_set() {
        let key: PublicKey = KEY.parse().unwrap();
        assert_eq!(key.to_string(), KEY);
        assert_eq!(
            key_set(&[key]),
            r#"{"keys":[{"alg":"EdDSA","crv":"Ed25519","kid":"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k","kty":"OKP","use":"sig","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#
        );
        assert_eq!(key_set(&[]), r#"{"keys":[]}"#);
    }

    #[test]
    fn what_is_no_public_key_is_refused_and_not_quoted() {
        for text in [
            "",
            "whpk_",
            "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
            "whsk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
            "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHUQ==",
            // The first key below is not a point of the curve. The second key is a point of small
            // order.
            "whpk_AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            "whpk_AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        ] {
            assert_eq!(text.parse::<PublicKey>(), Err(PUBLIC_KEY_RULE), "{text}");
        }
    }

    #[test]
    fn each_subscription_has_a_key_set_of_its_own() {
        let path = |name: &str| key_set_path(&name.parse().unwrap());
        assert_eq!(path("shop/orders/billing"), "shop/orders/billing.json");
        assert_ne!(path("shop/orders/a b"), path("shop/orders/a+b"));
    }
}
