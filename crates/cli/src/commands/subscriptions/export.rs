//! `lastmile subscriptions export`: prints the content of a deployment as files that can be
//! applied.

use std::process::ExitCode;

use anyhow::bail;
use delivery::native::documents;
use delivery::subscription::catalogue::Catalogue;

use crate::operations::files::{have_errors, print_findings};
use crate::operations::place::{Place, SubscriptionsPlace};
use crate::operations::topics::{Topics, Wanted, read};
use crate::terminal::help::examples;
use crate::terminal::output::out_raw;

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/reference/storage.md",
        "lastmile subscriptions export --stack orders-prod > subscriptions.yaml",
        "lastmile subscriptions export --owner billing \\\n      --to s3://config-bucket/subscriptions/",
    )
)]
pub(super) struct Arguments {
    #[command(flatten)]
    place: SubscriptionsPlace,
    /// Export only documents of this owner
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { place, owner } = arguments;
    let location = Place::from(place).subscriptions().await?;
    let deployed = read(&location, Wanted::All).await?;
    print_findings(&deployed.reading.findings);
    let all = &deployed.reading.catalogue;
    let mut exported = Catalogue::default();
    let is_wanted =
        |found_owner: Option<&str>| owner.as_deref().is_none_or(|owner| found_owner == Some(owner));
    for topic in all.topics() {
        // A topic without settings needs no document. Topics of other owners are omitted, because
        // `apply` would refuse to change them.
        if owner.is_none() || is_wanted(deployed.topic_owners.get(&topic.name).map(AsRef::as_ref)) {
            exported.add_topic(topic.clone());
        }
    }
    for subscription in all.subscriptions() {
        if is_wanted(deployed.owners.get(&subscription.name).map(AsRef::as_ref)) {
            exported.add_subscription((**subscription).clone());
        }
    }
    let topics = Topics::at(&location).await;
    exported.set_settings(match &owner {
        Some(owner) => topics.settings_of(owner).await?,
        None => all.settings().clone(),
    });
    let mut documents = documents(&exported);
    // Include the mapped addresses, although files of other owners may also use these addresses.
    documents.extend(topics.beside().await?.addresses(owner.as_deref()).document());
    if documents.is_empty() {
        bail!("{} contains nothing to export", deployed.source);
    }
    let texts = documents.iter().map(serde_saphyr::to_string).collect::<Result<Vec<_>, _>>()?;
    out_raw(texts.join("---\n").as_bytes())?;
    let failed = have_errors(&deployed.reading.findings);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
