//! Parses the command line. The environment may set the stack.
//!
//! Separate because all commands share the rule: a command with an option `--stack` uses
//! `LASTMILE_STACK`, unless an option names another deployment. Usage errors are printed here, with
//! redacted addresses.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use crate::operations::files::is_of_subscriptions;
use crate::operations::place::OTHER_PLACES;
use crate::terminal::output::note;
use crate::terminal::redaction;
use crate::terminal::text;

/// The environment variable with the name of the stack.
pub(crate) const STACK: &str = "LASTMILE_STACK";
/// The exit code of a usage error, as in clap.
pub(crate) const USAGE: u8 = 2;
/// The commands that use files by default. Such a command compares the files with a stack only if
/// `--stack` is given.
const OF_FILES: [&str; 3] = ["check", "explain", "try"];
/// The clap ids of arguments that are always files.
const FILES: [&str; 2] = ["files", "more_files"];
/// The clap id of arguments that may be files or names. An argument is a name in the deployment if
/// no file with that name exists.
const FILES_OR_NAMES: &str = "files_or_names";

/// Parses the arguments, the first of which is the name of the program. Prints a note if the stack
/// comes from the environment.
///
/// # Errors
/// A clap error. Requested text, such as the help, is also returned as an error.
pub(crate) fn matches(
    command: &Command,
    words: &[OsString],
    stack: Option<&str>,
) -> Result<ArgMatches, clap::Error> {
    let with_stack = stack.filter(|name| !name.is_empty());
    let with_stack =
        with_stack.and_then(|name| Some((name, with_stack_option(command, words, name)?)));
    if let Some((name, words)) = with_stack
        && let Ok(matches) = command.clone().try_get_matches_from(words)
        && !names_a_place(&matches)
    {
        note(format_args!("using the stack {}, which {STACK} names", text::line(name)));
        return Ok(matches);
    }
    command.clone().try_get_matches_from(words)
}

/// Prints a clap error, or requested text such as the help. Returns the exit code: 2 for an error,
/// 0 for requested text.
pub(crate) fn print(error: &clap::Error, words: &[OsString]) -> u8 {
    if !error.use_stderr() {
        // Ignore a closed pipe.
        let _ = error.print();
        return 0;
    }
    let words = words.iter().filter_map(|word| word.to_str());
    note(redaction::without_secrets(error.render().to_string().trim_end(), words));
    USAGE
}

/// Adds `--stack NAME` after the last subcommand. Returns `None` if the subcommand has no such
/// option.
fn with_stack_option(command: &Command, words: &[OsString], name: &str) -> Option<Vec<OsString>> {
    let (mut command, mut depth) = (command, 1);
    while let Some(found) = words.get(depth).and_then(|word| command.find_subcommand(word)) {
        (command, depth) = (found, depth + 1);
    }
    command.get_arguments().find(|argument| argument.get_long() == Some("stack"))?;
    let (before, after) = words.split_at_checked(depth)?;
    let option = OsString::from(format!("--stack={name}"));
    Some([before, &[option], after].concat())
}

/// Returns true if the arguments name a deployment or files, so that `LASTMILE_STACK` must not be
/// used.
fn names_a_place(matches: &ArgMatches) -> bool {
    let (mut leaf, mut name) = (matches, "");
    while let Some((found, below)) = leaf.subcommand() {
        (leaf, name) = (below, found);
    }
    let is_given = |id: &&str| {
        let is_known = leaf.try_contains_id(id).is_ok();
        is_known && leaf.value_source(id) == Some(ValueSource::CommandLine)
    };
    OTHER_PLACES.iter().any(is_given)
        || (OF_FILES.contains(&name) && FILES.iter().any(is_given))
        || has_file(leaf)
}

/// Returns true if an argument that may be a file or a name is a file: the path exists, or has the
/// extension of a subscription file.
fn has_file(leaf: &ArgMatches) -> bool {
    let given = leaf.try_get_many::<PathBuf>(FILES_OR_NAMES).ok().flatten();
    given.into_iter().flatten().any(|path| path.exists() || is_of_subscriptions(path))
}
