//! `lastmile subscriptions delete`: removes a subscription from a deployment.

use std::process::ExitCode;

use anyhow::bail;
use clap::builder::NonEmptyStringValueParser;
use delivery::subscription::name::SubscriptionName;

use crate::operations::change_record::RecordArgs;
use crate::operations::place::{Place, SubscriptionsPlace};
use crate::operations::topic_news;
use crate::operations::topics::{Change, Changed, Topics};
use crate::terminal::confirm::may_proceed;
use crate::terminal::help::{CONFIRMATION, examples};
use crate::terminal::output::note;
use crate::terminal::text;
use crate::views::changes::print_changed;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "lastmile subscriptions delete [OPTIONS] <--to <URI>|--stack <NAME>> \\\n           <NS/TOPIC/NAME>",
    after_long_help = examples!(
        "docs/reference/storage.md",
        "lastmile subscriptions delete shop/orders/billing --stack orders-prod",
        "lastmile subscriptions delete shop/orders/billing --owner billing --yes \\\n      --to s3://config-bucket/subscriptions/",
    )
)]
pub(super) struct Arguments {
    /// Subscription to remove
    #[arg(value_name = "NS/TOPIC/NAME")]
    name: SubscriptionName,
    #[command(flatten)]
    place: SubscriptionsPlace,
    /// Owner of the subscription
    #[arg(long, value_name = "NAME", default_value = "files", value_parser = NonEmptyStringValueParser::new())]
    owner: String,
    #[command(flatten)]
    record: RecordArgs,
    /// Do not ask for confirmation
    #[arg(long, help_heading = CONFIRMATION)]
    yes: bool,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { name, place, owner, record, yes } = arguments;
    let place = Place::from(place);
    let location = place.subscriptions().await?;
    let topics = Topics::at(&location).await;
    if !may_proceed(yes, &format!("remove {name} from {}?", topics.objects))? {
        return Ok(ExitCode::FAILURE);
    }
    let record = record.record(&location).await;
    let removal = Change::Remove(name.name.clone());
    let changed = topics.change(&name.topic, &owner, &removal, &record, None).await?;
    if changed == Changed::Nothing {
        bail!("there is no subscription {name}");
    }
    print_changed(&name.topic, changed)?;
    topic_news::tell(place.stack().await?, std::slice::from_ref(&name.topic)).await;
    let left = topics.current(&name.topic).await?.object;
    if left.is_some_and(|object| object.subscriptions.is_empty()) {
        note(text::line(&format!(
            "the topic {} now has no subscriptions; apply --prune removes the topic, and then \
             events published to it become dead letters",
            name.topic
        )));
    }
    Ok(ExitCode::SUCCESS)
}
