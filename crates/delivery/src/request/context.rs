//! [`AttemptContext`]: the circumstances of one attempt: secrets, time, and timeout.
//!
//! This module is separate because both requests and signatures need it.

use crate::subscription::secret::Keyring;

/// The values that differ between attempts.
#[derive(Debug, Clone, Copy)]
pub struct AttemptContext<'a> {
    /// The secrets that the subscription names.
    pub keyring: &'a Keyring,
    /// The current time.
    pub now_ms: u64,
    /// The response timeout, reduced to the remaining time of the invocation.
    pub timeout_ms: u64,
}
