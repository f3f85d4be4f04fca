//! Declares the errors that can end the evaluation of an expression. Each corresponds to a CESQL
//! error.
//!
//! This module is separate because conversions of values return these errors too.

use thiserror::Error;

/// An error that ended the evaluation of an expression for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Error {
    /// `MathError`: an overflow, or a division by zero.
    #[error("a number is too large, or is divided by zero")]
    Math,
    /// `CastError`: a value cannot be converted to the required type.
    #[error("a value cannot be converted to the required type")]
    Cast,
    /// `MissingAttributeError`: the event does not have the attribute.
    #[error("the event does not have this attribute")]
    MissingAttribute,
    /// `FunctionEvaluationError`: an argument is out of range.
    #[error("an argument of a function is out of range")]
    Function,
    /// `GenericError`: the evaluation exceeds its limit of steps.
    #[error("the evaluation needs too many steps, because the strings are too long")]
    TooManySteps,
}
