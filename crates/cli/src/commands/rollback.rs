//! `lastmile rollback`: brings back what the subscriptions said before.
//!
//! An earlier version is written once more on top, so that a rollback can itself be rolled back.
//! What this program cannot read is not brought back.

use std::process::ExitCode;

use delivery::manifest;
use delivery::manifest::Source;

use crate::commands::apply::{Target, confirmed, current, show};
use crate::files::{have_errors, tell, usage};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    /// The version to bring back; without it, the one before the current
    #[arg(long, value_name = "ID")]
    version: Option<String>,
    /// Only list the versions
    #[arg(long)]
    list: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let store = arguments.target.open().await?;
    let versions = store.versions().await?;
    for version in &versions {
        println!(
            "{} {}  {}",
            if version.is_current { "*" } else { " " },
            version.id,
            version.description
        );
    }
    if arguments.list {
        return Ok(ExitCode::SUCCESS);
    }
    let meant = match &arguments.version {
        Some(id) => versions.iter().find(|version| version.id == *id),
        None => versions.iter().find(|version| !version.is_current),
    };
    let Some(version) = meant else {
        anyhow::bail!("{}: there is no such earlier version", store.name());
    };
    let text = store.read_version(&version.id).await?;
    let earlier = manifest::read(&[Source { name: &store.name(), text: &text }]);
    if have_errors(&earlier.findings) {
        tell(&earlier.findings);
        anyhow::bail!(
            "{}: the version {} has errors and is not brought back",
            store.name(),
            version.id
        );
    }
    show(&current(&store, store.read().await?.as_deref()), &earlier.catalogue);
    match confirmed(arguments.yes, &format!("{} by the version {}", store.name(), version.id)) {
        Ok(true) => {}
        Ok(false) => return Ok(ExitCode::FAILURE),
        Err(problem) => return Ok(usage(problem)),
    }
    store.write(&text).await?;
    println!("{}: the version {} is back", store.name(), version.id);
    Ok(ExitCode::SUCCESS)
}
