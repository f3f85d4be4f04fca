//! The parts of a deployment that affect how files are read: its mappings and its secret policy.
//!
//! Separate because these settings have no position in the files.

use std::collections::BTreeMap;

use delivery::subscription::secret_policy::SecretPolicy;

/// Settings of a deployment that apply to the files but are not in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deployment {
    /// Addresses, keyed by the reference that names them, as in a [`Reading`](super::Reading).
    /// Mappings in the files take precedence.
    pub destinations: BTreeMap<String, String>,
    /// The deployment's policy for the hosts that may receive secrets. It applies in addition to
    /// the policies in the files.
    pub secrets: SecretPolicy,
}
