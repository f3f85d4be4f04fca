//! What a deployment has beside the files that are read: mappings and a policy that its catalogue holds.
//!
//! Separate because none of it has a position in these files.

use std::collections::BTreeMap;

use delivery::subscription::secret_policy::SecretPolicy;

/// What holds for a set of files without being in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deployment {
    /// Addresses by reference, as a [`Reading`](super::Reading) has them. Those of the files come first.
    pub destinations: BTreeMap<String, String>,
    /// Where secrets may be sent, together with what the files say.
    pub secrets: SecretPolicy,
}
