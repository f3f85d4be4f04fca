//! Names of namespaces, topics and subscriptions, as documents write them.
//!
//! Separate because every family has them, and what a name may be follows from the keys of dead
//! letters, not from a family's own rules.

use super::findings::Message;
use super::reader::Cursor;
use crate::subscription::name::{NAME_RULE, is_name};

/// Names that begin with this are ours: `_unknown` and its like stand in subscriptions' places in
/// containers.
const RESERVED: char = '_';

/// Reads a name.
pub(super) fn read(cursor: &Cursor<'_>) -> Option<String> {
    checked(cursor.text()?, cursor)
}

/// A name that was found in, or made from, what stands at the cursor.
pub(super) fn checked(text: &str, cursor: &Cursor<'_>) -> Option<String> {
    if !is_name(text) {
        cursor.error(Message::new(format!("not a usable name: {NAME_RULE}")));
        return None;
    }
    if text.starts_with(RESERVED) {
        cursor.error(format!("not a usable name: what begins with {RESERVED} is reserved"));
        return None;
    }
    Some(text.to_owned())
}
