//! Defines usage errors: mistakes in command-line arguments.

/// A mistake in the arguments of a command, which exits with code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(String);

/// Creates a usage error that a command can return.
pub(crate) fn usage_error(problem: impl Into<String>) -> anyhow::Error {
    UsageError(problem.into()).into()
}
