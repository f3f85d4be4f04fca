//! Writes a JSON object member by member, and escapes what queues refuse.
//!
//! Separate because events are never parsed and serialized again: a publisher's text is copied into
//! a larger object unchanged, beside members of our own.

use std::fmt::Write as _;

use serde::Serialize;

/// A JSON object being written.
#[derive(Debug, Default)]
pub(crate) struct Object(String);

impl Object {
    /// An object that begins with the members of this one, to the byte. `None` where it is not an
    /// object.
    pub(crate) fn beginning_with(object: &str) -> Option<Self> {
        let members = object.trim().strip_prefix('{')?.strip_suffix('}')?;
        let begun = if members.trim().is_empty() { String::new() } else { format!("{{{members}") };
        Some(Self(begun))
    }

    /// A member whose value is JSON already; writes nothing for `None`.
    pub(crate) fn raw(&mut self, name: &str, value: Option<&str>) {
        let Some(value) = value else { return };
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        write!(self.0, "{}:{value}", quoted(name)).expect("a String takes everything");
    }

    /// A member that is a string.
    pub(crate) fn text(&mut self, name: &str, value: &str) {
        self.put(name, &value);
    }

    /// A member of any value.
    pub(crate) fn put(&mut self, name: &str, value: &impl Serialize) {
        let value = serde_json::to_string(value)
            .expect("strings, numbers and lists of them are always JSON");
        self.raw(name, Some(&value));
    }

    /// A member of any value; writes nothing for `None`.
    pub(crate) fn optional(&mut self, name: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.put(name, &value);
        }
    }

    /// The whole object.
    pub(crate) fn finish(mut self) -> String {
        self.0.push_str(if self.0.is_empty() { "{}" } else { "}" });
        self.0
    }
}

/// A JSON list of elements that are JSON already; there has to be at least one.
pub(crate) fn array(elements: &[impl AsRef<str>]) -> String {
    let bytes = elements.iter().map(|element| element.as_ref().len() + 1).sum::<usize>();
    let mut array = String::with_capacity(bytes + 1);
    for (index, element) in elements.iter().enumerate() {
        array.push(if index == 0 { '[' } else { ',' });
        array.push_str(element.as_ref());
    }
    array.push(']');
    array
}

/// A text without the mark of byte order that some programs write before UTF-8 (RFC 8259, 8.1: a reader may skip it).
#[must_use]
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// A text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is always JSON")
}

/// Whether SQS accepts this character in a message: those of XML 1.0. It refuses a message with any
/// other.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
#[must_use]
pub const fn is_queue_character(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Escapes the two characters that valid JSON may hold and no queue accepts; they can only be in
/// strings.
pub(crate) fn escaped(json: &str) -> String {
    json.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff")
}
