//! [`Ending`]: states whether a text is complete or was cut.
//!
//! This module is separate because callers pass this value to the search, and the search in
//! [`super::searcher`] depends on it.

/// States whether a text is complete, or its end was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The text is complete.
    Whole,
    /// The end of the text was cut off.
    Cut,
}
