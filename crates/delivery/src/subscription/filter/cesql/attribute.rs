//! Reads the attributes of an event that expressions can name.
//!
//! This module is separate so that evaluation and explanation read the same attributes.

use crate::event::Members;

/// Name of the member with the payload. It is not an attribute, although its name would be valid.
const DATA: &str = "data";

/// Returns the raw JSON of an attribute, as the publisher wrote it, even if it is `null`. Returns
/// `None` if the event has no such attribute.
pub(super) fn raw_attribute<'a>(members: &Members<'a>, name: &str) -> Option<&'a str> {
    members.get(name).filter(|_| name != DATA)
}
