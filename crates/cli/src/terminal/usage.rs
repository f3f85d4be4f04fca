//! Usage errors: mistakes in command-line arguments.

/// A mistake of the person who runs a command; the exit code is 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(String);

/// Creates a usage error as the error of a command.
pub(crate) fn usage_error(problem: impl Into<String>) -> anyhow::Error {
    UsageError(problem.into()).into()
}
