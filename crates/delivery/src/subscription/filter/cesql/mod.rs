//! Filters in CloudEvents SQL, version 1.0: `type = 'order.created' AND INT(priority) > 3`.
//!
//! This module is separate because CESQL is a language. [`lexer`] and [`grammar`] parse a text into
//! the tree of [`expression`]. [`evaluation`] computes its value for an event, with [`value`],
//! [`pattern`] and [`functions`]. [`implied`] derives a filter for the index, and [`explanation`]
//! explains results to people. An event matches if the value is `true` and no error occurred.
//!
//! Attributes are the top-level members of the event with names that CloudEvents allows, except
//! `data`. An attribute that is null counts as missing.
//!
//! Parsing and evaluation never panic, and their cost is bounded. The canonical text of an
//! expression parses to an equal expression.

mod attribute;
#[expect(clippy::module_inception, reason = "the module is named after its main type")]
mod cesql;
mod error;
mod evaluation;
mod explanation;
mod expression;
mod failure;
mod functions;
mod grammar;
mod implied;
mod lexer;
mod parse_error;
mod pattern;
mod value;

pub use self::cesql::{Cesql, Reading};
pub use self::error::Error as EvaluationError;
pub use self::parse_error::ParseError;
pub use self::value::Value;

#[cfg(test)]
mod tests;
