//! Errors in what a person typed.

/// What the person who runs a command did wrong: its exit code is 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(String);

/// A usage error, as the error of a command.
pub(crate) fn usage_error(problem: impl Into<String>) -> anyhow::Error {
    UsageError(problem.into()).into()
}
