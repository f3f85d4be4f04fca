//! `lastmile subscriptions put` and `delete`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use adapters::live_catalogue::entries::{
    DEPLOYMENT, Entries, entries_of, owner_of, subscription_key, topic_key, topic_of,
};
use adapters::machine::Machine;
use catalogue::{Changes, Entry, ReadError, Snapshot};
use clap::builder::NonEmptyStringValueParser;
use delivery::ports::Clock as _;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::{SubscriptionName, TopicName};
use delivery::subscription::secret_policy::SecretPolicy;
use thiserror::Error;

use super::OpenCatalogue;
use crate::commands::apply::print_committed;
use crate::comparison::{failed, who, with_wanted};
use crate::confirm::may_proceed;
use crate::deployment::{DeploymentEntries, new_problems};
use crate::files::{Files, have_errors, print_findings, usage_error};
use crate::key_sets;
use crate::lints::with_lints;
use crate::store::Target;

#[derive(Debug, clap::Args)]
pub(super) struct PutArgs {
    /// Files of subscriptions
    #[arg(short = 'f', long = "file", required = true, num_args = 1.., value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    target: Target,
    /// Whose these are: only entries of this owner are replaced
    #[arg(long, value_name = "NAME", default_value = "files", value_parser = NonEmptyStringValueParser::new())]
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
    #[arg(long, value_name = "NAME", default_value = "files", value_parser = NonEmptyStringValueParser::new())]
    owner: String,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// Why an entry is not changed.
#[derive(Debug, Error)]
enum NotChanged {
    #[error("{key} belongs to {owner:?}: change it with --owner {owner:?}")]
    Foreign { key: String, owner: String },
    #[error("the subscriptions do not suit what others applied\n{0}")]
    Unsuited(String),
    #[error("{0}")]
    Unreadable(String),
    #[error("there is no subscription {0}")]
    Missing(SubscriptionName),
    #[error(transparent)]
    Unread(#[from] ReadError),
}

pub(super) async fn put(arguments: PutArgs) -> anyhow::Result<ExitCode> {
    let files = Files::read(&arguments.files)?;
    let deployed =
        DeploymentEntries::at(&arguments.target.location().await?, &arguments.owner, false).await?;
    let reading = files.reading_for(&deployed.for_files);
    let findings = with_lints(&reading, files.names(), Machine.now_ms(), None)?;
    print_findings(&findings);
    if have_errors(&findings) {
        return Ok(ExitCode::FAILURE);
    }
    // They count for these files only, but not against what others say.
    deployed.own(reading.destinations)?;
    let wanted = entries_of(&arguments.owner, &reading.catalogue);
    if wanted.contains_key(DEPLOYMENT) {
        return Err(usage_error(
            "the publishers of topics (from), Notifications and SecretPolicy belong to the deployment: use lastmile apply",
        ));
    }
    let catalogue = OpenCatalogue::of(&arguments.target).await?;
    catalogue.mark().await?;
    let secrets = &deployed.for_files.secrets;
    for (name, entries) in wanted {
        let changes = async |snapshot: Snapshot| {
            let mut changes = Changes::default();
            for (key, value) in &entries {
                is_owned(&catalogue, &name, &snapshot, key, &arguments.owner).await?;
                changes.put(key.as_str(), value.as_str());
            }
            let [before, after] = topics(&catalogue, &name, &snapshot, &entries, secrets).await?;
            let put = reading.catalogue.subscriptions().map(|subscription| &subscription.name);
            // Those of another namespace are not in this one.
            let put = put.filter(|of| of.topic.namespace == name).collect();
            match &new_problems(&before, &after, &put)[..] {
                [] => Ok(changes),
                problems => Err(NotChanged::Unsuited(problems.join("\n"))),
            }
        };
        let namespace = catalogue.namespace(&name);
        let committed = namespace.commit(&Machine, &who(&arguments.owner), changes).await;
        print_committed(&name, &committed.map_err(|error| failed(&name, error))?)?;
    }
    // Afterwards, since only then is it known whose the subscriptions are. What one has no longer is not known here:
    // `apply` withdraws it.
    key_sets::write(&catalogue.folder.storage, &Catalogue::default(), &reading.catalogue).await?;
    Ok(ExitCode::SUCCESS)
}

/// The topics that entries of a namespace belong to, as they are and with these entries: what they say of themselves,
/// and all of their subscriptions where that changes.
async fn topics(
    catalogue: &OpenCatalogue,
    namespace: &str,
    snapshot: &Snapshot,
    entries: &Entries,
    secrets: &SecretPolicy,
) -> Result<[Catalogue; 2], NotChanged> {
    let (mut before, mut after) = (Catalogue::default(), Catalogue::default());
    before.restrict_secrets(secrets.clone());
    after.restrict_secrets(secrets.clone());
    let topic = |key: &str| key.split_once('/').map(|(topic, _)| topic.to_owned());
    for topic in entries.keys().filter_map(|key| topic(key)).collect::<BTreeSet<String>>() {
        let (key, stored) = (topic_key(&topic), catalogue.namespace(namespace));
        let current = match entries.contains_key(&key) {
            true => stored.topic(snapshot, &topic).await?.to_vec(),
            false => {
                let own = stored.entry(snapshot, &key).await?;
                own.map(|value| Entry { key: key.as_str().into(), value }).into_iter().collect()
            }
        };
        let new = entries.range(key.clone()..).take_while(|(of, _)| of.starts_with(&key));
        let name = TopicName { namespace: namespace.to_owned(), topic };
        if let Ok(Some(topic)) = topic_of(&name, &current) {
            before.add_whole_topic(topic);
        }
        let with_new = topic_of(&name, &with_wanted(current.iter(), new));
        let with_new = with_new.map_err(NotChanged::Unreadable)?;
        with_new.into_iter().for_each(|topic| after.add_whole_topic(topic));
    }
    Ok([before, after])
}

pub(super) async fn delete(arguments: DeleteArgs) -> anyhow::Result<ExitCode> {
    let DeleteArgs { name, target, owner, yes } = arguments;
    let catalogue = OpenCatalogue::of(&target).await?;
    let (namespace, key) = (&name.topic.namespace, subscription_key(&name));
    if namespace == DEPLOYMENT {
        return Err(usage_error(
            "this is no subscription but belongs to the deployment: remove it from its files and use lastmile apply --prune",
        ));
    }
    if !may_proceed(yes, &format!("remove {name} from {}?", catalogue.folder))? {
        return Ok(ExitCode::FAILURE);
    }
    let changes = async |snapshot: Snapshot| {
        if !is_owned(&catalogue, namespace, &snapshot, &key, &owner).await? {
            return Err(NotChanged::Missing(name.clone()));
        }
        let mut changes = Changes::default();
        changes.remove(key.as_str());
        Ok(changes)
    };
    let committed = catalogue.namespace(namespace).commit(&Machine, &who(&owner), changes).await;
    print_committed(namespace, &committed.map_err(|error| failed(namespace, error))?)?;
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
