//! The circumstances of one attempt: the secrets of the moment, the time, and how much of it is left.
//!
//! Separate because the signature of a request needs it too.

use crate::subscription::secret::Keyring;

/// What differs from one attempt to the next.
#[derive(Debug, Clone, Copy)]
pub struct AttemptContext<'a> {
    /// The secrets that the subscription names.
    pub keyring: &'a Keyring,
    /// Now.
    pub now_ms: u64,
    /// The response timeout, shortened to what the invocation has left.
    pub timeout_ms: u64,
}
