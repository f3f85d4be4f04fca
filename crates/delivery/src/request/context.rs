//! [`AttemptContext`]: the secrets, the time and the timeout of one attempt.
//!
//! This module is separate because both requests and signatures need these values.

use crate::subscription::secret::Keyring;

/// The values that differ between attempts of a delivery.
#[derive(Debug, Clone, Copy)]
pub struct AttemptContext<'a> {
    /// The loaded secrets, which include those that the subscription names.
    pub keyring: &'a Keyring,
    /// The current time in milliseconds since 1970.
    pub now_ms: u64,
    /// The response timeout in milliseconds, limited to the remaining time of the invocation.
    pub timeout_ms: u64,
}
