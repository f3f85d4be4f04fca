//! Filters written in CloudEvents SQL, version 1.0: `type = 'order.created' AND INT(priority) > 3`.
//!
//! Separate because it is a language: [`lexer`] and [`grammar`] read a text into the tree of [`expression`],
//! [`evaluation`] finds its value for an event, with the rules of [`value`], [`pattern`] and [`functions`]; [`implied`] is
//! for the index, [`explanation`] for people. An event matches if the value is `true` and nothing failed on the way.
//!
//! Attributes are the top-level members of the event, by the names that CloudEvents allows; `data` is none. An attribute
//! that is null counts as missing.
//!
//! Promises: reading and evaluating never panic and are bounded; what is written is read back to an equal expression.

mod evaluation;
mod explanation;
mod expression;
mod functions;
mod grammar;
mod implied;
mod lexer;
mod pattern;
mod value;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

pub use evaluation::Error as EvaluationError;
use expression::Expression;
use grammar::Parsed;
pub use value::Value;

use super::Filter;
use super::explanation::Explanation;
use crate::event::Members;

/// The member of an event that is not an attribute, although its name could be one.
const DATA: &str = "data";

/// The most bytes of an expression, as it is in a file and as it is written.
const TEXT_MAX_BYTES: usize = 8_192;

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cesql(Expression);

/// Why a text is not an expression. Characters are counted from 1; texts in quotes are not shown.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseError {
    /// Another token than the grammar wants.
    #[error("at character {at}: {expected} is expected, found {found}")]
    Unexpected {
        /// The number of its first character.
        at: usize,
        /// What is allowed there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A character that begins nothing.
    #[error("at character {at}: not a part of an expression")]
    UnknownCharacter {
        /// Its number.
        at: usize,
    },
    /// A text without its closing quote.
    #[error("at character {at}: the text has no closing quote")]
    TextWithoutEnd {
        /// The number of its opening quote.
        at: usize,
    },
    /// A number of more than 32 bits.
    #[error("at character {at}: a number is -2147483648 to 2147483647")]
    NumberTooLarge {
        /// The number of its first character.
        at: usize,
    },
    /// `MissingFunctionError`.
    #[error("at character {at}: there is no function {name} with {arguments} arguments")]
    NoFunction {
        /// The number of its first character.
        at: usize,
        /// Its name, in capitals.
        name: String,
        /// How many arguments it has.
        arguments: usize,
    },
    /// Too many expressions within each other.
    #[error("at character {at}: parts nest at most {max} deep", max = grammar::DEPTH_MAX)]
    TooDeep {
        /// The number of the first character of what is too deep.
        at: usize,
    },
    /// Too many words, values and symbols.
    #[error("an expression has at most {max} words, values and symbols", max = lexer::TOKENS_MAX)]
    TooManyTokens,
    /// Too many bytes.
    #[error("an expression has at most {TEXT_MAX_BYTES} bytes")]
    TooLong,
}

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
        let parsed = parsed(text)?;
        let cesql = Self(parsed.expression);
        // It is stored as it is written, with more parentheses, and read back.
        if let Err(problem) = self::parsed(&cesql.to_string()) {
            let is_deep = matches!(problem, ParseError::TooDeep { .. });
            return Err(if is_deep { ParseError::TooDeep { at: 1 } } else { problem });
        }
        let never_boolean = cesql.0.result() != value::Type::Boolean;
        Ok(Reading { cesql, mistakable_at: parsed.mistakable_at, never_boolean })
    }

    /// Whether an event with these members matches.
    #[must_use]
    pub fn takes(&self, members: &Members<'_>) -> bool {
        self.evaluate(members) == (Value::Boolean(true), None)
    }

    /// The value for an event with these members; if there is an error, it is the default of its type.
    #[must_use]
    pub fn evaluate<'a>(&'a self, members: &Members<'a>) -> (Value<'a>, Option<EvaluationError>) {
        evaluation::evaluate(&self.0, members)
    }

    /// Why an event with these members matches, or why not.
    #[must_use]
    pub fn explain(&self, members: &Members<'_>) -> Explanation {
        explanation::explain(&self.0, members)
    }

    /// A filter of exact texts and beginnings that matches every event that this matches.
    #[must_use]
    pub fn implied(&self) -> Filter {
        implied::implied(&self.0)
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

#[cfg(test)]
mod tests;
