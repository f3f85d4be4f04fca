//! [`Cesql`]: a CloudEvents SQL expression that is a filter or a part of a filter.
//!
//! This module is separate because it uses all other parts of the language, except
//! [`implied`](super::implied), which uses this module.

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

/// A valid CloudEvents SQL expression, with which filters can test events.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cesql(pub(super) Expression);

/// A parsed expression, with warnings for its author.
#[derive(Debug)]
pub struct Reading {
    /// The parsed expression.
    pub cesql: Cesql,
    /// The position at which the author may have mistaken the precedence: a `NOT` before a
    /// comparison, or an `AND` beside an `OR`.
    pub mistakable_at: Option<usize>,
    /// True if the value of the expression is never a boolean, so that no event matches.
    pub never_boolean: bool,
}

impl Cesql {
    /// Parses the text of an expression.
    ///
    /// # Errors
    /// [`ParseError`] if the text is not an expression or exceeds a limit.
    pub fn read(text: &str) -> Result<Reading, ParseError> {
        let Parsed { expression, mistakable_at } = parsed(text)?;
        let cesql = Self(expression);
        // The canonical form is stored, so it must not exceed the limits either. It may have more
        // parentheses.
        if let Err(problem) = parsed(&cesql.to_string()) {
            let is_deep = matches!(problem, ParseError::TooDeep { .. });
            return Err(if is_deep { ParseError::TooDeep { at: 1 } } else { problem });
        }
        let never_boolean = cesql.0.result() != Type::Boolean;
        Ok(Reading { cesql, mistakable_at, never_boolean })
    }

    /// Returns the number of parts of the expression. The memory of the expression is proportional
    /// to this number.
    #[must_use]
    pub fn size(&self) -> usize {
        let mut parts = 0;
        self.0.visit(&mut |_| parts += 1);
        parts
    }

    /// Returns true if an event with these members matches: the value is `true` and there is no
    /// error.
    #[must_use]
    pub fn takes(&self, members: &Members<'_>) -> bool {
        self.evaluate(members) == (Value::Boolean(true), None)
    }

    /// Returns the value of the expression for an event with these members, and the error if there
    /// was one. After an error, the value is the one that the failed function defines. If it
    /// defines none, the value is the default of the expression's type.
    #[must_use]
    pub fn evaluate<'a>(&'a self, members: &Members<'a>) -> (Value<'a>, Option<Error>) {
        evaluate(&self.0, members)
    }

    /// Explains why an event with these members matches or does not match.
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

/// Prints the canonical text, which parses to an equal expression.
impl fmt::Display for Cesql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Parses a stored expression, without warnings.
impl FromStr for Cesql {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parsed(text).map(|parsed| Self(parsed.expression))
    }
}
