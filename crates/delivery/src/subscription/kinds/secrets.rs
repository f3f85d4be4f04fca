//! Field types of secret names and public keys.

use crate::document::kind::{Distinct, Parsed};
use crate::subscription::public_key::{PUBLIC_KEY_RULE, PublicKey};
use crate::subscription::secret::{SECRET_NAME_RULE, SecretName};

/// Maximum number of secrets that sign a request, and of public keys. Usually there is one. During
/// a rotation there are several.
const SECRETS_MAX: usize = 10;

/// The field type of a secret's name.
pub const SECRET: Parsed<SecretName> =
    Parsed::new("the name of a secret", SECRET_NAME_RULE, "secret");
/// The field type of the names of secrets that sign requests.
pub const SECRETS: Distinct<Parsed<SecretName>> =
    Distinct { element: SECRET, nouns: ["secret", "secrets"], count: 1..=SECRETS_MAX };
/// The field type of the public keys with which receivers verify signatures.
pub const PUBLIC_KEYS: Distinct<Parsed<PublicKey>> = Distinct {
    element: Parsed::new("a public key", PUBLIC_KEY_RULE, "publicKey"),
    nouns: ["public key", "public keys"],
    count: 1..=SECRETS_MAX,
};
