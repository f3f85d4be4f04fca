//! [`Verifier`]: verifies signatures of Standard Webhooks 1.0, `v1` and `v1a`.
//!
//! This is the receiver's side of `signature`, for receivers on a developer's machine. A request is
//! valid if one of its signatures matches one of the keys, so that either side can rotate its keys.
//! A signature is compared only with keys of its own scheme. A wrong key and a changed body are
//! indistinguishable, so one error covers both.
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;

use super::signature::{Key, KeyError};
use crate::time::duration::{MINUTE_MS, SECOND_MS, format_ms};

/// Maximum difference between the timestamp of a request and the current time. The reference
/// libraries use the same value.
pub const TOLERANCE_MS: u64 = 5 * MINUTE_MS;

/// The keys that a receiver accepts. Its `Debug` output contains only their number.
pub struct Verifier {
    keys: Vec<Key>,
}

/// The values of a request's signature headers; `None` for a missing header.
#[derive(Debug, Clone, Copy, Default)]
pub struct SignedHeaders<'a> {
    /// The value of the header `webhook-id`.
    pub id: Option<&'a str>,
    /// The value of the header `webhook-timestamp`.
    pub timestamp: Option<&'a str>,
    /// The value of the header `webhook-signature`.
    pub signature: Option<&'a str>,
}

/// The reason why the signature of a request is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidSignature {
    /// The request lacks the header with this name.
    #[error("the header {0} is missing")]
    Missing(&'static str),
    /// The timestamp is not a number of seconds.
    #[error("webhook-timestamp is not a number of seconds since 1970")]
    InvalidTime,
    /// No signature uses the scheme of a configured key. The value is the scheme of the first key.
    #[error("webhook-signature has no entry that begins with \"{0},\"")]
    NoEntry(&'static str),
    /// No signature matches a configured key.
    #[error(
        "the signature does not match: the sender used another secret or key, or the body, \
         webhook-id or webhook-timestamp was changed"
    )]
    NoMatch,
    /// A signature matches, but the timestamp is too old: its age is this many milliseconds.
    #[error("the signature matches, but webhook-timestamp is {} old; the limit is {}", format_ms(*.0), format_ms(TOLERANCE_MS))]
    TooOld(u64),
    /// A signature matches, but the timestamp is too far in the future: this many milliseconds
    /// ahead of the current time.
    #[error("the signature matches, but webhook-timestamp is {} in the future; the limit is {}", format_ms(*.0), format_ms(TOLERANCE_MS))]
    TooNew(u64),
}

impl Verifier {
    /// Returns a verifier that accepts signatures with these keys. A shared secret is base64, with
    /// or without `whsec_`; a public key begins with `whpk_`. If a private key is given, its public
    /// key verifies the signatures.
    ///
    /// # Errors
    /// [`KeyError`] for the first text that is not a valid key. The error does not quote the text.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Result<Self, KeyError> {
        let keys = secrets.into_iter().map(Key::parse).collect::<Result<_, _>>()?;
        Ok(Self { keys })
    }

    /// Verifies the signature of a request that was received at `now_ms`.
    ///
    /// # Errors
    /// The reason why the signature is not accepted.
    pub fn check(
        &self,
        headers: SignedHeaders<'_>,
        body: &[u8],
        now_ms: u64,
    ) -> Result<(), InvalidSignature> {
        let missing = InvalidSignature::Missing;
        let signature = headers.signature.ok_or(missing("webhook-signature"))?;
        let id = headers.id.ok_or(missing("webhook-id"))?;
        let timestamp = headers.timestamp.ok_or(missing("webhook-timestamp"))?;
        let seconds: u64 = timestamp.parse().map_err(|_| InvalidSignature::InvalidTime)?;
        let entries: Vec<(&str, &str)> =
            signature.split_whitespace().filter_map(|entry| entry.split_once(',')).collect();
        let key_signatures = |key: &Key| {
            let scheme = key.scheme();
            entries.iter().filter(move |entry| entry.0 == scheme).map(|entry| entry.1)
        };
        if let Some(key) = self
            .keys
            .first()
            .filter(|_| self.keys.iter().all(|key| key_signatures(key).next().is_none()))
        {
            return Err(InvalidSignature::NoEntry(key.scheme()));
        }
        let has_signed = |key: &Key| {
            let mut signatures =
                key_signatures(key).filter_map(|signature| STANDARD.decode(signature).ok());
            signatures.any(|signature| key.has_signed(&signature, [id, timestamp], body))
        };
        if !self.keys.iter().any(has_signed) {
            return Err(InvalidSignature::NoMatch);
        }
        let at_ms = seconds.saturating_mul(SECOND_MS);
        match now_ms.checked_sub(at_ms) {
            Some(age_ms) if age_ms > TOLERANCE_MS => Err(InvalidSignature::TooOld(age_ms)),
            None if at_ms - now_ms > TOLERANCE_MS => Err(InvalidSignature::TooNew(at_ms - now_ms)),
            Some(_) | None => Ok(()),
        }
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").field("keys", &self.keys.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const OTHER: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const AT_MS: u64 = 1_614_265_330_999;

    /// The worked example of the reference libraries.
    fn signed() -> SignedHeaders<'static> {
        SignedHeaders {
            id: Some("msg_p5jXN8AQM9LWM0D4loKWxJek"),
            timestamp: Some("1614265330"),
            signature: Some("v1a,x v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        }
    }

    fn checked(
        secrets: &[&str],
        headers: SignedHeaders<'_>,
        now_ms: u64,
    ) -> Result<(), InvalidSignature> {
        Verifier::new(secrets.iter().copied()).expect("secrets").check(headers, BODY, now_ms)
    }

    #[test]
    fn a_signature_of_the_reference_libraries_by_any_of_the_secrets_is_valid() {
        assert_eq!(checked(&[SECRET], signed(), AT_MS), Ok(()));
        let plain = SECRET.trim_start_matches("whsec_");
        assert_eq!(checked(&[OTHER, plain], signed(), AT_MS + TOLERANCE_MS - 999), Ok(()));
        assert_eq!(checked(&[SECRET], signed(), AT_MS - TOLERANCE_MS), Ok(()));
    }

    /// `BY_KEY` was made by openssl with the private key of RFC 8037, appendix A.
    #[test]
    fn a_signature_by_a_private_key_is_valid_for_its_public_key_and_for_no_secret() {
        const PUBLIC: &str = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
        const OTHER_PUBLIC: &str = "whpk_PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=";
        const BY_KEY: &str = "v1,AAAA v1a,fldxM4gAKugP6nnt1hdz3sgGfZ6d99nzrMFnZOELIxbzEHoVmAb2ADpkJK7zgPePmPsle0zV9jSeGlHFG2NVAw==";
        let by_key = |signature| SignedHeaders { signature: Some(signature), ..signed() };
        assert_eq!(checked(&[SECRET, OTHER_PUBLIC, PUBLIC], by_key(BY_KEY), AT_MS), Ok(()));
        assert_eq!(checked(&[OTHER_PUBLIC], by_key(BY_KEY), AT_MS), Err(InvalidSignature::NoMatch));
        let verifier = Verifier::new([PUBLIC]).expect("a key");
        assert_eq!(verifier.check(by_key(BY_KEY), b"{}", AT_MS), Err(InvalidSignature::NoMatch));
        // This entry has the bytes of the `v1a` signature, but names the scheme `v1`.
        let as_shared = BY_KEY.replace("v1a,", "v1,");
        for keys in [&[PUBLIC][..], &[PUBLIC, OTHER_PUBLIC]] {
            let checked = checked(keys, by_key(&as_shared), AT_MS);
            assert_eq!(checked, Err(InvalidSignature::NoEntry("v1a")));
        }
        assert_eq!(
            checked(&[SECRET, PUBLIC], by_key(&as_shared), AT_MS),
            Err(InvalidSignature::NoMatch)
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let without = |change: fn(&mut SignedHeaders<'static>)| {
            let mut headers = signed();
            change(&mut headers);
            checked(&[SECRET], headers, AT_MS)
        };
        use InvalidSignature as Why;
        assert_eq!(checked(&[OTHER], signed(), AT_MS), Err(Why::NoMatch));
        let verifier = Verifier::new([SECRET]).expect("a secret");
        assert_eq!(verifier.check(signed(), b"{}", AT_MS), Err(Why::NoMatch));
        assert_eq!(without(|headers| headers.id = Some("another")), Err(Why::NoMatch));
        assert_eq!(without(|headers| headers.timestamp = Some("1614265331")), Err(Why::NoMatch));
        assert_eq!(
            without(|headers| headers.signature = None),
            Err(Why::Missing("webhook-signature"))
        );
        assert_eq!(without(|headers| headers.id = None), Err(Why::Missing("webhook-id")));
        assert_eq!(without(|headers| headers.timestamp = Some("now")), Err(Why::InvalidTime));
        assert_eq!(without(|headers| headers.signature = Some("v1a,x")), Err(Why::NoEntry("v1")));
        let late = checked(&[SECRET], signed(), AT_MS + 12 * MINUTE_MS).expect_err("too old");
        assert_eq!(late, Why::TooOld(12 * MINUTE_MS + 999));
        assert!(late.to_string().contains("PT5M"), "{late}");
        let early = checked(&[SECRET], signed(), AT_MS - 12 * MINUTE_MS - 999);
        assert_eq!(early, Err(Why::TooNew(12 * MINUTE_MS)));
    }

    #[test]
    fn a_secret_that_is_none_is_refused_and_not_shown() {
        for secret in ["not base64!", "whsec_", "", "whpk_not base64!", "whsk_aGFsZiBhIGtleQ=="] {
            let error = Verifier::new([secret]).expect_err("an error").to_string();
            assert!(!error.contains("not base64!") && !error.contains("bm90"), "{error}");
        }
        let verifier = Verifier::new([SECRET]).expect("a secret");
        assert_eq!(format!("{verifier:?}"), "Verifier { keys: 1 }");
    }
}
