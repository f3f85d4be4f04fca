//! A cursor that reads typed values from a document and reports invalid ones.
//!
//! Separate so that the families of dialects contain only their fields and what they mean. A
//! reading method returns the value, or reports and returns `None`; reading always continues. A
//! finding has the position of the value, of the key for an unknown field, of the parent for a
//! missing one.

mod cursor;
mod fields;
mod template_text;

pub use cursor::{Cursor, Entry, read_each};
pub use fields::Fields;
