//! [`Cursor`]: reads typed values from a document, and reports invalid ones.
//!
//! This module is separate so that the modules of the dialects contain only their fields and
//! meanings. A method returns the value, or reports a finding and returns `None`; reading then
//! continues. A finding has the position of the value. For an unknown field it has the position of
//! the key, and for a missing field that of the parent.

mod cursor;
mod fields;
mod template_text;

pub use cursor::{Cursor, Entry, read_each};
pub use fields::Fields;
