//! The built-in functions of expressions.
//!
//! This module is separate because it is a table of names, numbers of arguments, types and
//! implementations. CESQL 1.0 does not define `IS_INT` and `IS_BOOL`, but Knative has them.
//! User-defined functions are not supported.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use super::error::Error;
use super::failure::Failure;
use super::value::{Type, Value};

/// A function that expressions can call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Function {
    Int,
    Bool,
    Text,
    IsInt,
    IsBool,
    Length,
    Concat,
    ConcatWithSeparator,
    Lower,
    Upper,
    Trim,
    Left,
    Right,
    Substring,
    Abs,
}

impl Function {
    const ALL: [Self; 15] = [
        Self::Int,
        Self::Bool,
        Self::Text,
        Self::IsInt,
        Self::IsBool,
        Self::Length,
        Self::Concat,
        Self::ConcatWithSeparator,
        Self::Lower,
        Self::Upper,
        Self::Trim,
        Self::Left,
        Self::Right,
        Self::Substring,
        Self::Abs,
    ];

    /// Finds the function with this name and number of arguments; case is ignored.
    pub(super) fn find(name: &str, arguments: usize) -> Option<Self> {
        let is_it = |function: &Self| {
            function.as_str().eq_ignore_ascii_case(name)
                && function.arguments().contains(&arguments)
        };
        Self::ALL.into_iter().find(is_it)
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Int => "INT",
            Self::Bool => "BOOL",
            Self::Text => "STRING",
            Self::IsInt => "IS_INT",
            Self::IsBool => "IS_BOOL",
            Self::Length => "LENGTH",
            Self::Concat => "CONCAT",
            Self::ConcatWithSeparator => "CONCAT_WS",
            Self::Lower => "LOWER",
            Self::Upper => "UPPER",
            Self::Trim => "TRIM",
            Self::Left => "LEFT",
            Self::Right => "RIGHT",
            Self::Substring => "SUBSTRING",
            Self::Abs => "ABS",
        }
    }

    /// Returns how many arguments the function accepts.
    fn arguments(self) -> RangeInclusive<usize> {
        match self {
            Self::Int | Self::Bool | Self::Text | Self::IsInt | Self::IsBool | Self::Abs => 1..=1,
            Self::Length | Self::Lower | Self::Upper | Self::Trim => 1..=1,
            Self::Concat => 0..=usize::MAX,
            Self::ConcatWithSeparator => 1..=usize::MAX,
            Self::Left | Self::Right => 2..=2,
            Self::Substring => 2..=3,
        }
    }

    /// Returns the type of the function's result.
    pub(super) fn result(self) -> Type {
        match self {
            Self::Int | Self::Length | Self::Abs => Type::Integer,
            Self::Bool | Self::IsInt | Self::IsBool => Type::Boolean,
            Self::Text
            | Self::Concat
            | Self::ConcatWithSeparator
            | Self::Lower
            | Self::Upper
            | Self::Trim
            | Self::Left
            | Self::Right
            | Self::Substring => Type::Text,
        }
    }

    /// Calls the function. The grammar has checked the number of arguments.
    pub(super) fn call<'a>(self, arguments: Vec<Value<'a>>) -> Result<Value<'a>, Failure<'a>> {
        let mut arguments = Arguments(arguments.into_iter());
        Ok(match self {
            Self::Int => Value::Integer(arguments.integer()?),
            Self::Bool => Value::Boolean(arguments.value().boolean()?),
            Self::Text => Value::Text(arguments.text()),
            Self::IsInt => Value::Boolean(arguments.value().integer().is_ok()),
            Self::IsBool => Value::Boolean(arguments.value().boolean().is_ok()),
            Self::Length => Value::Integer(length(&arguments.text())),
            Self::Concat => made(arguments.texts().concat()),
            Self::ConcatWithSeparator => {
                let separator = arguments.text();
                made(arguments.texts().join(&*separator))
            }
            Self::Lower => made(arguments.text().to_lowercase()),
            Self::Upper => made(arguments.text().to_uppercase()),
            Self::Trim => made(arguments.text().trim().to_owned()),
            Self::Left => {
                let (text, count) = (arguments.text(), arguments.integer()?);
                let Ok(count) = usize::try_from(count) else { return Err(negative(text)) };
                made(text.chars().take(count).collect())
            }
            Self::Right => {
                let (text, count) = (arguments.text(), arguments.integer()?);
                let Ok(count) = usize::try_from(count) else { return Err(negative(text)) };
                let others = text.chars().count().saturating_sub(count);
                made(text.chars().skip(others).collect())
            }
            Self::Substring => {
                let (text, from) = (arguments.text(), arguments.integer()?);
                let count = arguments.0.next().map_or(Ok(i32::MAX), |count| count.integer())?;
                made(substring(&text, from, count)?)
            }
            Self::Abs => {
                let number = arguments.integer()?;
                let overflow = Failure::with(Error::Math, Value::Integer(i32::MAX));
                Value::Integer(number.checked_abs().ok_or(overflow)?)
            }
        })
    }
}

/// The arguments of a call that have not been used yet.
struct Arguments<'a>(std::vec::IntoIter<Value<'a>>);

impl<'a> Arguments<'a> {
    /// Returns the next argument. It exists, because the grammar checks the number of arguments.
    fn value(&mut self) -> Value<'a> {
        self.0.next().unwrap_or(Value::Boolean(false))
    }

    fn text(&mut self) -> Cow<'a, str> {
        self.value().into_text()
    }

    fn integer(&mut self) -> Result<i32, Error> {
        self.value().integer()
    }

    /// Returns all remaining arguments, converted to texts.
    fn texts(self) -> Vec<Cow<'a, str>> {
        self.0.map(Value::into_text).collect()
    }
}

fn made<'a>(text: String) -> Value<'a> {
    Value::Text(Cow::Owned(text))
}

/// Returns the failure of a call with a negative length. The value of the failure is the whole
/// text.
fn negative(text: Cow<'_, str>) -> Failure<'_> {
    Failure::with(Error::Function, Value::Text(text))
}

fn length(text: &str) -> i32 {
    i32::try_from(text.chars().count()).unwrap_or(i32::MAX)
}

/// Returns at most `count` characters, beginning at a position. Position 1 is the first character,
/// and -1 the last one. Position 0 is before the text, so the result is empty.
fn substring(text: &str, from: i32, count: i32) -> Result<String, Error> {
    let length = length(text);
    let count = usize::try_from(count).map_err(|_| Error::Function)?;
    if from > length || from < -length {
        return Err(Error::Function);
    }
    let skipped = if from < 0 { length + from } else { from - 1 };
    // Position 0 has no character.
    let Ok(skipped) = usize::try_from(skipped) else { return Ok(String::new()) };
    Ok(text.chars().skip(skipped).take(count).collect())
}
