//! Reads names of namespaces, topics and subscriptions, as documents state them.
//!
//! This module is separate because the same rule applies in every dialect. The rule ensures that
//! every name can be a part of a dead letter's key.

use serde_json::{Value as Json, json};

use crate::document::findings::Message;
use crate::document::kind::{Checked, Kind};
use crate::document::reader::Cursor;
use crate::subscription::name::{NAME_RULE, RESERVED, TopicName, is_name};

/// Reads the name of a namespace, a topic or a subscription.
pub fn read(cursor: &Cursor<'_>) -> Option<String> {
    checked(cursor.text()?, cursor)
}

/// Checks a name that was derived from the value at the cursor. Reports an invalid name and returns
/// `None`.
pub fn checked(text: &str, cursor: &Cursor<'_>) -> Option<String> {
    if !is_name(text) {
        return cursor.refuse(Message::new(format!("not a valid name: {NAME_RULE}")));
    }
    if text.starts_with(RESERVED) {
        return cursor
            .refuse(format!("not a valid name: names that begin with {RESERVED} are reserved"));
    }
    Some(text.to_owned())
}

/// Reads the full name of a topic, `namespace/topic`.
pub fn topic(cursor: &Cursor<'_>) -> Option<TopicName> {
    let (namespace, topic) = cursor.text()?.split_once('/').or_else(|| {
        cursor.refuse(Message::new("expected namespace/topic").help("topic: my-namespace/my-topic"))
    })?;
    Some(TopicName { namespace: checked(namespace, cursor)?, topic: checked(topic, cursor)? })
}

/// The field type of the name of a namespace, a topic or a subscription.
pub struct Name;

impl Kind for Name {
    type Value = String;

    fn read(&self, at: &Cursor<'_>) -> Option<String> {
        read(at)
    }

    fn write(&self, value: &String) -> Json {
        json!(value)
    }

    fn schema(&self) -> Json {
        json!({ "$ref": "#/$defs/name" })
    }
}

/// The field type of the full name of a topic, `namespace/topic`.
pub struct FullName;

impl Kind for FullName {
    type Value = TopicName;

    fn read(&self, at: &Cursor<'_>) -> Option<TopicName> {
        topic(at)
    }

    fn write(&self, value: &TopicName) -> Json {
        json!(value.to_string())
    }

    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": "^[^/]+/[^/]+$" })
    }
}

/// The field type of DNS names (RFC 1035, 2.3.4).
pub const DNS_NAME: Checked =
    Checked { max_chars: DNS_NAME_MAX_BYTES, check: check_dns_name, schema: dns_schema };
/// Maximum length of a DNS name in bytes (RFC 1035, 2.3.4).
const DNS_NAME_MAX_BYTES: usize = 253;
/// Maximum length in bytes of a label, the text between two dots of a DNS name (RFC 1035, 2.3.4).
const LABEL_MAX_BYTES: usize = 63;

fn check_dns_name(text: &str) -> Result<(), String> {
    if text.len() <= DNS_NAME_MAX_BYTES && text.split('.').all(is_label) {
        return Ok(());
    }
    Err("not a DNS name, such as events.example.com".to_owned())
}

fn is_label(label: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (1..=LABEL_MAX_BYTES).contains(&label.len())
        && label.chars().all(allowed)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn dns_schema() -> Json {
    let label = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
    json!({ "pattern": format!("^{label}(\\.{label})*$") })
}
