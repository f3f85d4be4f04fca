//! Names of secrets.

use crate::document::kind::{Distinct, Parsed};
use crate::subscription::public_key::{PUBLIC_KEY_RULE, PublicKey};
use crate::subscription::secret::{SECRET_NAME_RULE, SecretName};

/// The most secrets that sign a request, and the most public keys: usually one, several while one is rotated.
const SECRETS_MAX: usize = 10;

/// The name of a secret.
pub const SECRET: Parsed<SecretName> =
    Parsed::new("the name of a secret", SECRET_NAME_RULE, "secret");
/// The names of secrets that sign requests.
pub const SECRETS: Distinct<Parsed<SecretName>> =
    Distinct { of: SECRET, what: ["secret", "secrets"], count: 1..=SECRETS_MAX };
/// Public keys by which receivers verify signatures.
pub const PUBLIC_KEYS: Distinct<Parsed<PublicKey>> = Distinct {
    of: Parsed::new("a public key", PUBLIC_KEY_RULE, "publicKey"),
    what: ["public key", "public keys"],
    count: 1..=SECRETS_MAX,
};
