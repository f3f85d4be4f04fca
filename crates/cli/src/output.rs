//! Data on standard output: tables for people, JSON for tools.

use std::io::{ErrorKind, Write as _};

use clap::ValueEnum;

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// For tools
    Json,
}

impl Output {
    /// Writes one JSON value, or the table; of nothing no table.
    pub(crate) fn write(
        self,
        is_empty: bool,
        json: impl FnOnce() -> serde_json::Value,
        table: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        match self {
            Self::Json => out(&format!("{}\n", json())),
            Self::Table if is_empty => Ok(()),
            Self::Table => out(&table()),
        }
    }
}

/// Writes data; unlike `println!` it does not panic when the reader has closed its end.
pub(crate) fn out(text: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes())?;
    // At the end of the program an error, such as a closed pipe, would be lost.
    output.flush()?;
    Ok(())
}

/// Whether a command ended because the reader of its output, such as `head`, has read enough.
pub(crate) fn is_closed(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<std::io::Error>();
    error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
