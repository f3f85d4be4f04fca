//! Finds a subscription by its name. The error for an unknown name lists the existing ones.

use std::sync::Arc;

use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::SubscriptionName;

use crate::terminal::usage::usage_error;

pub(crate) fn named(
    catalogue: &Catalogue,
    name: &SubscriptionName,
) -> anyhow::Result<Arc<Subscription>> {
    catalogue.subscription(name).cloned().ok_or_else(|| {
        let names = catalogue.subscriptions().map(|subscription| subscription.name.to_string());
        usage_error(format!("there is no subscription {name}{}", listed(names)))
    })
}

/// Formats the list of existing names, which ends an error about an unknown name.
pub(crate) fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.map(|name| format!("\n  {name}")).collect();
    if names.is_empty() {
        "; the files contain none".to_owned()
    } else {
        format!("; available:{}", names.concat())
    }
}
