//! [`Ending`]: the end of a text, complete or cut.
//!
//! This module is separate because callers pass this value to the search, and the search in
//! [`super::searcher`] depends on it.

/// The end of a text: complete, or cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The text is complete.
    Whole,
    /// The rest of the text was cut off.
    Cut,
}
