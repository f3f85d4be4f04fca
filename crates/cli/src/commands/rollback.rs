//! `lastmile rollback`: restores an earlier version of the subscriptions.
//!
//! The earlier version is written as a new one, so a rollback can be rolled back. A version with
//! errors is not restored.

use std::process::ExitCode;

use delivery::manifest::{self, Source};

use crate::commands::apply::{current_catalogue, may_replace, print_changes};
use crate::files::{have_errors, print_findings};
use crate::output::out;
use crate::store::Target;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    /// The version to restore; without it, the one before the current
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
    let store = arguments.target.open().await?;
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
    let earlier = manifest::read(&[Source { name: &store.name(), text: &text }]);
    // It may be older than a rule that it breaks now.
    if have_errors(&earlier.findings) {
        print_findings(&earlier.findings);
        anyhow::bail!("{}: version {} has errors and is not restored", store.name(), version.id);
    }
    print_changes(&current_catalogue(&store, store.read().await?.as_deref()), &earlier.catalogue)?;
    if !may_replace(arguments.yes, &format!("{} with version {}", store.name(), version.id))? {
        return Ok(ExitCode::FAILURE);
    }
    store.write(&text).await?;
    out(&format!("{}: version {} is restored\n", store.name(), version.id))?;
    Ok(ExitCode::SUCCESS)
}
