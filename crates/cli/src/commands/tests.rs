//! Tests the help of all commands: its examples are accepted, its pages exist, and it fits into a
//! terminal.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::{Args as _, Command, CommandFactory as _};

use crate::operations::filter_args::FilterArgs;
use crate::terminal::help::{CONFIRMATION, FILES, FILTERS, JOB, LOCATION, OUTPUT};

/// The width of an ordinary terminal.
const WIDTH: usize = 80;

/// The headings of options, in the order of every help.
const HEADINGS: [&str; 8] =
    [FILES, LOCATION, FILTERS, "Samples", "Consent", JOB, OUTPUT, CONFIRMATION];

fn command() -> Command {
    crate::Arguments::command()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every command with its whole name.
fn all() -> Vec<(String, Command)> {
    let mut command = command().term_width(WIDTH);
    command.build();
    let mut found = vec![("lastmile".to_owned(), command.clone())];
    below(&command, "lastmile", &mut found);
    found
}

fn below(command: &Command, name: &str, found: &mut Vec<(String, Command)>) {
    for command in command.get_subcommands().filter(|command| command.get_name() != "help") {
        let name = format!("{name} {}", command.get_name());
        found.push((name.clone(), command.clone()));
        below(command, &name, found);
    }
}

fn long_help(command: &Command) -> String {
    let help = command.clone().render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    lines.join("\n")
}

/// The example lines of a help, continued ones joined.
fn examples(help: &str) -> Vec<String> {
    let (_, after) = help.split_once("Examples:\n").unwrap_or_default();
    let lines = after.lines().take_while(|line| !line.is_empty());
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    text.replace("\\\n", "").lines().map(|line| line.trim().to_owned()).collect()
}

/// The words of an example up to a redirection; quotes stand around whole words.
fn words(example: &str) -> Vec<String> {
    let words = example.split_whitespace().take_while(|word| *word != ">");
    words.map(|word| word.trim_matches('\'').to_owned()).collect()
}

#[test]
fn every_command_has_examples_that_are_accepted_and_a_page_that_exists() {
    let mut wrong = Vec::new();
    for (name, described) in all() {
        let help = long_help(&described);
        let examples = examples(&help);
        if examples.is_empty() {
            wrong.push(format!("{name} has no example"));
        }
        for example in &examples {
            if !example.starts_with(&name) {
                wrong.push(format!("{name}: {example:?} is another command"));
            }
            if let Err(error) = command().try_get_matches_from(words(example)) {
                wrong.push(format!("{example}\n{error}"));
            }
        }
        let page = help.lines().last().and_then(|line| line.strip_prefix("More: "));
        if !page.is_some_and(|page| root().join(page).is_file()) {
            wrong.push(format!("{name}: there is no page {page:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_help_is_wider_than_a_terminal_and_the_short_one_is_shorter() {
    for (name, command) in all() {
        let long = long_help(&command);
        for line in long.lines() {
            assert!(line.chars().count() <= WIDTH, "{name}: {line}");
        }
        let short = command.clone().render_help().to_string();
        assert!(short.lines().count() < long.lines().count(), "{name}");
        assert!(!short.contains("Examples:"), "{name}");
    }
}

#[test]
fn a_mistyped_command_or_option_is_answered_with_the_right_one() {
    for (typed, right) in [
        ("lastmile checks s.yaml", "'check'"),
        ("lastmile deadletters lists", "'list'"),
        ("lastmile subscriptions exports", "'export'"),
        ("lastmile destinations disabled a", "'disable'"),
        ("lastmile deadletters list --subscriptions a", "'--subscription'"),
    ] {
        let error = command().try_get_matches_from(typed.split(' ')).expect_err(typed).to_string();
        assert!(error.contains(right), "{typed}: {error}");
    }
}

#[test]
fn an_option_means_the_same_everywhere() {
    let mut helps: BTreeMap<String, String> = BTreeMap::new();
    for (name, command) in all() {
        for argument in command.get_arguments() {
            let (id, long) = (argument.get_id().as_str(), argument.get_long().unwrap_or_default());
            let expected_short = match long {
                "file" => Some('f'),
                "help" => Some('h'),
                "message" => Some('m'),
                "version" if id == "version" && name == "lastmile" => Some('V'),
                _ => None,
            };
            assert_eq!(argument.get_short(), expected_short, "{name} --{long}");
            if long == "yes" {
                let help = argument.get_help().map(ToString::to_string);
                assert_eq!(help.as_deref(), Some("Do not ask for confirmation"), "{name}");
            }
        }
        let has =
            |long: &str| command.get_arguments().any(|argument| argument.get_long() == Some(long));
        assert!(!(has("to") || has("container")) || has("stack"), "{name}");
        let places = command.get_arguments();
        let places = places.filter(|argument| argument.get_help_heading() == Some(LOCATION));
        for place in places {
            let help = format!("{:?} {:?}", place.get_value_names(), place.get_help());
            let first = helps.entry(place.get_id().to_string()).or_insert_with(|| help.clone());
            assert_eq!(*first, help, "{name}");
        }
    }
}

#[test]
fn the_headings_of_options_have_the_same_order_in_every_help() {
    for (name, command) in all() {
        let help = long_help(&command);
        let headings = help.lines().filter_map(|line| line.strip_suffix(':'));
        let places: Vec<usize> =
            headings.filter_map(|line| HEADINGS.iter().position(|known| *known == line)).collect();
        assert!(places.is_sorted(), "{name}: {places:?}");
    }
}

/// clap gives the heading of a flattened struct to all options after it.
#[test]
fn only_filters_are_under_their_heading() {
    let ids = |command: &Command| -> BTreeSet<String> {
        let all = command.get_arguments();
        let filters = all.filter(|argument| argument.get_help_heading() == Some(FILTERS));
        filters.map(|argument| argument.get_id().to_string()).collect()
    };
    let filters = ids(&FilterArgs::augment_args(Command::new("filters")));
    assert!(filters.contains("status"));
    for (name, command) in all() {
        assert!(ids(&command).is_subset(&filters), "{name}: {:?}", ids(&command));
    }
}
