//! A value and where a document states it.

use delivery::document::reader::Cursor;

/// A value and where a document states it.
#[derive(Clone)]
pub(super) struct Located<'a, T> {
    /// The value.
    pub(super) value: T,
    /// Its position.
    pub(super) at: Cursor<'a>,
}
