//! [`Cursor`]: reads typed values from a document, and reports invalid ones.
//!
//! This module is separate so that the modules of the dialects contain only their fields and
//! meanings. A method returns the value, or reports a finding and returns `None`; reading then
//! continues. A finding has the position of the value. A finding about an unknown field has the
//! position of the key. A finding about a missing field has the position of the mapping that lacks
//! the field.

mod cursor;
mod fields;
mod template_text;

pub use cursor::{Cursor, Entry, read_each};
pub use fields::Fields;
