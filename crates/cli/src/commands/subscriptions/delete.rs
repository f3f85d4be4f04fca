//! `lastmile subscriptions delete`.

use std::process::ExitCode;

use anyhow::bail;
use clap::builder::NonEmptyStringValueParser;
use delivery::subscription::name::SubscriptionName;

use crate::commands::apply::print_changed;
use crate::confirm::may_proceed;
use crate::store::Target;
use crate::topics::{Change, Changed, Topics};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The subscription, as namespace/topic/name
    #[arg(value_name = "NAME")]
    name: SubscriptionName,
    #[command(flatten)]
    target: Target,
    /// The owner of the subscription
    #[arg(long, value_name = "NAME", default_value = "files", value_parser = NonEmptyStringValueParser::new())]
    owner: String,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { name, target, owner, yes } = arguments;
    let topics = Topics::at(&target.location().await?).await;
    if !may_proceed(yes, &format!("remove {name} from {}?", topics.objects))? {
        return Ok(ExitCode::FAILURE);
    }
    let changed = topics.change(&name.topic, &owner, &Change::Remove(name.name.clone())).await?;
    if changed == Changed::Nothing {
        bail!("there is no subscription {name}");
    }
    print_changed(&name.topic, changed)?;
    Ok(ExitCode::SUCCESS)
}
