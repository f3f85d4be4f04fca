//! Writes JSON objects member by member, and escapes characters that queues refuse.
//!
//! This module is separate because events are never parsed and serialized again: a publisher's text
//! is copied unchanged into a larger object, beside our own members.

use std::fmt::Write as _;

use serde::Serialize;

/// A JSON object to which members are appended.
#[derive(Debug, Default)]
pub(crate) struct Object(String);

impl Object {
    /// Begins an object with the members of `object`, byte for byte. Returns `None` if the text is
    /// not an object.
    pub(crate) fn beginning_with(object: &str) -> Option<Self> {
        let members = object.trim().strip_prefix('{')?.strip_suffix('}')?;
        let begun = if members.trim().is_empty() { String::new() } else { format!("{{{members}") };
        Some(Self(begun))
    }

    /// Adds a member whose value is already JSON. Adds nothing if the value is `None`.
    pub(crate) fn raw(&mut self, name: &str, value: Option<&str>) {
        let Some(value) = value else { return };
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        write!(self.0, "{}:{value}", quoted(name)).expect("writing to a String cannot fail");
    }

    /// Adds a member whose value is a string.
    pub(crate) fn text(&mut self, name: &str, value: &str) {
        self.put(name, &value);
    }

    /// Adds a member whose value is serialized.
    pub(crate) fn put(&mut self, name: &str, value: &impl Serialize) {
        let value = serde_json::to_string(value)
            .expect("strings, numbers and lists of them are always JSON");
        self.raw(name, Some(&value));
    }

    /// Adds a member whose value is serialized. Adds nothing if the value is `None`.
    pub(crate) fn optional(&mut self, name: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.put(name, &value);
        }
    }

    /// Returns the complete object as JSON.
    pub(crate) fn finish(mut self) -> String {
        self.0.push_str(if self.0.is_empty() { "{}" } else { "}" });
        self.0
    }
}

/// Writes a JSON array of elements that are already JSON. At least one element is required.
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

/// Returns the text without the byte order mark that some programs write before UTF-8. A parser may
/// ignore the mark (RFC 8259, 8.1).
#[must_use]
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Returns the text as a JSON string, in quotes.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("every string can be written as JSON")
}

/// Returns true if SQS accepts this character. SQS accepts the characters of XML 1.0, and refuses a
/// message with any other character.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
#[must_use]
pub const fn is_queue_character(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Escapes the characters U+FFFE and U+FFFF, which JSON allows and SQS refuses. In JSON they occur
/// only inside strings.
pub(crate) fn escaped(json: &str) -> String {
    json.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff")
}
