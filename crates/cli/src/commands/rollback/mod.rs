//! `lastmile rollback`: restores an earlier version of the subscriptions; of a catalogue what one owner had there.
//!
//! The earlier version is written as a new one, so a rollback can be rolled back. A version with
//! errors is not restored.

mod in_catalogue;

use std::process::ExitCode;

use dialects::Source;

use crate::commands::apply::{current_catalogue, may_replace, print_changes};
use crate::files::{have_errors, print_findings, usage_error};
use crate::key_sets;
use crate::output::out;
use crate::store::{SubscriptionStore, Target};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    /// In a catalogue: the namespace
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// In a catalogue: whose entries are restored; what other owners have stays as it is
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// The version to restore, in a catalogue its number; without it, the one before the current
    #[arg(long, value_name = "ID")]
    version: Option<String>,
    /// Only list the versions
    #[arg(long)]
    list: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let location = arguments.target.location().await?;
    if location.is_catalogue() {
        return in_catalogue::run(arguments, &location).await;
    }
    if arguments.namespace.is_some() || arguments.owner.is_some() {
        return Err(usage_error(
            "--namespace and --owner are for catalogues, and a file is restored as a whole",
        ));
    }
    let store = SubscriptionStore::at(&location).await;
    let versions = store.versions().await?;
    for version in &versions {
        let mark = if version.is_current { "*" } else { " " };
        out(&format!("{mark} {}  {}\n", version.id, version.description))?;
    }
    if arguments.list {
        return Ok(ExitCode::SUCCESS);
    }
    let selected = match &arguments.version {
        Some(id) => versions.iter().find(|version| version.id == *id),
        // The newest come first, so this is the one before the current.
        None => versions.iter().find(|version| !version.is_current),
    };
    let Some(version) = selected else {
        anyhow::bail!("{}: there is no such version", store.name());
    };
    let text = store.read_version(&version.id).await?;
    let earlier = dialects::read(&[Source { name: &store.name(), text: &text }]);
    // It may be older than a rule that it breaks now.
    if have_errors(&earlier.findings) {
        print_findings(&earlier.findings);
        anyhow::bail!("{}: version {} has errors and is not restored", store.name(), version.id);
    }
    let current = current_catalogue(&store, store.read().await?.as_deref());
    print_changes(&current, &earlier.catalogue)?;
    if !may_replace(arguments.yes, &format!("{} with version {}", store.name(), version.id))? {
        return Ok(ExitCode::FAILURE);
    }
    key_sets::write(store.storage(), &current, &earlier.catalogue).await?;
    store.write(&text).await?;
    out(&format!("{}: version {} is restored\n", store.name(), version.id))?;
    Ok(ExitCode::SUCCESS)
}
