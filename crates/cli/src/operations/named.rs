//! A subscription by its name, or the names that there are.

use std::sync::Arc;

use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::SubscriptionName;

use crate::terminal::usage::usage_error;

/// The subscription of this name.
pub(crate) fn named(
    catalogue: &Catalogue,
    name: &SubscriptionName,
) -> anyhow::Result<Arc<Subscription>> {
    catalogue.subscription(name).cloned().ok_or_else(|| {
        let names = catalogue.subscriptions().map(|of| of.name.to_string());
        usage_error(format!("there is no subscription {name}{}", listed(names)))
    })
}

/// The end of a message that something is not among these.
pub(crate) fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.map(|name| format!("\n  {name}")).collect();
    if names.is_empty() {
        ": the files have none".to_owned()
    } else {
        format!("; there are{}", names.concat())
    }
}
