//! The parts of a deployment that affect the reading of files: its mappings and its secret policy.
//!
//! Separate because they have no position in these files.

use std::collections::BTreeMap;

use delivery::subscription::secret_policy::SecretPolicy;

/// Settings that apply to a set of files without being in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deployment {
    /// Addresses by reference, as in a [`Reading`](super::Reading). Those of the files take
    /// precedence.
    pub destinations: BTreeMap<String, String>,
    /// The hosts that may receive secrets, together with the policies of the files.
    pub secrets: SecretPolicy,
}
