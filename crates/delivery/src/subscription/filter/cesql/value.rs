//! [`Value`]: the values of expressions, and their conversion to other types.
//!
//! This module is separate because operators, functions and `IN` use the same conversions (CESQL,
//! type casting).

use std::borrow::Cow;
use std::fmt;

use super::error::Error;

/// The value of an expression: a text, a 32-bit integer or a boolean.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value<'a> {
    /// A value of the CESQL type `String`.
    Text(Cow<'a, str>),
    /// A value of the CESQL type `Integer`.
    Integer(i32),
    /// A value of the CESQL type `Boolean`.
    Boolean(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Integer,
    Boolean,
}

impl Type {
    /// Returns the default value of this type, which an expression has after an error.
    pub(super) fn zero<'a>(self) -> Value<'a> {
        match self {
            Self::Text => Value::Text(Cow::Borrowed("")),
            Self::Integer => Value::Integer(0),
            Self::Boolean => Value::Boolean(false),
        }
    }
}

impl<'a> Value<'a> {
    /// Returns a copy of the value that borrows its text.
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

    /// Converts the value to another type, by the rules of CESQL.
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

/// Prints the value as a literal that parses to the same value.
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

/// Prints a text as a literal in quotes. The lexer reads a backslash and the next character as a
/// pair, so a text that contains `\'` must be between double quotes.
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
