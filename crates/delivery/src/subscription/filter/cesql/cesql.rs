//! An expression as a filter has it: read, written, evaluated and explained.
//!
//! Separate because it uses all other parts of the language but [`implied`](super::implied), which makes a filter of it.

use std::fmt;
use std::str::FromStr;

use super::error::Error;
use super::evaluation::evaluate;
use super::explanation::explain;
use super::expression::Expression;
use super::grammar::{self, Parsed};
use super::lexer;
use super::parse_error::{ParseError, TEXT_MAX_BYTES};
use super::value::{Type, Value};
use crate::event::Members;
use crate::subscription::filter::explanation::Explanation;

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cesql(pub(super) Expression);

/// An expression, and what to tell its author.
#[derive(Debug)]
pub struct Reading {
    /// The expression.
    pub cesql: Cesql,
    /// The character from which on the rank of operators is easily mistaken: `NOT` before a comparison, `AND` beside `OR`.
    pub mistakable_at: Option<usize>,
    /// The value is never a boolean, so no event matches.
    pub never_boolean: bool,
}

impl Cesql {
    /// Reads an expression.
    ///
    /// # Errors
    /// [`ParseError`] when it is not one, or too large.
    pub fn read(text: &str) -> Result<Reading, ParseError> {
        let Parsed { expression, mistakable_at } = parsed(text)?;
        let cesql = Self(expression);
        // It is stored as it is written, with more parentheses, and read back.
        if let Err(problem) = parsed(&cesql.to_string()) {
            let is_deep = matches!(problem, ParseError::TooDeep { .. });
            return Err(if is_deep { ParseError::TooDeep { at: 1 } } else { problem });
        }
        let never_boolean = cesql.0.result() != Type::Boolean;
        Ok(Reading { cesql, mistakable_at, never_boolean })
    }

    /// The number of its parts.
    #[must_use]
    pub fn size(&self) -> usize {
        let mut parts = 0;
        self.0.visit(&mut |_| parts += 1);
        parts
    }

    /// Whether an event with these members matches.
    #[must_use]
    pub fn takes(&self, members: &Members<'_>) -> bool {
        self.evaluate(members) == (Value::Boolean(true), None)
    }

    /// The value for an event with these members; if there is an error, it is the default of its type.
    #[must_use]
    pub fn evaluate<'a>(&'a self, members: &Members<'a>) -> (Value<'a>, Option<Error>) {
        evaluate(&self.0, members)
    }

    /// Why an event with these members matches, or why not.
    #[must_use]
    pub fn explain(&self, members: &Members<'_>) -> Explanation {
        explain(&self.0, members)
    }
}

fn parsed(text: &str) -> Result<Parsed, ParseError> {
    if text.len() > TEXT_MAX_BYTES {
        return Err(ParseError::TooLong);
    }
    grammar::parse(&lexer::tokens(text)?, text.chars().count())
}

/// The canonical text.
impl fmt::Display for Cesql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Reads what was written.
impl FromStr for Cesql {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parsed(text).map(|parsed| Self(parsed.expression))
    }
}
