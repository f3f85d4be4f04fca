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

mod attribute;
#[expect(clippy::module_inception, reason = "the room is named after its main type")]
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
