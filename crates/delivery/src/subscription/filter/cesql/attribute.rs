//! The attributes of an event that expressions can name.
//!
//! This module is separate so that evaluation and explanation read the same attributes.

use crate::event::Members;

/// The member that is not an attribute, although its name is a valid attribute name.
const DATA: &str = "data";

/// Returns an attribute as JSON text, as the publisher wrote it.
pub(super) fn raw_attribute<'a>(members: &Members<'a>, name: &str) -> Option<&'a str> {
    members.get(name).filter(|_| name != DATA)
}
