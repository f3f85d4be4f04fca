//! [`Failure`]: an evaluation error, with the value that the failed function returns nevertheless.
//!
//! This module is separate because a CESQL function can fail and have a value. The value is used
//! only if the function is the whole expression.

use super::error::Error;
use super::value::Value;

/// An evaluation error, with the value of the failed function if the function defines one.
#[derive(Debug)]
pub(super) struct Failure<'a> {
    pub(super) error: Error,
    pub(super) value: Option<Value<'a>>,
}

impl<'a> Failure<'a> {
    pub(super) fn with(error: Error, value: Value<'a>) -> Self {
        Self { error, value: Some(value) }
    }
}

impl From<Error> for Failure<'_> {
    fn from(error: Error) -> Self {
        Self { error, value: None }
    }
}
