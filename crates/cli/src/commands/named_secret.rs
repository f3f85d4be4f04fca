//! Secrets that are named on the command line, never written there, where every user of the machine could
//! read them.

use adapters::error_words::io_words;

use crate::terminal::usage::usage_error;

/// What a variable is named with.
const VARIABLE: &str = "env:";

/// The text of a secret: of a variable of the environment, as `env:NAME`, or of a file. `what` says which
/// secret it is.
///
/// # Errors
/// A usage error when it cannot be read; never quotes it.
pub(crate) fn read(name: &str, what: &str) -> anyhow::Result<String> {
    match name.strip_prefix(VARIABLE) {
        Some(variable) => std::env::var(variable)
            .map_err(|_| usage_error(format!("there is no variable {variable}, or it is no text"))),
        None => std::fs::read_to_string(name).map_err(|error| {
            usage_error(format!(
                "the {what} {name} cannot be read: {}; env:NAME or a file is expected",
                io_words(&error)
            ))
        }),
    }
}
