//! The end of a text: its own, or the place where it was cut.
//!
//! Separate because whoever keeps a text tells, and the search for a value depends on it.

/// Whether a text goes on after its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It is all there is.
    Whole,
    /// The rest was cut off.
    Cut,
}
