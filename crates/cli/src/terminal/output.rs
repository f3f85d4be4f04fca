//! Writes data to standard output (tables for people, JSON for tools), and everything else to
//! standard error.
//!
//! Only this module writes output (a lint forbids `println!`), because most output quotes untrusted
//! text of publishers, endpoints, and authors of subscription files. Invisible characters of such
//! text never reach a terminal ([`text`]).

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;

use crate::terminal::styled::Rendered;
use crate::terminal::text;

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Text or a table for people
    Table,
    /// JSON for tools
    Json,
}

/// The format of lines that a command prints as they arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LineOutput {
    /// Text for people
    Text,
    /// JSON for tools, one object per line
    Json,
}

impl Output {
    /// Writes the data as JSON or as a table, depending on the option. Omits an empty table.
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

/// Writes text for people. Unlike `println!`, the function does not panic if the reader has closed
/// the pipe.
pub(crate) fn out(text: &str) -> anyhow::Result<()> {
    write(text::plain(text).as_bytes())
}

/// Writes coloured lines, and adds a line end.
pub(crate) fn out_rendered(lines: &Rendered) -> anyhow::Result<()> {
    write(format!("{}\n", lines.as_str()).as_bytes())
}

/// Writes JSON and a line end. Replaces invisible characters with equivalent escapes.
pub(crate) fn out_json(json: &str) -> anyhow::Result<()> {
    write(format!("{}\n", text::json(json)).as_bytes())
}

/// Writes bytes. On a terminal, escapes invisible characters; elsewhere, the bytes are unchanged.
pub(crate) fn out_raw(bytes: &[u8]) -> anyhow::Result<()> {
    if stdout_is_terminal() {
        return out(&String::from_utf8_lossy(bytes));
    }
    write(bytes)
}

pub(crate) fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// True if the command continues after the reader has closed its output.
static GOES_ON: AtomicBool = AtomicBool::new(false);

/// Drops all later output after the reader has closed the pipe, so that the command continues.
/// Otherwise a command piped to `head` would stop after a part of its changes.
///
/// Commands call this function if they change something, or if their exit code reports their
/// result. Other commands end when the reader closes the pipe, as `head` expects.
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
    // Without the flush, an error at the end of the program, such as a closed pipe, would be lost.
    output.flush()
}

pub(crate) fn note(text: impl Display) {
    ask(format_args!("{text}\n"));
}

/// Writes to standard error without a line end.
pub(crate) fn ask(text: impl Display) {
    // An error on standard error cannot be reported anywhere.
    let _ = std::io::stderr().lock().write_all(text::plain(&text.to_string()).as_bytes());
}

/// Returns true if the error means that the reader of the output, such as `head`, closed the pipe.
pub(crate) fn is_closed(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<std::io::Error>();
    error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
