//! The text about a missing end of a replay, for the commands and the console.

/// The end was not reported, and is no longer expected.
pub(crate) const NO_END: &str =
    "no end was reported; look at the destination and the logs; `replay` sends it again";
