//! Reads secrets that the command line names. A secret itself is never an argument, because every
//! user of the machine can read the arguments of a process.

use adapters::error_words::io_words;

use crate::terminal::usage::usage_error;

/// The prefix of a secret's name that refers to an environment variable.
const VARIABLE: &str = "env:";

/// Reads a secret from an environment variable (`env:NAME`) or a file. `description` describes the
/// secret in errors.
///
/// # Errors
/// A usage error when the secret cannot be read; it never quotes the secret.
pub(crate) fn read(name: &str, description: &str) -> anyhow::Result<String> {
    match name.strip_prefix(VARIABLE) {
        Some(variable) => std::env::var(variable).map_err(|_| {
            usage_error(format!("the environment variable {variable} is not set, or is not text"))
        }),
        None => std::fs::read_to_string(name).map_err(|error| {
            usage_error(format!(
                "the {description} {name} cannot be read: {}; expected env:NAME or a file",
                io_words(&error)
            ))
        }),
    }
}
