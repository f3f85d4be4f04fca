//! The state of a destination now, for a command that shows it beside something else.

use std::sync::Arc;

use adapters::machine::Machine;
use delivery::delivery::health::DestinationKey;
use delivery::ports::Clock as _;
use delivery::subscription::Subscription;
use serde_json::Value;

use super::json::ListedJson;
use super::known::Destination;
use super::place::{Place, PlaceArgs};
use super::show::states;
use super::state::next;

/// Where functions keep the state, if it is to be shown.
#[derive(Debug, clap::Args)]
pub(crate) struct NowArgs {
    /// Also shows the state of destinations now, as the functions of this CloudFormation stack know it
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    stack: Option<String>,
    /// The same, from the config bucket as s3://BUCKET, or from the folder of `lastmile dev`
    #[arg(long, value_name = "LOCATION")]
    config: Option<String>,
}

/// What is known of a destination now.
pub(crate) struct Now {
    /// For people: since when it is in which state, and what happens next.
    pub(crate) lines: Vec<String>,
    /// For tools: the same as `destinations list` has.
    pub(crate) json: Value,
}

impl NowArgs {
    /// The name of the stack, if one is given.
    pub(crate) fn stack(&self) -> Option<&str> {
        self.stack.as_deref()
    }

    /// What is known of the destinations of these subscriptions, in their order; nothing, if nobody asks.
    ///
    /// # Errors
    /// When storage does not answer, or holds what cannot be read.
    pub(crate) async fn of(self, all: &[Arc<Subscription>]) -> anyhow::Result<Vec<Option<Now>>> {
        let Self { stack, config } = self;
        let place = match (stack, config) {
            (None, None) => return Ok(all.iter().map(|_| None).collect()),
            (stack, config) => PlaceArgs { stack, config: config.unwrap_or_default() },
        };
        let place = place.open().await?;
        let mut found = Vec::new();
        for subscription in all {
            found.push(Some(now(&place, subscription).await?));
        }
        Ok(found)
    }
}

async fn now(place: &Place, subscription: &Arc<Subscription>) -> anyhow::Result<Now> {
    let key = DestinationKey::of(&subscription.destination.url);
    let destination = Destination {
        key,
        address: subscription.destination.display(),
        subscriptions: vec![Arc::clone(subscription)],
        state: place.document(&key.document()).await?,
    };
    let (state, now_ms) = (destination.state.as_ref(), Machine.now_ms());
    let mut lines = states(state, now_ms);
    lines.extend(state.map(|state| next(state, now_ms)));
    Ok(Now { lines, json: serde_json::to_value(ListedJson::new(&destination, now_ms))? })
}
