//! Adds help to every command: its options under headings, examples, and the page of the manual
//! with details.
//!
//! Separate from the commands, which describe their options. All commands share the headings of
//! options and the format of examples.
//!
//! Promises: a test parses every example, and no line of any help is wider than 80 columns.

mod examples;
#[cfg(test)]
mod tests;

use clap::{Arg, Command};

use self::examples::Examples;

/// The headings of the help, each with the clap ids of its options in any command.
const HEADINGS: [(&str, &[&str]); 5] = [
    ("Files", &["files", "more_files", "subscriptions"]),
    (
        "Location",
        &["to", "stack", "container", "queue_url", "ingress", "to_url", "to_topic"],
    ),
    ("Job", &["rate", "name", "resume", "skip_uncertain", "again"]),
    ("Output", &["output", "objects", "limit", "raw", "follow", "every", "full"]),
    ("Confirmation", &["yes", "dry_run", "all_letters", "allow_empty", "allow_unknown"]),
];

/// The positional arguments of commands whose usage would be wider than a terminal. Their usage has
/// two lines.
const USAGES: [(&str, &str); 2] =
    [("subscriptions delete", "<NAME>"), ("subscriptions history", "<NAME>")];
/// The heading of the options in `filter_args`.
const FILTERS: &str = "Filters";

/// Adds the help to every command.
pub(crate) fn with_help(command: Command) -> Command {
    described(command, &[])
}

/// Adds the help to a command and to its subcommands. `above` contains the names of its parents.
fn described(command: Command, above: &[String]) -> Command {
    let mut path = above.to_vec();
    if command.get_name() != "lastmile" {
        path.push(command.get_name().to_owned());
    }
    let name = path.join(" ");
    let examples = examples::of(&name);
    let command = command.mut_args(under_heading);
    let command = match USAGES.iter().find(|(wide, _)| *wide == name) {
        Some((_, end)) => command.override_usage(usage(&name, end)),
        None => command,
    };
    let command = match examples {
        Some(examples) => command.after_long_help(after_help(examples)),
        None => command,
    };
    command.mut_subcommands(|below| described(below, &path))
}

/// Puts an option under its heading, unless the command sets a heading. Positional arguments have
/// none.
fn under_heading(argument: Arg) -> Arg {
    // clap gives the heading of the filters to all options after them. Ignore that heading here.
    let has_own = argument.get_help_heading().is_some_and(|heading| heading != FILTERS);
    if argument.is_positional() || has_own {
        return argument;
    }
    let id = argument.get_id().as_str();
    match HEADINGS.iter().find(|(_, ids)| ids.contains(&id)) {
        Some((heading, _)) => argument.help_heading(*heading),
        None => argument,
    }
}

/// Formats the usage of a command in two lines. `end` is its positional argument.
fn usage(name: &str, end: &str) -> String {
    format!("lastmile {name} [OPTIONS] {end} \\\n           <--to <URI>|--stack <NAME>>")
}

fn after_help(Examples { lines, page, .. }: &Examples) -> String {
    let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!("Examples:\n{lines}\nMore: {page}")
}
