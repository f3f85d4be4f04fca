//! Declares each option that selects a deployment, and the combinations of these options that
//! commands accept.
//!
//! An option has the same help and the same meaning in every command. Each combination converts to
//! a [`Place`].

use std::path::PathBuf;
use std::str::FromStr;

use adapters::live_topics::Location;
use clap::{ArgGroup, Args};
use delivery::address::http_url;
use url::Url;

use super::Place;
use crate::terminal::help::LOCATION;

/// The clap ids of the options that select anything except a stack. If one of these options is
/// given, the stack of the environment is not used.
pub(crate) const OTHER_PLACES: [&str; 5] = ["container", "ingress", "queue_url", "table", "to"];

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StackArg {
    /// CloudFormation stack of the deployment; by default LASTMILE_STACK
    #[arg(long, value_name = "NAME", help_heading = LOCATION)]
    pub(super) stack: Option<String>,
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ToArg {
    /// Location of the deployment's subscriptions: s3://bucket/prefix/, file:///folder/, or the
    /// folder in which `lastmile dev` was started
    #[arg(long, value_name = "URI", help_heading = LOCATION, conflicts_with = "stack")]
    pub(super) to: Option<To>,
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TableArg {
    /// DynamoDB table with the states of destinations, for --to s3://…: output TableName of the
    /// stack. Not needed with --stack
    #[arg(long, value_name = "NAME", help_heading = LOCATION, conflicts_with = "stack")]
    pub(super) table: Option<String>,
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ContainerArg {
    /// Container of dead letters: s3://BUCKET[/PREFIX] or a folder. By default the container of the
    /// stack; without a stack, .lastmile/s3/dead-letters
    #[arg(long, value_name = "CONTAINER", help_heading = LOCATION)]
    pub(super) container: Option<String>,
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct QueueUrlArg {
    /// URL of the queue: the events queue for publish, the retry queue for replay, the last-resort
    /// queue for rescue. By default that of the stack; without a stack, that of `lastmile dev`
    #[arg(long, value_name = "URL", help_heading = LOCATION, value_parser = http_url)]
    pub(super) queue_url: Option<Url>,
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct IngressArg {
    /// URL of an HTTP ingress to use instead of a queue, such as
    /// http://127.0.0.1:8080/topics/shop/orders
    #[arg(long, value_name = "URL", help_heading = LOCATION, value_parser = http_url, conflicts_with_all = ["queue_url", "to", "stack"])]
    pub(super) ingress: Option<Url>,
}

/// The value of `--to`.
#[derive(Debug, Clone)]
pub(super) enum To {
    /// A bucket or a folder with the subscriptions of a deployment.
    Subscriptions(Location),
    /// The folder in which `lastmile dev` runs, or its data folder.
    Dev(PathBuf),
}

impl FromStr for To {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.contains("://") {
            true => Location::parse(text).map(Self::Subscriptions),
            false => Ok(Self::Dev(text.into())),
        }
    }
}

/// The options of a command that needs the subscriptions of a deployment.
#[derive(Debug, Clone, Args)]
#[command(group(ArgGroup::new("deployment").args(["to", "stack"]).required(true)))]
pub(crate) struct SubscriptionsPlace {
    #[command(flatten)]
    to: ToArg,
    #[command(flatten)]
    stack: StackArg,
}

/// The options of a command that uses the subscriptions of a deployment and the state of its
/// destinations.
#[derive(Debug, Clone, Args)]
pub(crate) struct DestinationsPlace {
    #[command(flatten)]
    to: ToArg,
    #[command(flatten)]
    table: TableArg,
    #[command(flatten)]
    stack: StackArg,
}

/// The options of a command that uses dead letters.
#[derive(Debug, Clone, Args)]
pub(crate) struct DeadLettersPlace {
    #[command(flatten)]
    container: ContainerArg,
    #[command(flatten)]
    stack: StackArg,
}

/// The options of a command that moves dead letters from or to a queue.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReplayPlace {
    #[command(flatten)]
    container: ContainerArg,
    #[command(flatten)]
    queue_url: QueueUrlArg,
    #[command(flatten)]
    stack: StackArg,
}

/// The options of a command that publishes events.
#[derive(Debug, Clone, Args)]
pub(crate) struct PublishPlace {
    #[command(flatten)]
    queue_url: QueueUrlArg,
    #[command(flatten)]
    ingress: IngressArg,
    #[command(flatten)]
    to: ToArg,
    #[command(flatten)]
    stack: StackArg,
}

impl From<StackArg> for Place {
    fn from(stack: StackArg) -> Self {
        Self { stack, ..Self::default() }
    }
}

impl From<SubscriptionsPlace> for Place {
    fn from(SubscriptionsPlace { to, stack }: SubscriptionsPlace) -> Self {
        Self { to, stack, ..Self::default() }
    }
}

impl From<DestinationsPlace> for Place {
    fn from(DestinationsPlace { to, table, stack }: DestinationsPlace) -> Self {
        Self { to, table, stack, ..Self::default() }
    }
}

impl From<DeadLettersPlace> for Place {
    fn from(DeadLettersPlace { container, stack }: DeadLettersPlace) -> Self {
        Self { container, stack, ..Self::default() }
    }
}

impl From<ReplayPlace> for Place {
    fn from(ReplayPlace { container, queue_url, stack }: ReplayPlace) -> Self {
        Self { container, queue_url, stack, ..Self::default() }
    }
}

impl From<PublishPlace> for Place {
    fn from(PublishPlace { queue_url, ingress, to, stack }: PublishPlace) -> Self {
        Self { queue_url, ingress, to, stack, ..Self::default() }
    }
}
