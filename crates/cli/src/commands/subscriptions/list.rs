//! `lastmile subscriptions list` and `get`.

use std::process::ExitCode;
use std::sync::Arc;

use adapters::live_catalogue::entries::{owner_of, subscription_key, topics_of};
use anyhow::Context as _;
use catalogue::Entry;
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::TopicSubscriptions;
use delivery::subscription::name::SubscriptionName;
use futures::TryStreamExt as _;
use serde_json::json;

use super::OpenCatalogue;
use crate::output::{Output, note, out_json};
use crate::store::Target;
use crate::text;

const COLUMNS: [&str; 4] = ["subscription", "owner", "destination", "filter"];

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// A namespace, or a topic as namespace/topic
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    target: Target,
    /// The format of the output
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Debug, clap::Args)]
pub(super) struct GetArgs {
    /// The subscription, as namespace/topic/name
    #[arg(value_name = "NAME")]
    name: SubscriptionName,
    #[command(flatten)]
    target: Target,
}

/// A subscription, and who applied it.
struct Listed {
    subscription: Arc<Subscription>,
    owner: String,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let catalogue = OpenCatalogue::of(&arguments.target).await?;
    let (name, topic) = match arguments.name.split_once('/') {
        Some((name, topic)) => (name, Some(topic)),
        None => (arguments.name.as_str(), None),
    };
    let listed = listed(&catalogue, name, topic).await;
    let listed = listed.with_context(|| format!("the namespace {name} cannot be read"))?;
    let is_in_use = listed.is_some();
    let listed = listed.unwrap_or_default();
    let json = |it: &Listed| {
        let Listed { subscription, owner } = it;
        json!({
            "name": subscription.name.to_string(),
            "owner": owner,
            "destination": subscription.destination.display(),
            "filter": subscription.filter.to_string(),
        })
    };
    let table = || {
        let mut table = text::table(&COLUMNS);
        for Listed { subscription, owner } in &listed {
            table.add_row([
                subscription.name.to_string(),
                owner.clone(),
                subscription.destination.display(),
                subscription.filter.to_string(),
            ]);
        }
        format!("{table}\n")
    };
    arguments.output.write(listed.is_empty(), || listed.iter().map(json).collect(), table)?;
    if listed.is_empty() {
        note(match is_in_use {
            true => {
                format!("there is no subscription of {} in {}", arguments.name, catalogue.folder)
            }
            false => catalogue.nothing_in_use(name),
        });
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

async fn listed(
    catalogue: &OpenCatalogue,
    name: &str,
    topic: Option<&str>,
) -> anyhow::Result<Option<Vec<Listed>>> {
    let namespace = catalogue.namespace(name);
    let Some(snapshot) = namespace.load(None).await? else { return Ok(None) };
    let entries: Vec<Entry> = match topic {
        Some(topic) => namespace.topic(&snapshot, topic).await?,
        None => namespace.entries(&snapshot).try_collect().await?,
    };
    let owner = |key: &str| {
        let at = entries.binary_search_by(|entry| (*entry.key).cmp(key)).ok()?;
        owner_of(&entries.get(at)?.value)
    };
    let topics: Result<Vec<_>, String> = topics_of(name, &entries).into_iter().collect();
    let topics = topics.map_err(anyhow::Error::msg)?;
    let subscriptions = topics.iter().flat_map(TopicSubscriptions::subscriptions);
    let listed = subscriptions.map(|subscription| Listed {
        owner: owner(&subscription_key(&subscription.name)).unwrap_or_default(),
        subscription: subscription.clone(),
    });
    Ok(Some(listed.collect()))
}

pub(super) async fn get(arguments: GetArgs) -> anyhow::Result<ExitCode> {
    let GetArgs { name, target } = arguments;
    let catalogue = OpenCatalogue::of(&target).await?;
    let namespace = catalogue.namespace(&name.topic.namespace);
    let Some(snapshot) = namespace.load(None).await? else {
        anyhow::bail!("{}", catalogue.nothing_in_use(&name.topic.namespace));
    };
    let Some(value) = namespace.entry(&snapshot, &subscription_key(&name)).await? else {
        anyhow::bail!("there is no subscription {name} in {}", catalogue.folder);
    };
    let value: serde_json::Value = serde_json::from_str(&value)?;
    out_json(&serde_json::to_string_pretty(&value)?)?;
    Ok(ExitCode::SUCCESS)
}
