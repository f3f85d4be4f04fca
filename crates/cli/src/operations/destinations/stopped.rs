//! Finds subscriptions that send no requests because they are paused or their destination is
//! disabled.
//!
//! Separate because replays need the result: an event that is sent to a stopped subscription
//! becomes a dead letter again.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use delivery::delivery::health::DestinationKey;
use delivery::subscription::name::SubscriptionName;

use super::deployment::Deployment;
use crate::operations::shell;
use crate::operations::stack::Stack;
use crate::operations::topics::Wanted;

/// Finds the subscriptions that are paused or have a disabled destination. Returns for each name a
/// text that describes the state and the remedy.
///
/// # Errors
/// If the deployment cannot be read.
pub(crate) async fn stopped(
    stack: &Stack,
    names: &BTreeSet<SubscriptionName>,
) -> anyhow::Result<BTreeMap<String, String>> {
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    stopped_at(&Deployment::of_stack(stack).await?, names).await
}

/// Works like [`stopped`], for a deployment that is already open.
///
/// # Errors
/// If the deployment cannot be read.
pub(crate) async fn stopped_at(
    deployment: &Deployment,
    names: &BTreeSet<SubscriptionName>,
) -> anyhow::Result<BTreeMap<String, String>> {
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let subscriptions = deployment.subscriptions(Wanted::topics_of(names)).await;
    if let Some(problem) = subscriptions.problem {
        bail!("the paused subscriptions cannot be read: {problem}");
    }
    let news = deployment.news().await?;
    let mut stopped = BTreeMap::new();
    for subscription in names.iter().filter_map(|name| subscriptions.catalogue.subscription(name)) {
        let name = subscription.name.to_string();
        if subscription.paused {
            let remedy = format!("{name} is paused: set `paused: false`, and apply its file first");
            stopped.insert(name, remedy);
        } else if news.disabled().contains(&DestinationKey::of_subscription(subscription)) {
            let address = subscription.destination.display();
            let enable = shell::command(&["lastmile", "destinations", "enable", &name]);
            let remedy =
                format!("{name} delivers to {address}, which is disabled: run `{enable}` first");
            stopped.insert(name, remedy);
        }
    }
    Ok(stopped)
}
