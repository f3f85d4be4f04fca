//! Reads the current state of destinations, for commands that show it beside other data.

use std::sync::Arc;

use adapters::machine::Machine;
use adapters::table::DynamoTable;
use delivery::delivery::health::DestinationKey;
use delivery::ports::Clock as _;
use delivery::subscription::Subscription;
use serde_json::Value;

use super::entries::state;
use super::json::ListedJson;
use super::known::Destination;
use super::limits::{limits, states};
use super::place::table_of;
use super::state::next;

/// The options that name the location of the state. Without any of them, the state is not shown.
#[derive(Debug, clap::Args)]
pub(crate) struct NowArgs {
    /// Also show the current state of destinations in this deployed CloudFormation stack
    #[arg(long, value_name = "NAME")]
    stack: Option<String>,
    /// Also show the current state in the `lastmile dev` that runs in this folder
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["stack", "table"])]
    config: Option<String>,
    /// Also show the current state in this DynamoDB table
    #[arg(long, value_name = "NAME", conflicts_with = "stack")]
    table: Option<String>,
}

/// The current state of a destination, as text and as JSON.
pub(crate) struct Now {
    /// Text for display: conditions with their beginning, the next step, and the limits.
    pub(crate) lines: Vec<String>,
    /// The JSON object that `destinations list` prints for this destination.
    pub(crate) json: Value,
}

impl NowArgs {
    /// Returns the name of the stack, if the options name one.
    pub(crate) fn stack(&self) -> Option<&str> {
        self.stack.as_deref()
    }

    /// Reads the current states of the destinations of these subscriptions, in the same order. Each
    /// state is `None` if no option names a deployment.
    ///
    /// # Errors
    /// If storage does not respond, or contains an unreadable document.
    pub(crate) async fn of(self, all: &[Arc<Subscription>]) -> anyhow::Result<Vec<Option<Now>>> {
        let Self { stack, config, table } = self;
        let Some(table) = table_of(stack, config, table).await? else {
            return Ok(all.iter().map(|_| None).collect());
        };
        let mut found = Vec::new();
        for subscription in all {
            found.push(Some(now(&table, subscription).await?));
        }
        Ok(found)
    }
}

async fn now(table: &DynamoTable, subscription: &Arc<Subscription>) -> anyhow::Result<Now> {
    let key = DestinationKey::of_subscription(subscription);
    let namespace = subscription.name.topic.namespace.clone();
    let destination = Destination {
        key,
        state: state(table, &namespace, key).await?,
        namespace,
        address: subscription.destination.display(),
        subscriptions: vec![Arc::clone(subscription)],
    };
    let (known, now_ms) = (destination.state.as_ref(), Machine.now_ms());
    let mut lines = states(known, now_ms);
    lines.extend(known.map(|known| next(known, now_ms)));
    lines.extend(limits(table, &destination, now_ms).await?);
    Ok(Now { lines, json: serde_json::to_value(ListedJson::new(&destination, now_ms))? })
}
