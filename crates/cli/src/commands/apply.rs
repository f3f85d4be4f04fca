//! `lastmile apply`: uploads subscription files to where a deployment reads them.
//!
//! Checks the files, shows the difference to the current subscriptions, asks for confirmation, and
//! uploads. Refuses to upload files that would mean something else joined into one. The functions
//! read the source every 30 seconds.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use adapters::machine::Machine;
use delivery::explain::diff::{Change, Subject, diff};
use delivery::manifest::{self, Source};
use delivery::ports::Clock as _;
use delivery::subscription::catalogue::Catalogue;

use crate::files::{Files, have_errors, print_findings, usage_error};
use crate::lints::lints;
use crate::stack::Stack;
use crate::store::{SubscriptionStore, Target};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Files of subscriptions; together they replace all current subscriptions
    #[arg(short = 'f', long = "file", required = true, num_args = 1.., value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    target: Target,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Apply files without any subscription
    #[arg(long)]
    allow_empty: bool,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let files = Files::read(&arguments.files)?;
    let Some(reading) = files.valid_reading() else { return Ok(ExitCode::FAILURE) };
    let stack = Stack::optional(arguments.target.stack.as_deref()).await?;
    let lints = lints(&reading, files.first(), Machine.now_ms(), stack.as_ref())?;
    print_findings(&lints);
    if have_errors(&lints) {
        return Ok(ExitCode::FAILURE);
    }
    if reading.catalogue.subscriptions().next().is_none() && !arguments.allow_empty {
        return Err(usage_error(
            "the files contain no subscription; apply them with --allow-empty",
        ));
    }
    // After the checks, which without a stack need no credentials.
    let store = arguments.target.open().await?;
    let text = files.joined();
    // The target is one file: names that collide only there are found here.
    let joined = manifest::read(&[Source { name: &store.name(), text: &text }]);
    if have_errors(&joined.findings) || joined.catalogue != reading.catalogue {
        print_findings(&joined.findings);
        anyhow::bail!(
            "joined into one file these documents would have another meaning; give each Event Grid resource a name of its \
             own, or join the files yourself"
        );
    }
    let old = store.read().await?;
    if old.as_deref() == Some(text.as_str()) {
        println!("{}: nothing to do, it is up to date", store.name());
        return Ok(ExitCode::SUCCESS);
    }
    let removes = print_changes(&current_catalogue(&store, old.as_deref()), &reading.catalogue);
    if let (true, Some(stack)) = (removes, &stack) {
        let waiting = stack.retries_waiting().await?;
        println!("the retry queue holds about {waiting} deliveries of all subscriptions");
    }
    if !is_confirmed(arguments.yes, &store.name())? {
        return Ok(ExitCode::FAILURE);
    }
    store.write(&text).await?;
    println!("{}: applied", store.name());
    Ok(ExitCode::SUCCESS)
}

/// The current subscriptions, as far as they can be read.
pub(crate) fn current_catalogue(store: &SubscriptionStore, text: Option<&str>) -> Catalogue {
    let Some(text) = text else {
        eprintln!("{}: does not exist yet", store.name());
        return Catalogue::default();
    };
    let reading = manifest::read(&[Source { name: &store.name(), text }]);
    if have_errors(&reading.findings) {
        print_findings(&reading.findings);
        eprintln!(
            "{}: the current file has errors; only subscriptions without an error are compared",
            store.name()
        );
    }
    reading.catalogue
}

/// Prints the difference by subscription and field; returns whether anything is removed.
pub(crate) fn print_changes(old: &Catalogue, new: &Catalogue) -> bool {
    let changes = diff(old, new);
    if changes.is_empty() {
        println!("no subscription changes");
    }
    for (subject, change) in &changes {
        match change {
            Change::Added => println!("+ {subject}"),
            Change::Changed(fields) => {
                println!("~ {subject}");
                fields.iter().for_each(|field| {
                    println!("    {}: {} -> {}", field.field, field.old, field.new);
                });
            }
            Change::Removed => println!("- {subject}\n    warning: {}", consequence(subject)),
        }
    }
    changes.iter().any(|(_, change)| *change == Change::Removed)
}

/// The consequence of a removal.
fn consequence(subject: &Subject) -> &'static str {
    match subject {
        Subject::Topic(_) => "events published to it become dead letters (TopicNotFound)",
        Subject::Subscription(_) => {
            "removed; its deliveries that wait for a retry become dead letters (SubscriptionNotFound)"
        }
    }
}

/// Whether to replace: asks on a terminal, unless `yes`.
pub(crate) fn is_confirmed(yes: bool, what: &str) -> anyhow::Result<bool> {
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        return Err(usage_error("standard input is not a terminal; confirm with --yes"));
    }
    // Standard output may be redirected, and the question has to be seen.
    eprint!("replace {what}? [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    // The end of the input is a no, as any other answer is.
    Ok(read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"))
}
