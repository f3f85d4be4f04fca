//! [`Signer`]: what a request is signed with by its sender (Signature Version 4 of AWS).
//!
//! Separate from the signatures of webhooks, which are headers like others: this one covers the request as it is
//! sent, and so the sender makes it last.

use crate::delivery::outcome::Unsendable;
use crate::subscription::secret::{AwsCredentials, Keyring};
use crate::subscription::{Destination, SignatureScope};

/// What a request is signed with, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// For whom.
    pub scope: SignatureScope,
    /// By whom.
    pub credentials: AwsCredentials,
}

impl Signer {
    /// That of requests to a destination, if they are signed so.
    ///
    /// # Errors
    /// [`Unsendable`] when the credentials were not looked up.
    pub(crate) fn of(
        destination: &Destination,
        keyring: &Keyring,
    ) -> Result<Option<Self>, Unsendable> {
        let Some(scope) = destination.signing_scope() else { return Ok(None) };
        let missing = || Unsendable::Unready("no credentials of AWS were looked up".to_owned());
        let credentials = keyring.aws().cloned().ok_or_else(missing)?;
        Ok(Some(Self { scope, credentials }))
    }
}
