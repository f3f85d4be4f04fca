//! `lastmile subscriptions list` and `get`: print the subscriptions of a deployment.

use std::process::ExitCode;
use std::sync::Arc;

use delivery::subscription::Subscription;
use delivery::subscription::name::{SubscriptionName, TopicName};
use serde_json::json;

use crate::operations::files::{have_errors, print_findings};
use crate::operations::place::{Place, SubscriptionsPlace};
use crate::operations::topics::{Deployed, Topics, Wanted, read};
use crate::operations::who_gets::who_gets;
use crate::terminal::help::{OUTPUT, examples};
use crate::terminal::output::{Output, note, out_json};
use crate::terminal::text;

const COLUMNS: [&str; 4] = ["subscription", "owner", "destination", "filter"];

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "lastmile subscriptions list [OPTIONS] <--to <URI>|--stack <NAME>> \\\n           [NS[/TOPIC]]",
    after_long_help = examples!(
        "docs/reference/storage.md",
        "lastmile subscriptions list --stack orders-prod",
        "lastmile subscriptions list shop --stack orders-prod",
        "lastmile subscriptions list shop/orders --to s3://config-bucket/subscriptions/",
        "lastmile subscriptions list shop/orders --who-gets event.json \\\n      --stack orders-prod",
    )
)]
pub(super) struct Arguments {
    /// Namespace or topic whose subscriptions to list. By default, all
    #[arg(value_name = "NS[/TOPIC]")]
    name: Option<String>,
    #[command(flatten)]
    place: SubscriptionsPlace,
    /// List only subscriptions that get an event of this file; - is standard input
    #[arg(long, value_name = "FILE")]
    who_gets: Option<String>,
    /// Output format
    #[arg(long, default_value = "table", value_name = "FORMAT", help_heading = OUTPUT)]
    output: Output,
}

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/reference/storage.md",
        "lastmile subscriptions get shop/orders/billing --stack orders-prod",
        "lastmile subscriptions get shop/orders/billing \\\n      --to s3://config-bucket/subscriptions/",
    )
)]
pub(super) struct GetArgs {
    /// Subscription to print
    #[arg(value_name = "NS/TOPIC/NAME")]
    name: SubscriptionName,
    #[command(flatten)]
    place: SubscriptionsPlace,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let location = Place::from(arguments.place).subscriptions().await?;
    let is_listed = |topic: &TopicName| match &arguments.name {
        Some(name) if name.contains('/') => topic.to_string() == *name,
        Some(namespace) => topic.namespace == *namespace,
        None => true,
    };
    let names = Topics::at(&location).await.names().await?;
    let wanted = Wanted::Topics(names.into_iter().filter(is_listed).collect());
    let Deployed { reading, source, owners, .. } = read(&location, wanted).await?;
    print_findings(&reading.findings);
    let has_topics = reading.catalogue.topics().next().is_some();
    let file = arguments.who_gets.as_ref().filter(|_| has_topics);
    let getting = file.map(|file| who_gets(file, &reading.catalogue));
    let getting = getting.transpose()?;
    let is_wanted = |subscription: &&Arc<Subscription>| {
        getting.as_ref().is_none_or(|names| names.contains(&subscription.name.to_string()))
    };
    let listed: Vec<&Arc<Subscription>> =
        reading.catalogue.subscriptions().filter(is_wanted).collect();
    let row = |subscription: &&Arc<Subscription>| {
        let owner = owners.get(&subscription.name).map(ToString::to_string).unwrap_or_default();
        [
            subscription.name.to_string(),
            owner,
            subscription.destination.display(),
            subscription.filter.to_string(),
        ]
    };
    let json = |subscription: &&Arc<Subscription>| {
        let [name, owner, destination, filter] = row(subscription);
        json!({"name": name, "owner": owner, "destination": destination, "filter": filter})
    };
    let table = || {
        let mut table = text::table(&COLUMNS);
        for subscription in &listed {
            table.add_row(row(subscription));
        }
        format!("{table}\n")
    };
    arguments.output.write(listed.is_empty(), || listed.iter().map(json).collect(), table)?;
    if listed.is_empty() {
        let condition = if getting.is_some() { " that matches the event" } else { "" };
        let whose = arguments.name.map(|name| format!(" of {name}")).unwrap_or_default();
        note(format!("there is no subscription{whose} in {source}{condition}"));
    }
    let failed = listed.is_empty() || have_errors(&reading.findings);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

pub(super) async fn get(arguments: GetArgs) -> anyhow::Result<ExitCode> {
    let GetArgs { name, place } = arguments;
    let topics = Topics::at(&Place::from(place).subscriptions().await?).await;
    let object = topics.current(&name.topic).await?.object.unwrap_or_default();
    let Some(entry) = object.subscriptions.get(&name.name) else {
        anyhow::bail!("there is no subscription {name} in {}", topics.objects);
    };
    let entry: serde_json::Value = serde_json::from_str(entry)?;
    out_json(&serde_json::to_string_pretty(&entry)?)?;
    Ok(ExitCode::SUCCESS)
}
