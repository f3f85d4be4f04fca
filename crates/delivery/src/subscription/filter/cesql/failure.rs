//! The failure of a part of an expression.
//!
//! Separate because a function may fail and have a value all the same, which counts for a whole expression.

use super::error::Error;
use super::value::Value;

/// An error, and what the function that failed is all the same, if it says so.
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
