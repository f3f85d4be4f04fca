//! The errors of evaluating an expression for an event, as CESQL names them.
//!
//! Separate because a cast fails by itself, whichever part of an expression needs it.

use thiserror::Error;

/// Why an expression has no value for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Error {
    /// `MathError`: an overflow, or a division by zero.
    #[error("a number is too large, or divided by zero")]
    Math,
    /// `CastError`.
    #[error("a value cannot be converted to the type that is needed")]
    Cast,
    /// `MissingAttributeError`.
    #[error("the event does not have an attribute")]
    MissingAttribute,
    /// `FunctionEvaluationError`.
    #[error("an argument of a function is out of range")]
    Function,
    /// `GenericError`: there is more to do than an evaluation may.
    #[error("there is too much text")]
    TooManySteps,
}
