//! `lastmile apply`: subscription files to where a deployment reads them, with a look at what that
//! changes.
//!
//! First the check, then the difference to what is there, then the question, then the upload.
//! Nothing is uploaded that would be read otherwise there than here. The functions look at the
//! source every 30 seconds.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use adapters::machine::Machine;
use delivery::explain::diff::{Change, Subject, diff};
use delivery::manifest;
use delivery::manifest::Source;
use delivery::ports::Clock as _;
use delivery::subscription::catalogue::Catalogue;

use crate::files::{Files, have_errors, tell, usage};
use crate::remarks::remarks;
use crate::stack::Stack;
use crate::store::SubscriptionStore;

/// Where the subscriptions of a deployment are.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Target {
    /// Where the deployment reads them: s3://bucket/key or file:///path
    #[arg(long, value_name = "URI")]
    to: Option<String>,
    /// The deployed CloudFormation stack; its outputs say where it reads them
    #[arg(long, value_name = "NAME")]
    stack: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Files of subscriptions; together they take the place of all that is there
    #[arg(short = 'f', long = "file", required = true, num_args = 1.., value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    target: Target,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Go on although the files hold no subscription
    #[arg(long)]
    allow_empty: bool,
}

impl Target {
    /// Opens what was named.
    pub(crate) async fn open(self) -> anyhow::Result<SubscriptionStore> {
        SubscriptionStore::open(self.to, self.stack).await
    }
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let files = match Files::read(&arguments.files) {
        Ok(files) => files,
        Err(problem) => return Ok(usage(&problem)),
    };
    let reading = files.reading();
    tell(&reading.findings);
    if have_errors(&reading.findings) {
        return Ok(ExitCode::FAILURE);
    }
    let stack = match &arguments.target.stack {
        Some(name) => Some(Stack::describe(name).await?),
        None => None,
    };
    let remarks = remarks(&reading, files.first(), Machine.now_ms(), stack.as_ref())?;
    tell(&remarks);
    if have_errors(&remarks) {
        return Ok(ExitCode::FAILURE);
    }
    if reading.catalogue.subscriptions().next().is_none() && !arguments.allow_empty {
        return Ok(usage("the files hold no subscription; --allow-empty goes on all the same"));
    }
    let store = arguments.target.open().await?;
    let text = files.joined();
    let there = manifest::read(&[Source { name: &store.name(), text: &text }]);
    if have_errors(&there.findings) || there.catalogue != reading.catalogue {
        tell(&there.findings);
        anyhow::bail!(
            "as one file these documents would say something else; give each Event Grid resource a name of its own, or \
             join the files yourself"
        );
    }
    let old = store.read().await?;
    if old.as_deref() == Some(text.as_str()) {
        println!("{}: nothing to do, it says the same already", store.name());
        return Ok(ExitCode::SUCCESS);
    }
    let removes = show(&current(&store, old.as_deref()), &reading.catalogue);
    if let (true, Some(stack)) = (removes, &stack) {
        let waiting = stack.retries_waiting().await?;
        println!(
            "the retry queue holds about {waiting} waiting deliveries, of all subscriptions together"
        );
    }
    match confirmed(arguments.yes, &store.name()) {
        Ok(true) => {}
        Ok(false) => return Ok(ExitCode::FAILURE),
        Err(problem) => return Ok(usage(problem)),
    }
    store.write(&text).await?;
    println!("{}: applied", store.name());
    Ok(ExitCode::SUCCESS)
}

/// What is there now, as far as it can be read.
pub(crate) fn current(store: &SubscriptionStore, text: Option<&str>) -> Catalogue {
    let Some(text) = text else {
        eprintln!("{}: nothing is there yet", store.name());
        return Catalogue::default();
    };
    let reading = manifest::read(&[Source { name: &store.name(), text }]);
    if have_errors(&reading.findings) {
        tell(&reading.findings);
        eprintln!(
            "{}: what is there now has errors; only the rest of it is compared",
            store.name()
        );
    }
    reading.catalogue
}

/// Shows the difference, subscription by subscription and field by field; says whether anything is
/// removed.
pub(crate) fn show(old: &Catalogue, new: &Catalogue) -> bool {
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
                    println!("    {}: {} -> {}", field.field, field.old, field.new)
                });
            }
            Change::Removed => println!("- {subject}\n    warning: {}", consequence(subject)),
        }
    }
    changes.iter().any(|(_, change)| *change == Change::Removed)
}

/// What it means that something is there no more.
fn consequence(subject: &Subject) -> &'static str {
    match subject {
        Subject::Topic(_) => "events published to it become dead letters (TopicNotFound)",
        Subject::Subscription(_) => {
            "removed; its deliveries that wait for a retry become dead letters (SubscriptionNotFound)"
        }
    }
}

/// Whether to go on: asked on a terminal, unless that was said beforehand.
pub(crate) fn confirmed(yes: bool, what: &str) -> Result<bool, &'static str> {
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        return Err("nobody can be asked here; say --yes to go on");
    }
    eprint!("replace {what}? [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    Ok(read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"))
}
