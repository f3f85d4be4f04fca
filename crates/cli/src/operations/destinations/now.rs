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
use super::state::next;

/// The current state of a destination, as text and as JSON.
pub(crate) struct Now {
    /// Lines for display: each unhealthy condition and when it began, the time of the next attempt,
    /// and the limits.
    pub(crate) lines: Vec<String>,
    /// The JSON object that `destinations list` prints for this destination.
    pub(crate) json: Value,
}

/// Reads the current states of the destinations of these subscriptions, in the same order. Each
/// state is `None` without a table.
///
/// # Errors
/// If storage does not respond, or contains an unreadable document.
pub(crate) async fn states_now(
    table: Option<&DynamoTable>,
    all: &[Arc<Subscription>],
) -> anyhow::Result<Vec<Option<Now>>> {
    let Some(table) = table else { return Ok(all.iter().map(|_| None).collect()) };
    let mut found = Vec::new();
    for subscription in all {
        found.push(Some(now(table, subscription).await?));
    }
    Ok(found)
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
