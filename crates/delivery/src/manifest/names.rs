//! Names of namespaces, topics and subscriptions, as documents write them.
//!
//! Separate because every family has them, and the rule follows from the keys of dead letters, not
//! from a family.

use super::findings::Message;
use super::reader::Cursor;
use crate::subscription::name::{NAME_RULE, RESERVED, TopicName, is_name};

/// Reads a name.
pub(super) fn read(cursor: &Cursor<'_>) -> Option<String> {
    checked(cursor.text()?, cursor)
}

/// Checks a name that was found in, or made from, the value at the cursor.
pub(super) fn checked(text: &str, cursor: &Cursor<'_>) -> Option<String> {
    if !is_name(text) {
        return cursor.refuse(Message::new(format!("not a usable name: {NAME_RULE}")));
    }
    if text.starts_with(RESERVED) {
        return cursor
            .refuse(format!("not a usable name: names that begin with {RESERVED} are reserved"));
    }
    Some(text.to_owned())
}

/// Reads the full name of a topic.
pub(super) fn topic(cursor: &Cursor<'_>) -> Option<TopicName> {
    let (namespace, topic) = cursor.text()?.split_once('/').or_else(|| {
        cursor
            .refuse(Message::new("a topic is namespace/topic").help("topic: my-namespace/my-topic"))
    })?;
    Some(TopicName { namespace: checked(namespace, cursor)?, topic: checked(topic, cursor)? })
}
