//! A value with the position at which a document states it.

use delivery::document::reader::Cursor;

/// A value, and the position at which a document states it.
#[derive(Clone)]
pub(super) struct Located<'a, T> {
    pub(super) value: T,
    pub(super) at: Cursor<'a>,
}
