//! Headers that a subscription adds to its requests: custom delivery properties.
//!
//! A header's value is in the file, in the event, or in a store of secrets. Names and values are
//! checked here, whether they come from a file or an event, so no header can split a request.

use std::borrow::Cow;

use thiserror::Error;

use crate::event::Event;
use crate::event::path::Path;
use crate::subscription::credentials::is_credential;
use crate::subscription::secret::{Keyring, SecretName};

/// Custom delivery properties: at most ten.
/// <https://learn.microsoft.com/azure/event-grid/delivery-properties>
pub const HEADERS_MAX: usize = 10;
/// Custom delivery properties: the longest value.
pub const HEADER_VALUE_MAX_BYTES: usize = 4_096;

/// A header of every request of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Its name, in the spelling of the file.
    pub name: String,
    /// Where its value is.
    pub value: Value,
}

/// Where a header's value is.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// In the file.
    Static(String),
    /// In the file, but never shown or stored anywhere else (Event Grid: `isSecret`).
    Concealed(String),
    /// In the event; a string, number or boolean, else the header is left out.
    Path(Path),
    /// In a store of secrets, under this name.
    Secret(SecretName),
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Static(value) => f.debug_tuple("Static").field(value).finish(),
            Self::Concealed(_) => f.write_str("Concealed(…)"),
            Self::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Self::Secret(name) => f.debug_tuple("Secret").field(name).finish(),
        }
    }
}

/// Why a header cannot be sent. No value is quoted: it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// Its secret is missing, or has a value that is not allowed in a header.
    #[error("{0}")]
    Secret(String),
    /// Its value is not allowed in a header.
    #[error("{0}")]
    Value(String),
}

impl Header {
    /// The name and value that a dead letter may show; `None` for secrets, for headers that hold
    /// credentials by their name, and where the event has no value.
    #[must_use]
    pub fn shown(&self, event: &Event) -> Option<(String, String)> {
        if is_credential(&self.name) {
            return None;
        }
        let value = match &self.value {
            Value::Static(value) => Some(value.clone()),
            Value::Path(path) => path.scalar(&event.members()),
            Value::Concealed(_) | Value::Secret(_) => None,
        };
        value.map(|value| (self.name.clone(), value))
    }

    /// The value for a request with this event; `None` where the event has none.
    ///
    /// # Errors
    /// Why the header cannot be sent. No value is quoted: it may be a secret.
    pub fn value<'a>(
        &'a self,
        event: &Event,
        keyring: &'a Keyring,
    ) -> Result<Option<Cow<'a, str>>, HeaderError> {
        let value: Cow<'_, str> = match &self.value {
            Value::Static(value) | Value::Concealed(value) => value.into(),
            Value::Path(path) => match path.scalar(&event.members()) {
                Some(value) => value.into(),
                None => return Ok(None),
            },
            Value::Secret(name) => {
                return secret_value(&self.name, name, keyring).map(|value| Some(value.into()));
            }
        };
        check_value(&value)
            .map_err(|problem| HeaderError::Value(cannot_be_sent(&self.name, &problem)))?;
        Ok(Some(value))
    }
}

fn cannot_be_sent(header: &str, problem: &str) -> String {
    format!("the header {header} cannot be sent: {problem}")
}

/// The value of a secret that is sent in a header: without what is blank around it, since a secret that was
/// stored from a file often ends with a line feed.
pub(super) fn secret_value<'a>(
    header: &str,
    secret: &SecretName,
    keyring: &'a Keyring,
) -> Result<&'a str, HeaderError> {
    let cannot = |problem: &str| HeaderError::Secret(cannot_be_sent(header, problem));
    let value = keyring.get(secret);
    let value = value.ok_or_else(|| cannot(&format!("its secret {secret} was not looked up")))?;
    let value = value.expose().trim();
    check_value(value).map_err(|problem| cannot(&problem))?;
    Ok(value)
}

/// Whether a text is the name of a header: a token of RFC 9110, 5.6.2.
#[must_use]
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Whether a text can be a header's value: at most 4,096 bytes of visible characters and inner
/// spaces.
///
/// # Errors
/// What is wrong, without the value itself.
pub fn check_value(value: &str) -> Result<(), String> {
    if value.len() > HEADER_VALUE_MAX_BYTES {
        return Err(format!(
            "a header's value is at most {HEADER_VALUE_MAX_BYTES} bytes, this has {}",
            value.len()
        ));
    }
    if value.chars().any(char::is_control) || value.trim() != value {
        return Err("a header's value has no control characters and no spaces around it".to_owned());
    }
    Ok(())
}
