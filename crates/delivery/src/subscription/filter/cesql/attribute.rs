//! The attributes of an event that an expression can name.
//!
//! Separate because whoever evaluates or explains an expression has to look at the same ones.

use crate::event::Members;

/// The member of an event that is not an attribute, although its name could be one.
const DATA: &str = "data";

/// The attribute of this name, as the publisher wrote it.
pub(super) fn raw_attribute<'a>(members: &Members<'a>, name: &str) -> Option<&'a str> {
    members.get(name).filter(|_| name != DATA)
}
