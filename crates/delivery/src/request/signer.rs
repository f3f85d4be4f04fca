//! [`Signer`]: the scope and credentials of an AWS signature (Signature Version 4).
//!
//! This module is separate from webhook signatures, which are ordinary headers. An AWS signature
//! covers the request as it is sent, so the sender creates the signature last.

use crate::delivery::outcome::Unsendable;
use crate::subscription::secret::{AwsCredentials, Keyring};
use crate::subscription::{Destination, SignatureScope};

/// The scope and credentials with which a request is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// The service and region for which the signature is valid.
    pub scope: SignatureScope,
    /// The AWS credentials that sign the request.
    pub credentials: AwsCredentials,
}

impl Signer {
    /// Returns the signer for requests to a destination; `None` if its requests have no AWS
    /// signature.
    ///
    /// # Errors
    /// [`Unsendable`] if the AWS credentials were not loaded.
    pub(crate) fn for_destination(
        destination: &Destination,
        keyring: &Keyring,
    ) -> Result<Option<Self>, Unsendable> {
        let Some(scope) = destination.signing_scope() else { return Ok(None) };
        let missing = || Unsendable::Unready("no AWS credentials were loaded".to_owned());
        let credentials = keyring.aws().cloned().ok_or_else(missing)?;
        Ok(Some(Self { scope, credentials }))
    }
}
