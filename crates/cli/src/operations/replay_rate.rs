//! Determines the rate of a replay, and the reason for it.
//!
//! Separate because the command line and the console must send at the same rate.

use std::collections::BTreeMap;
use std::fmt;

use deadletters::Rate;
use deadletters::ledger::JobHeader;
use deadletters::replay::ReplayPlan;
use deadletters::replay::sender::ReplayTarget;
use delivery::delivery::health::DestinationKey;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::SubscriptionName;

use crate::operations::stack::Stack;
use crate::operations::topics::{self, Wanted};
use crate::terminal::advice::chain;

/// The rate of a replay job, and where it comes from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RateUsed {
    pub(crate) rate: Rate,
    why: Why,
}

#[derive(Debug, PartialEq, Eq)]
enum Why {
    Given,
    OfJob,
    OfDestinations,
    Default,
    /// The rate is the default, because the limits of the destinations could not be read. Contains
    /// the reason.
    Unread(String),
}

impl fmt::Display for RateUsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {}", self.rate)?;
        match &self.why {
            Why::Given => Ok(()),
            Why::OfJob => f.write_str(", the rate of the job"),
            Why::OfDestinations => f.write_str(", from maxPerSecond of the destinations"),
            Why::Default => f.write_str(", the default"),
            Why::Unread(problem) => write!(
                f,
                ", the default, since the limits of the destinations cannot be read ({problem})"
            ),
        }
    }
}

impl RateUsed {
    /// Determines the rate of a new job: the given rate, otherwise a rate within the limits of the
    /// destinations in the stack, otherwise the default.
    pub(crate) async fn of_plan(
        given: Option<Rate>,
        stack: Option<&Stack>,
        target: &ReplayTarget,
        plan: &ReplayPlan,
    ) -> Self {
        match (given, stack, target) {
            (Some(rate), _, _) => Self::given(rate),
            (None, Some(stack), ReplayTarget::Subscription) => {
                match deployed(stack, &plan.subscriptions).await {
                    Ok(catalogue) => Self::of_destinations(&catalogue, &plan.subscriptions),
                    Err(error) => Self { rate: Rate::default(), why: Why::Unread(chain(&error)) },
                }
            }
            (None, _, _) => Self { rate: Rate::default(), why: Why::Default },
        }
    }

    /// Describes the rate for the terminal, with the option that changes the rate.
    pub(crate) fn with_option(&self) -> String {
        match self.why {
            Why::Given => self.to_string(),
            Why::OfJob | Why::OfDestinations | Why::Default | Why::Unread(_) => {
                format!("{self}; use --rate to change it")
            }
        }
    }

    /// Creates the rate of a job from a rate that the user has chosen.
    pub(crate) fn given(rate: Rate) -> Self {
        Self { rate, why: Why::Given }
    }

    /// Determines the rate of a resumed job: the given rate, otherwise the rate in the job's
    /// ledger.
    pub(crate) fn of_job(given: Option<Rate>, job: &JobHeader) -> Self {
        match (given, job.rate) {
            (Some(rate), _) => Self::given(rate),
            (None, Some(rate)) => Self { rate, why: Why::OfJob },
            (None, None) => Self { rate: Rate::default(), why: Why::Default },
        }
    }

    /// Determines a rate that exceeds no limit of a destination. `counts` is the number of dead
    /// letters of each subscription.
    pub(crate) fn of_destinations(catalogue: &Catalogue, counts: &BTreeMap<String, u64>) -> Self {
        let mut destinations: BTreeMap<_, (u64, Option<u32>)> = BTreeMap::new();
        for (name, count) in counts {
            let subscription = name.parse().ok().and_then(|name| catalogue.subscription(&name));
            let Some(subscription) = subscription else { continue };
            let key = DestinationKey::of_subscription(subscription);
            let (all, limit) = destinations.entry(key).or_default();
            *all += count;
            let limits = limit.iter().chain(&subscription.destination.max_per_second);
            *limit = limits.min().copied();
        }
        let is_limited = destinations.values().any(|(_, limit)| limit.is_some());
        let why = if is_limited { Why::OfDestinations } else { Why::Default };
        Self { rate: Rate::for_destinations(destinations.into_values()), why }
    }
}

/// Reads the topics of these subscriptions from a stack.
async fn deployed(stack: &Stack, counts: &BTreeMap<String, u64>) -> anyhow::Result<Catalogue> {
    let location = stack.subscriptions()?;
    let names: Vec<SubscriptionName> = counts.keys().filter_map(|name| name.parse().ok()).collect();
    Ok(topics::read(&location, Wanted::topics_of(&names)).await?.reading.catalogue)
}

#[cfg(test)]
mod tests {
    use dialects::Source;

    use super::*;

    fn counts(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
        counts.iter().map(|(name, count)| (format!("shop/orders/{name}"), *count)).collect()
    }

    #[test]
    fn a_destination_gets_no_more_than_the_least_of_its_limits() {
        let subscription = |name: &str, host: &str, more: &str| {
            format!(
                "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {name}}}\n\
                 spec: {{destination: {{url: 'https://{host}.example.com/'{more}}}}}\n---\n"
            )
        };
        let text = [
            subscription("a", "one", ", maxPerSecond: 4"),
            subscription("b", "one", ", maxPerSecond: 2"),
            subscription("c", "two", ""),
        ];
        let catalogue = dialects::read(&[Source { name: "f", text: &text.concat() }]).catalogue;
        let used = |letters: &[(&str, u64)]| {
            RateUsed::of_destinations(&catalogue, &counts(letters)).with_option()
        };
        let by_limit = |rate| {
            format!(
                "at most {rate}, from maxPerSecond of the destinations; use --rate to change it"
            )
        };
        assert_eq!(used(&[("a", 3)]), by_limit("4/s"));
        assert_eq!(used(&[("a", 3), ("b", 5)]), by_limit("2/s"));
        assert_eq!(used(&[("b", 5), ("c", 5)]), by_limit("4/s"));
        let default = "at most 50/s, the default; use --rate to change it";
        assert_eq!(used(&[("c", 5)]), default);
        assert_eq!(used(&[("removed", 5)]), default);
    }
}
