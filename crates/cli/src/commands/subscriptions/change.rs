//! `lastmile subscriptions put` and `delete`.

use std::path::PathBuf;
use std::process::ExitCode;

use adapters::live_catalogue::entries::{DEPLOYMENT, entries_of, owner_of, subscription_key};
use adapters::machine::Machine;
use anyhow::Context as _;
use catalogue::{Changes, ReadError, Snapshot};
use delivery::ports::Clock as _;
use delivery::subscription::name::SubscriptionName;
use thiserror::Error;

use super::OpenCatalogue;
use crate::commands::apply::{NO_SECRET_POLICY, print_committed};
use crate::comparison::who;
use crate::files::{Files, have_errors, print_findings, usage_error};
use crate::lints::lints;
use crate::store::Target;

#[derive(Debug, clap::Args)]
pub(super) struct PutArgs {
    /// Files of subscriptions
    #[arg(short = 'f', long = "file", required = true, num_args = 1.., value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    target: Target,
    /// Whose these are: only entries of this owner are replaced
    #[arg(long, value_name = "NAME", default_value = "files")]
    owner: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct DeleteArgs {
    /// The subscription, as namespace/topic/name
    #[arg(value_name = "NAME")]
    name: SubscriptionName,
    #[command(flatten)]
    target: Target,
    /// Whose it is
    #[arg(long, value_name = "NAME", default_value = "files")]
    owner: String,
}

/// Why an entry is not changed.
#[derive(Debug, Error)]
enum NotChanged {
    #[error("{key} belongs to {owner:?}: change it with --owner {owner:?}")]
    Foreign { key: String, owner: String },
    #[error("there is no subscription {0}")]
    Missing(SubscriptionName),
    #[error(transparent)]
    Unread(#[from] ReadError),
}

pub(super) async fn put(arguments: PutArgs) -> anyhow::Result<ExitCode> {
    let files = Files::read(&arguments.files)?;
    let Some(reading) = files.valid_reading() else { return Ok(ExitCode::FAILURE) };
    let lints = lints(&reading, files.first(), Machine.now_ms(), None)?;
    print_findings(&lints);
    if have_errors(&lints) {
        return Ok(ExitCode::FAILURE);
    }
    if reading.has_secret_policy {
        return Err(usage_error(NO_SECRET_POLICY));
    }
    let wanted = entries_of(&arguments.owner, &reading.catalogue);
    if wanted.contains_key(DEPLOYMENT) {
        return Err(usage_error(
            "the publishers of topics (from) and Notifications belong to the deployment: use lastmile apply",
        ));
    }
    let catalogue = OpenCatalogue::of(&arguments.target).await?;
    catalogue.mark().await?;
    for (name, entries) in wanted {
        let changes = async |snapshot: Snapshot| {
            let mut changes = Changes::default();
            for (key, value) in &entries {
                is_owned(&catalogue, &name, &snapshot, key, &arguments.owner).await?;
                changes.put(key.as_str(), value.as_str());
            }
            Ok::<_, NotChanged>(changes)
        };
        let namespace = catalogue.namespace(&name);
        let committed = namespace.commit(&Machine, &who(&arguments.owner), changes).await;
        print_committed(
            &name,
            &committed.with_context(|| format!("the namespace {name} is not changed"))?,
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn delete(arguments: DeleteArgs) -> anyhow::Result<ExitCode> {
    let DeleteArgs { name, target, owner } = arguments;
    let catalogue = OpenCatalogue::of(&target).await?;
    let (namespace, key) = (&name.topic.namespace, subscription_key(&name));
    let changes = async |snapshot: Snapshot| {
        if !is_owned(&catalogue, namespace, &snapshot, &key, &owner).await? {
            return Err(NotChanged::Missing(name.clone()));
        }
        let mut changes = Changes::default();
        changes.remove(key.as_str());
        Ok(changes)
    };
    let committed = catalogue.namespace(namespace).commit(&Machine, &who(&owner), changes).await;
    print_committed(
        namespace,
        &committed.with_context(|| format!("the namespace {namespace} is not changed"))?,
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Whether the entry is there.
///
/// # Errors
/// When it belongs to somebody else, or cannot be read.
async fn is_owned(
    catalogue: &OpenCatalogue,
    namespace: &str,
    snapshot: &Snapshot,
    key: &str,
    owner: &str,
) -> Result<bool, NotChanged> {
    let Some(value) = catalogue.namespace(namespace).entry(snapshot, key).await? else {
        return Ok(false);
    };
    match owner_of(&value) {
        Some(of) if of == owner => Ok(true),
        of => Err(NotChanged::Foreign { key: key.to_owned(), owner: of.unwrap_or_default() }),
    }
}
