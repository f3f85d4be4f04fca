//! Asks questions on the terminal before a command changes something.
//!
//! Separate because all questions follow the same rules: they need a terminal, and only an explicit
//! yes counts.

use std::io::IsTerminal as _;

use crate::terminal::output::ask;
use crate::terminal::text;
use crate::terminal::usage::usage_error;

/// The error message if a question cannot be asked, because standard input is not a terminal.
const NOBODY_TO_ASK: &str = "nothing was changed, because standard input is not a terminal: \
                             confirm with --yes";

/// Returns true if an irreversible action may proceed: with `--yes`, or after a confirmation.
///
/// # Errors
/// A usage error that names `--yes`, if standard input is not a terminal.
pub(crate) fn may_proceed(yes: bool, question: &str) -> anyhow::Result<bool> {
    Ok(yes || is_confirmed(question, NOBODY_TO_ASK)?)
}

/// Asks a yes-or-no question. Returns true if the response is yes.
///
/// # Errors
/// A usage error with the text `otherwise`, if standard input is not a terminal.
pub(crate) fn is_confirmed(question: &str, otherwise: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(usage_error(otherwise));
    }
    // Ask on standard error, because standard output may be redirected.
    ask(format_args!("{question} [y/N] "));
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    // The end of the input counts as a no, like any other response except yes.
    Ok(read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Returns true if `target` may be replaced: if `yes` is set, or after a confirmation.
pub(crate) fn may_replace(yes: bool, target: &str) -> anyhow::Result<bool> {
    may_proceed(yes, &format!("replace {}?", text::line(target)))
}
