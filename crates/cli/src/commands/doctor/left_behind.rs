//! Finds dead letters that a stopped subscription has caused, and that are still open although the
//! subscription is active again.

use std::collections::BTreeSet;

use deadletters::{LEFT_BEHIND_READS_MAX, LeftBehind};
use delivery::delivery::reason::Reason;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::SubscriptionName;

use super::item::Item;
use crate::operations::container;
use crate::operations::destinations::stopped;
use crate::operations::set_aside;
use crate::operations::stack::Stack;
use crate::terminal::text;

const ITEM: &str = "left behind";

/// Returns one item for each subscription and reason, or no items if no dead letter is left behind.
pub(super) async fn examine(stack: &Stack, catalogue: Option<&Catalogue>) -> Vec<Item> {
    // Other items report missing subscriptions and a missing bucket.
    let (Some(catalogue), Some(_)) = (catalogue, stack.dead_letter_bucket()) else {
        return Vec::new();
    };
    match replayable(stack, catalogue).await {
        Ok(left) => items(&stack.name, &left),
        Err(why) => vec![Item::not_checked(ITEM, &why)],
    }
}

/// Finds the dead letters that a replay would deliver, because their subscription exists and is
/// active.
async fn replayable(stack: &Stack, catalogue: &Catalogue) -> anyhow::Result<LeftBehind> {
    let mut left = container::of_stack(stack).await?.left_behind().await?;
    left.counts.retain(|(name, _), _| catalogue.subscription(name).is_some());
    let names: BTreeSet<SubscriptionName> =
        left.counts.keys().map(|(name, _)| name.clone()).collect();
    let stopped = stopped(stack, &names).await?;
    left.counts.retain(|(name, _), _| !stopped.contains_key(&name.to_string()));
    Ok(left)
}

fn items(stack: &str, left: &LeftBehind) -> Vec<Item> {
    let item = |((name, reason), count): (&(SubscriptionName, Reason), &u64)| {
        let letters = text::dead_letters(*count);
        let of_newest = match left.is_all {
            true => String::new(),
            false => format!(
                " (only about the newest {} were searched)",
                text::grouped(LEFT_BEHIND_READS_MAX)
            ),
        };
        let message = format!(
            "{name} has {letters} that were not replayed, with the reason {reason}{of_newest}"
        );
        Item::warning(ITEM, message, set_aside::command(Some(stack), name, *reason))
    };
    left.counts.iter().map(item).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_was_left_behind_is_counted_with_the_command_that_replays_it() {
        let name: SubscriptionName = "shop/orders/billing".parse().unwrap();
        let counts = BTreeMap::from([((name, Reason::Paused), 12)]);
        let line = |is_all| items("live", &LeftBehind { counts: counts.clone(), is_all })[0].line();
        let command = "lastmile deadletters replay --stack live --subscription shop/orders/billing --reason Paused \
                       --until-quiet PT12M";
        assert_eq!(
            line(true),
            format!(
                "warning  left behind: shop/orders/billing has 12 dead letters that were not \
                 replayed, with the reason Paused; {command}\n"
            )
        );
        assert!(
            line(false).contains("Paused (only about the newest 5,000 were searched); "),
            "{}",
            line(false)
        );
        assert!(items("live", &LeftBehind::default()).is_empty());
    }
}
