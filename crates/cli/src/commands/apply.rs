//! `lastmile apply`: uploads subscription files to where a deployment reads them.
//!
//! Checks the files, shows the difference to the current subscriptions, asks for confirmation, and
//! uploads. Refuses to upload files that would mean something else joined into one. The functions
//! read the source every 30 seconds.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use adapters::machine::Machine;
use adapters::subscriptions::Location;
use catalogue::Committed;
use clap::builder::NonEmptyStringValueParser;
use delivery::explain::diff::{Change, FieldChange, Subject, diff};
use delivery::ports::Clock as _;
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use dialects::{Reading, Source};

use crate::comparison::{Comparison, who};
use crate::confirm::may_proceed;
use crate::deployment::{DeploymentEntries, new_problems, print_mappings};
use crate::files::{Files, have_errors, print_findings, usage_error};
use crate::lints::with_lints;
use crate::missing_destinations::{PLACEHOLDER_HOST, has_placeholder};
use crate::output::{note, out};
use crate::stack::Stack;
use crate::store::{self, SubscriptionStore, Target};
use crate::{key_sets, text};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Files of subscriptions; together they replace all current subscriptions
    #[arg(short = 'f', long = "file", required = true, num_args = 1.., value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    target: Target,
    /// In a catalogue: whose files these are. They change only what was applied under this name
    #[arg(long, value_name = "NAME", default_value = "files", value_parser = NonEmptyStringValueParser::new())]
    owner: String,
    /// In a catalogue: remove what was applied under this name and is not in the files
    #[arg(long)]
    prune: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Apply files without any subscription
    #[arg(long)]
    allow_empty: bool,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let files = Files::read(&arguments.files)?;
    // Before the checks, since a catalogue has what files may refer to.
    let location = arguments.target.location().await?;
    let deployed = DeploymentEntries::at(&location, &arguments.owner, arguments.prune).await?;
    let reading = files.reading_for(&deployed.for_files);
    let stack = Stack::optional(arguments.target.stack.as_deref()).await?;
    let findings = with_lints(&reading, files.names(), Machine.now_ms(), stack.as_ref())?;
    print_findings(&findings);
    if have_errors(&findings) {
        return Ok(ExitCode::FAILURE);
    }
    if reading.catalogue.subscriptions().any(|of| has_placeholder(of)) {
        note(format_args!(
            "not applied: replace the placeholders, which are the addresses at {PLACEHOLDER_HOST}"
        ));
        return Ok(ExitCode::FAILURE);
    }
    if location.is_catalogue() {
        return apply_to_catalogue(&arguments, &location, &reading, &deployed).await;
    }
    let store = SubscriptionStore::at(&location).await;
    let text = files.joined();
    // The target is one file: names that collide only there are found here.
    let joined = dialects::read(&[Source { name: &store.name(), text: &text }]);
    if have_errors(&joined.findings) || joined.catalogue != reading.catalogue {
        print_findings(&joined.findings);
        anyhow::bail!(
            "joined into one file these documents would have another meaning; give each Event Grid resource a name of its \
             own, or join the files yourself"
        );
    }
    let old = store.read().await?;
    let current = current_catalogue(&store, old.as_deref());
    let new = &reading.catalogue;
    check_removal([&current, new], new, arguments.allow_empty)?;
    if old.as_deref() == Some(text.as_str()) {
        out(&format!("{}: nothing to do, it is up to date\n", store.name()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let removes = print_changes(&current, new)?;
    if let (true, Some(stack)) = (removes, &stack) {
        let waiting = stack.retries_waiting().await?;
        out(&format!("the retry queue holds about {waiting} deliveries of all subscriptions\n"))?;
    }
    if !may_replace(arguments.yes, &store.name())? {
        return Ok(ExitCode::FAILURE);
    }
    key_sets::write(store.storage(), &current, new).await?;
    store.write(&text).await?;
    out(&format!("{}: applied\n", store.name()))?;
    Ok(ExitCode::SUCCESS)
}

/// Changes a catalogue: what other owners applied stays as it is.
async fn apply_to_catalogue(
    arguments: &Arguments,
    location: &Location,
    reading: &Reading,
    deployed: &DeploymentEntries,
) -> anyhow::Result<ExitCode> {
    let Arguments { owner, prune, .. } = arguments;
    let folder = store::object(location).await;
    let mappings = deployed.own(reading.destinations.clone())?;
    let new = &reading.catalogue;
    let comparison = Comparison::of(&folder, owner, new, &mappings, *prune).await?;
    let (before, after) = (comparison.before(), comparison.after());
    check_removal([&before, &after], new, arguments.allow_empty)?;
    let put = new.subscriptions().map(|subscription| &subscription.name).collect();
    let problems = new_problems(&before, &after, &put);
    if !problems.is_empty() {
        problems.iter().for_each(note);
        return Ok(ExitCode::FAILURE);
    }
    let in_use = comparison.in_use();
    print_changes(&in_use, &after)?;
    let [old, new] = comparison.mappings()?;
    if print_mappings([&old, &new])? {
        note(format_args!(
            "subscriptions that were applied before keep the address that a reference had then: apply their files again"
        ));
    }
    if comparison.left() > 0 {
        let left = comparison.left();
        note(format_args!(
            "{left} entries of {owner:?} are not in the files: --prune removes them"
        ));
    }
    for name in comparison.without_pointer() {
        out(&format!(
            "the pointer of the namespace {} is missing: it is written again, and what the namespace has is in use again\n",
            text::line(name)
        ))?;
    }
    if comparison.is_empty() {
        out(&format!("{folder}: nothing to do, it is up to date\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !may_replace(arguments.yes, &folder.to_string())? {
        return Ok(ExitCode::FAILURE);
    }
    key_sets::write(&folder.storage, &in_use, &after).await?;
    comparison.commit(&who(owner), print_committed).await?;
    out(&format!("{folder}: applied\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints that all subscriptions of a deployment would be removed, if no name of them stays, and refuses files without
/// any, unless they are allowed.
fn check_removal(
    [current, after]: [&Catalogue; 2],
    files: &Catalogue,
    allow_empty: bool,
) -> anyhow::Result<()> {
    let is_empty = |of: &Catalogue| of.subscriptions().next().is_none();
    let is_removed = |of: &Arc<Subscription>| after.subscription(&of.name).is_none();
    if !is_empty(current) && current.subscriptions().all(is_removed) {
        note("apply would remove all current subscriptions");
    }
    if is_empty(files) && !allow_empty {
        return Err(usage_error(
            "the files contain no subscription; apply them with --allow-empty",
        ));
    }
    Ok(())
}

/// What was written of a namespace.
pub(crate) fn print_committed(namespace: &str, committed: &Committed) -> anyhow::Result<()> {
    let Committed { number, objects_written, bytes_written, unannounced, .. } = committed;
    let name = text::line(namespace);
    if let Some(why) = unannounced {
        note(format_args!(
            "{name}: the hint could not be written, so it is five minutes until all processes use the change: {why}"
        ));
    }
    match objects_written {
        0 => out(&format!("{name}: nothing to do, version {number} has it\n")),
        _ => out(&format!(
            "{name}: version {number}, {objects_written} objects, {bytes_written} bytes\n"
        )),
    }
}

/// The current subscriptions, as far as they can be read.
pub(crate) fn current_catalogue(store: &SubscriptionStore, text: Option<&str>) -> Catalogue {
    let Some(text) = text else {
        note(format_args!("{}: does not exist yet", store.name()));
        return Catalogue::default();
    };
    let reading = dialects::read(&[Source { name: &store.name(), text }]);
    if have_errors(&reading.findings) {
        print_findings(&reading.findings);
        note(format_args!(
            "{}: the current file has errors; only subscriptions without an error are compared",
            store.name()
        ));
    }
    reading.catalogue
}

/// Prints the difference by subscription and field; returns whether anything is removed.
pub(crate) fn print_changes(old: &Catalogue, new: &Catalogue) -> anyhow::Result<bool> {
    let changes = diff(old, new);
    let restricts = |of: &Catalogue| of.settings().secrets.rules().is_some();
    match (restricts(old), restricts(new)) {
        (false, true) => out("+ SecretPolicy\n    a secret may be sent only where it is listed\n")?,
        (true, false) => out("- SecretPolicy\n    every secret may be sent anywhere\n")?,
        (true, true) | (false, false) if changes.is_empty() => out("no subscription changes\n")?,
        (true, true) | (false, false) => {}
    }
    for (subject, change) in &changes {
        out(&describe(subject, change))?;
    }
    Ok(changes.iter().any(|(_, change)| *change == Change::Removed))
}

/// A change in lines; a line end within a value would look like another change.
fn describe(subject: &Subject, change: &Change) -> String {
    let name = text::line(&subject.to_string());
    let field = |field: &str, value: String| format!("    {field}: {}\n", text::line(&value));
    let (mark, fields): (_, String) = match change {
        Change::Added(shown) => {
            ("+", shown.iter().map(|(name, value)| field(name, value.clone())).collect())
        }
        Change::Changed(changes) => {
            let changed = |of: &FieldChange| field(&of.field, format!("{} -> {}", of.old, of.new));
            ("~", changes.iter().map(changed).collect())
        }
        Change::Removed => ("-", field("warning", consequence(subject).to_owned())),
    };
    format!("{mark} {name}\n{fields}")
}

/// The consequence of a removal.
fn consequence(subject: &Subject) -> &'static str {
    match subject {
        Subject::Secrets(_) => {
            "its hosts no longer may have it; if no entry of a SecretPolicy is left, every secret may be sent anywhere"
        }
        Subject::Notifications => {
            "notices about destinations and dead letters are no longer published"
        }
        Subject::Topic(_) => "events published to it become dead letters (TopicNotFound)",
        Subject::Subscription(_) => {
            "removed; its deliveries that wait for a retry become dead letters (SubscriptionNotFound)"
        }
    }
}

/// Whether to replace: asks on a terminal, unless `yes`.
pub(crate) fn may_replace(yes: bool, what: &str) -> anyhow::Result<bool> {
    may_proceed(yes, &format!("replace {}?", text::line(what)))
}
