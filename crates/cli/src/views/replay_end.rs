//! What people are told of a replay's end, by the commands and on the page.

/// Of one that was not reported, and is not to be expected any more.
pub(crate) const NO_END: &str =
    "no end was reported; look at the destination and the logs; `replay` sends it again";
