//! What the command line writes: data on standard output, as tables for people and JSON for tools, and
//! everything else on standard error.
//!
//! Separate, and the only place that writes (a lint forbids `println!`), because nearly all of it
//! quotes what others wrote: publishers, endpoints, the authors of subscription files. Nothing of
//! that reaches a terminal as a character that cannot be seen ([`text`]).

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;

use crate::terminal::styled::Rendered;
use crate::terminal::text;

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// For tools
    Json,
}

/// The format of lines that are written as they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LineOutput {
    /// For people
    Text,
    /// For tools, one object per line
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
            Self::Json => out_json(&json().to_string()),
            Self::Table if is_empty => Ok(()),
            Self::Table => out(&table()),
        }
    }
}

/// Writes data for people; unlike `println!` it does not panic when the reader has closed its end.
pub(crate) fn out(text: &str) -> anyhow::Result<()> {
    write(text::plain(text).as_bytes())
}

/// Writes lines that have colours, with a line end.
pub(crate) fn out_rendered(lines: &Rendered) -> anyhow::Result<()> {
    write(format!("{}\n", lines.as_str()).as_bytes())
}

/// Writes JSON and a line end. Characters that cannot be seen become escapes, which mean the same.
pub(crate) fn out_json(json: &str) -> anyhow::Result<()> {
    write(format!("{}\n", text::json(json)).as_bytes())
}

/// Writes bytes as they are, except to a terminal.
pub(crate) fn out_raw(bytes: &[u8]) -> anyhow::Result<()> {
    if stdout_is_terminal() {
        return out(&String::from_utf8_lossy(bytes));
    }
    write(bytes)
}

/// Whether standard output is a terminal.
pub(crate) fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Whether the command goes on when nobody reads its output any more.
static GOES_ON: AtomicBool = AtomicBool::new(false);

/// From here on output that nobody reads is dropped, and the command goes on: it changes something, or its exit code is
/// the answer. Others end, as `head` wants it.
pub(crate) fn goes_on_unread() {
    GOES_ON.store(true, Ordering::Relaxed);
}

fn write(bytes: &[u8]) -> anyhow::Result<()> {
    match write_all(bytes) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe && GOES_ON.load(Ordering::Relaxed) => {
            Ok(())
        }
        written => Ok(written?),
    }
}

fn write_all(bytes: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(bytes)?;
    // At the end of the program an error, such as a closed pipe, would be lost.
    output.flush()
}

/// Writes a line to standard error.
pub(crate) fn note(text: impl Display) {
    ask(format_args!("{text}\n"));
}

/// Writes to standard error without a line end.
pub(crate) fn ask(text: impl Display) {
    // Nobody is left to be told of an error.
    let _ = std::io::stderr().lock().write_all(text::plain(&text.to_string()).as_bytes());
}

/// Whether a command ended because the reader of its output, such as `head`, has read enough.
pub(crate) fn is_closed(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<std::io::Error>();
    error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
