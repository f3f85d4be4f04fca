//! Values of expressions, and what becomes of one where another type is needed.
//!
//! Separate because casts are rules of their own (CESQL, type casting): they are the same for operators,
//! functions and the elements of `IN`.

use std::borrow::Cow;
use std::fmt;

use super::error::Error;

/// A value: text, a whole number of 32 bits, or a boolean.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value<'a> {
    /// `String`.
    Text(Cow<'a, str>),
    /// `Integer`.
    Integer(i32),
    /// `Boolean`.
    Boolean(bool),
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Integer,
    Boolean,
}

impl Type {
    /// What an expression of this type is after an error.
    pub(super) fn zero<'a>(self) -> Value<'a> {
        match self {
            Self::Text => Value::Text(Cow::Borrowed("")),
            Self::Integer => Value::Integer(0),
            Self::Boolean => Value::Boolean(false),
        }
    }
}

impl<'a> Value<'a> {
    /// The same value, which borrows from this one.
    pub(super) fn borrowed(&self) -> Value<'_> {
        match self {
            Self::Text(text) => Value::Text(Cow::Borrowed(text)),
            Self::Integer(number) => Value::Integer(*number),
            Self::Boolean(is_true) => Value::Boolean(*is_true),
        }
    }

    pub(super) fn kind(&self) -> Type {
        match self {
            Self::Text(_) => Type::Text,
            Self::Integer(_) => Type::Integer,
            Self::Boolean(_) => Type::Boolean,
        }
    }

    /// As a value of another type.
    pub(super) fn cast(self, to: Type) -> Result<Self, Error> {
        Ok(match to {
            Type::Text => Self::Text(self.into_text()),
            Type::Integer => Self::Integer(self.integer()?),
            Type::Boolean => Self::Boolean(self.boolean()?),
        })
    }

    pub(super) fn into_text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text,
            Self::Integer(number) => Cow::Owned(number.to_string()),
            Self::Boolean(is_true) => Cow::Borrowed(if is_true { "true" } else { "false" }),
        }
    }

    pub(super) fn integer(&self) -> Result<i32, Error> {
        match self {
            Self::Text(text) => text.parse().map_err(|_| Error::Cast),
            Self::Integer(number) => Ok(*number),
            Self::Boolean(is_true) => Ok(i32::from(*is_true)),
        }
    }

    pub(super) fn boolean(&self) -> Result<bool, Error> {
        match self {
            Self::Text(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Self::Text(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Self::Text(_) => Err(Error::Cast),
            Self::Integer(number) => Ok(*number != 0),
            Self::Boolean(is_true) => Ok(*is_true),
        }
    }
}

/// As a literal that is read back to the same value.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => quoted(text, f),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Boolean(true) => f.write_str("TRUE"),
            Self::Boolean(false) => f.write_str("FALSE"),
        }
    }
}

/// A text as a literal. A backslash and the character after it belong together, as when it is read: so a text that holds
/// `\'` can only be written between double quotes.
fn quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let pairs = || {
        let mut characters = text.chars();
        std::iter::from_fn(move || match characters.next()? {
            '\\' => Some(('\\', characters.next())),
            character => Some((character, None)),
        })
    };
    let quote = if pairs().any(|pair| pair == ('\\', Some('\''))) { '"' } else { '\'' };
    write!(f, "{quote}")?;
    for (first, second) in pairs() {
        let escape = if first == quote { "\\" } else { "" };
        write!(f, "{escape}{first}{}", second.map(String::from).unwrap_or_default())?;
    }
    write!(f, "{quote}")
}
