//! The text for a replayed delivery whose outcome is missing, for the commands and the console.

/// The text for a delivery whose outcome was not reported, and is no longer expected.
pub(crate) const NO_END: &str = "no result was reported; check the destination and the logs, or use `replay` to send the dead letter again";
