//! Questions to the person who runs a command.
//!
//! Separate because every question has the same rules: it is asked on a terminal or not at all, and
//! only a yes is a yes.

use std::io::IsTerminal as _;

use crate::terminal::output::ask;
use crate::terminal::text;
use crate::terminal::usage::usage_error;

/// What is to be done where nobody can be asked.
const NOBODY_TO_ASK: &str = "nothing was changed, since nobody can be asked: standard input is not a terminal; \
                             confirm with --yes";

/// Whether to go on with what cannot be undone: with `--yes`, or when a person agrees.
///
/// # Errors
/// A usage error that names `--yes`, when standard input is not a terminal.
pub(crate) fn may_proceed(yes: bool, question: &str) -> anyhow::Result<bool> {
    Ok(yes || is_confirmed(question, NOBODY_TO_ASK)?)
}

/// Whether a person says yes.
///
/// # Errors
/// A usage error with the other text, when standard input is not a terminal.
pub(crate) fn is_confirmed(question: &str, otherwise: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(usage_error(otherwise));
    }
    // Standard output may be redirected, and the question has to be seen.
    ask(format_args!("{question} [y/N] "));
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    // The end of the input is a no, as any other answer is.
    Ok(read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Whether to replace: asks on a terminal, unless `yes`.
pub(crate) fn may_replace(yes: bool, what: &str) -> anyhow::Result<bool> {
    may_proceed(yes, &format!("replace {}?", text::line(what)))
}
