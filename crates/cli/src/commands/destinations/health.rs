//! The health of all destinations of the subscriptions on this machine, for the page of `lastmile dev`.

use std::collections::BTreeMap;
use std::path::Path;

use adapters::machine::Machine;
use delivery::delivery::health::DestinationKey;
use delivery::ports::Clock as _;

use super::known::Destination;
use super::place::{Place, PlaceArgs};
use super::show::limits;
use super::state::{conditions, next, since};
use crate::dev_page::{DestinationHealth, Health};
use crate::topics::Wanted;

/// The health of every destination in this folder of subscriptions, and of those with a stored state.
///
/// # Errors
/// When neither can be read.
pub(crate) async fn health_below(subscriptions: &Path) -> anyhow::Result<Health> {
    let config = subscriptions.display().to_string();
    let place = PlaceArgs { stack: None, config, table: None }.open().await?;
    let found = place.states().await?;
    let known = place.subscriptions(Wanted::All).await;
    let named = known.catalogue.subscriptions().map(|it| DestinationKey::of_subscription(it));
    let mut states: BTreeMap<DestinationKey, _> = named.map(|key| (key, None)).collect();
    states.extend(found.states.into_iter().map(|(key, state)| (key, Some(state))));
    let mut all = Vec::new();
    for (key, state) in states {
        if let Some(destination) = Destination::new(key, state, &known) {
            all.push(health(&place, destination).await?);
        }
    }
    // Unhealthy destinations first.
    all.sort_by_cached_key(|it| (it.conditions.is_empty(), it.address.clone()));
    let problems = found.problems.into_iter().map(|(_, problem)| problem).collect();
    Ok(Health { destinations: all, problems })
}

async fn health(place: &Place, destination: Destination) -> anyhow::Result<DestinationHealth> {
    let now_ms = Machine.now_ms();
    let state = destination.state.as_ref();
    let conditions = state.map(conditions).unwrap_or_default();
    let named = conditions.into_iter().map(|condition| {
        let colon = if condition.why.is_empty() { "" } else { ", " };
        let why = format!("since {}{colon}{}", since(condition.since_ms, now_ms), condition.why);
        (condition.name.to_owned(), why)
    });
    Ok(DestinationHealth {
        conditions: named.collect(),
        next: state.map_or_else(
            || "deliveries are attempted as they come".to_owned(),
            |state| next(state, now_ms),
        ),
        limits: limits(&place.table, &destination, now_ms).await?,
        subscriptions: destination.names(),
        address: destination.address,
    })
}
