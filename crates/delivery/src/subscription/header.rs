//! Headers that a subscription adds to its requests (Event Grid: custom delivery properties).
//!
//! A value comes from a document, the event, a store of secrets or a template. This module checks
//! names, and values from documents and secrets. It changes values from events so that they are
//! [`sendable`]. So no header can split a request, and no value that a path selects makes its event
//! undeliverable.

use std::borrow::Cow;

use percent_encoding::{CONTROLS, utf8_percent_encode};
use thiserror::Error;

use crate::event::Event;
use crate::event::path::Path;
use crate::subscription::credentials::is_credential;
use crate::subscription::secret::{Keyring, SecretName};
use crate::subscription::templates::Templated;
use crate::template::{TextTemplate, Values};

/// Maximum number of headers of a destination (Event Grid: custom delivery properties).
/// <https://learn.microsoft.com/azure/event-grid/delivery-properties>
pub const HEADERS_MAX: usize = 10;
/// Maximum length of a header's value in bytes (Event Grid: custom delivery properties).
pub const HEADER_VALUE_MAX_BYTES: usize = 4_096;

/// A header that a subscription adds to every request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The name of the header, in the spelling of the document.
    pub name: String,
    /// The source of the header's value.
    pub value: Value,
}

/// The source of a header's value.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// The value that the document states.
    Static(String),
    /// A value that the document states, but that is never shown or stored anywhere else (Event
    /// Grid: `isSecret`).
    Concealed(String),
    /// A path into the event. The value must be a string, number or boolean; otherwise the header
    /// is omitted.
    Path(Path),
    /// The name of a secret. The value is in a store of secrets.
    Secret(SecretName),
    /// A template that is rendered for each request; see [`crate::template`].
    Template(Templated<TextTemplate>),
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Static(value) => f.debug_tuple("Static").field(value).finish(),
            Self::Concealed(_) => f.write_str("Concealed(…)"),
            Self::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Self::Secret(name) => f.debug_tuple("Secret").field(name).finish(),
            Self::Template(template) => f.debug_tuple("Template").field(&template.written).finish(),
        }
    }
}

/// The reason why a header cannot be sent. No error quotes the value, because it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// The secret is missing, or its value is not allowed in a header.
    #[error("{0}")]
    Secret(String),
    /// The value is not allowed in a header.
    #[error("{0}")]
    Value(String),
}

impl Header {
    /// Returns the name and value that a dead letter may show. Returns `None` if the value is
    /// secret or a template, if the name of the header marks a credential, or if the event has no
    /// value.
    #[must_use]
    pub fn shown(&self, event: &Event) -> Option<(String, String)> {
        if is_credential(&self.name) {
            return None;
        }
        let value = match &self.value {
            Value::Static(value) => Some(value.clone()),
            Value::Path(path) => of_event(path, event).map(|sendable| sendable.value),
            Value::Concealed(_) | Value::Secret(_) | Value::Template(_) => None,
        };
        value.map(|value| (self.name.clone(), value))
    }

    /// Returns the value for a request with this event; `None` if the event has no value. Templates
    /// are rendered with `values`. A request without an event has no `values`, so its templates are
    /// omitted.
    ///
    /// # Errors
    /// The reason why the header cannot be sent. It does not quote the value, because the value may
    /// be a secret.
    pub fn value<'a>(
        &'a self,
        event: &Event,
        keyring: &'a Keyring,
        values: Option<&Values>,
    ) -> Result<Option<Cow<'a, str>>, HeaderError> {
        let value: Cow<'_, str> = match &self.value {
            Value::Static(value) | Value::Concealed(value) => value.into(),
            Value::Path(path) => {
                return Ok(of_event(path, event).map(|sendable| sendable.value.into()));
            }
            Value::Secret(name) => {
                return secret_value(&self.name, name, keyring).map(|value| Some(value.into()));
            }
            Value::Template(source) => {
                let rendered =
                    values.map(|values| source.template.render_header(values)).transpose();
                let rendered = rendered.map_err(|error| match is_credential(&self.name) {
                    true => HeaderError::Value(error.without_expression().to_string()),
                    false => HeaderError::Value(error.to_string()),
                })?;
                return Ok(rendered.map(Into::into));
            }
        };
        check_value(&value)
            .map_err(|problem| HeaderError::Value(cannot_be_sent(&self.name, &problem)))?;
        Ok(Some(value))
    }
}

/// Returns the value at a path of the event, changed so that it is valid in a header.
#[must_use]
pub fn of_event(path: &Path, event: &Event) -> Option<Sendable> {
    path.scalar(&event.members()).map(|value| sendable(&value))
}

/// A change that makes a value from an event valid in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// White space at both ends was removed.
    Trimmed,
    /// Control characters were replaced by spaces.
    Spaced,
    /// Non-ASCII characters were percent-encoded.
    Encoded,
    /// The value was cut after [`HEADER_VALUE_MAX_BYTES`].
    Cut,
}

impl Change {
    /// Returns a description of the change for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trimmed => "white space at both ends is removed",
            Self::Spaced => "control characters become spaces",
            Self::Encoded => "characters other than ASCII are percent-encoded",
            Self::Cut => "the value is cut after 4096 bytes",
        }
    }
}

/// A value that is valid in a header, and the changes that made it valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sendable {
    /// The value that requests contain.
    pub value: String,
    /// The changes to the original value, without duplicates.
    pub changes: Vec<Change>,
}

/// Changes a text from an event so that it is valid in a header.
#[must_use]
pub fn sendable(text: &str) -> Sendable {
    let spaced: String = text
        .chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect();
    let trimmed = spaced.trim();
    let mut value = String::with_capacity(trimmed.len());
    let mut is_cut = false;
    for character in trimmed.chars() {
        let mut bytes = [0; 4];
        let encoded = utf8_percent_encode(character.encode_utf8(&mut bytes), CONTROLS);
        let start = value.len();
        value.extend(encoded);
        if value.len() > HEADER_VALUE_MAX_BYTES {
            value.truncate(start);
            is_cut = true;
            break;
        }
    }
    let changes = [
        (trimmed.len() < spaced.len(), Change::Trimmed),
        (trimmed.chars().ne(text.trim_matches(is_blank).chars()), Change::Spaced),
        (!trimmed.is_ascii(), Change::Encoded),
        (is_cut, Change::Cut),
    ];
    let value = if is_cut { value.trim_end().to_owned() } else { value };
    Sendable {
        value,
        changes: changes.into_iter().filter(|(is, _)| *is).map(|(_, change)| change).collect(),
    }
}

/// Returns true if a character is removed at the ends of a value. A control character would become
/// a space, so it is removed too.
fn is_blank(character: char) -> bool {
    character.is_whitespace() || character.is_control()
}

/// Returns the error message for a header value that is not allowed.
pub(crate) fn cannot_be_sent(header: &str, problem: &str) -> String {
    format!("the header {header} cannot be sent: {problem}")
}

/// Returns the value of a secret for a header. White space at the ends is removed, because a secret
/// that was stored from a file often ends with a line feed.
pub(super) fn secret_value<'a>(
    header: &str,
    secret: &SecretName,
    keyring: &'a Keyring,
) -> Result<&'a str, HeaderError> {
    let cannot = |problem: &str| HeaderError::Secret(cannot_be_sent(header, problem));
    let value = keyring.get(secret);
    let value = value.ok_or_else(|| cannot(&format!("the secret {secret} was not loaded")))?;
    let value = value.expose().trim();
    check_value(value).map_err(|problem| cannot(&problem))?;
    Ok(value)
}

/// Returns true if a text is a valid header name: a token of RFC 9110, 5.6.2.
#[must_use]
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Checks that a text can be the value of a header: at most 4,096 bytes, no control characters, and
/// no spaces at either end.
///
/// # Errors
/// A description of the problem, without the value.
pub fn check_value(value: &str) -> Result<(), String> {
    if value.len() > HEADER_VALUE_MAX_BYTES {
        return Err(format!(
            "the value of a header has at most {HEADER_VALUE_MAX_BYTES} bytes, but this value has \
             {}",
            value.len()
        ));
    }
    if value.chars().any(char::is_control) || value.trim() != value {
        return Err(
            "the value of a header cannot have control characters, or spaces at either end"
                .to_owned(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_an_event_is_made_sendable() {
        use Change::{Cut, Encoded, Spaced, Trimmed};
        let long = "x".repeat(HEADER_VALUE_MAX_BYTES + 1);
        let long_word = "ä".repeat(HEADER_VALUE_MAX_BYTES);
        let long_with_space = format!("{} y", &long[..HEADER_VALUE_MAX_BYTES - 1]);
        for (text, value, changes) in [
            ("plain, 100 %", "plain, 100 %", &[][..]),
            ("", "", &[]),
            ("note ", "note", &[Trimmed]),
            (" note\u{a0}", "note", &[Trimmed]),
            ("note\r\n", "note", &[Trimmed]),
            ("\0note", "note", &[Trimmed]),
            ("a\tb", "a b", &[Spaced]),
            ("a\r\nx-evil: b", "a  x-evil: b", &[Spaced]),
            ("a\u{7f}b\u{85}c", "a b c", &[Spaced]),
            ("größe", "gr%C3%B6%C3%9Fe", &[Encoded]),
            ("a\u{a0}b", "a%C2%A0b", &[Encoded]),
            ("\tä\tb ", "%C3%A4 b", &[Trimmed, Spaced, Encoded]),
            (&long, &long[1..], &[Cut]),
            (&long_word, &"%C3%A4".repeat(HEADER_VALUE_MAX_BYTES / 6), &[Encoded, Cut]),
            (&"€".repeat(1_000), &"%E2%82%AC".repeat(HEADER_VALUE_MAX_BYTES / 9), &[Encoded, Cut]),
            (&long_with_space, &long_with_space[..HEADER_VALUE_MAX_BYTES - 1], &[Cut]),
        ] {
            let found = sendable(text);
            assert_eq!((found.value.as_str(), &found.changes[..]), (value, changes), "{text:?}");
            assert_eq!(check_value(&found.value), Ok(()), "{text:?}");
            assert!(Cut.as_str().contains(&HEADER_VALUE_MAX_BYTES.to_string()));
        }
    }
}
