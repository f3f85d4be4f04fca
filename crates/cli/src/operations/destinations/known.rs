//! Finds the destinations that have a subscription or an item in the table.
//!
//! Separate from the table, which has no subscriptions, and from the subscriptions, which have no
//! state. A destination may have only one of the two: its subscription may have been removed, or
//! its state may never have been stored.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{bail, ensure};
use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::shared::DestinationState;
use delivery::subscription::Subscription;
use delivery::subscription::name::SubscriptionName;
use delivery::table::Recovery;
use url::Url;

use super::deployment::{Deployment, Subscriptions};
use super::name::Name;
use crate::operations::topics::Wanted;
use crate::terminal::output::note;
use crate::terminal::text;

/// The maximum number of names that an error suggests.
const SUGGESTED: usize = 10;

/// A destination, with its subscriptions and its stored state.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    pub(crate) key: DestinationKey,
    /// The namespace of the destination's subscriptions.
    pub(crate) namespace: String,
    /// The address of the destination, without credentials and query.
    pub(crate) address: String,
    /// The subscriptions that deliver to the destination, if they can be read.
    pub(crate) subscriptions: Vec<Arc<Subscription>>,
    pub(crate) state: Option<DestinationState>,
}

/// The current use of a destination's limits: permits, slots, and reserved start times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GivenOut {
    /// The recovery from an outage; `None` if the destination receives its full rate.
    pub(crate) recovery: Option<Recovery>,
    /// The latest start time that is reserved for a delivery without a permit.
    pub(crate) turns_ms: Option<u64>,
    /// The time of the next free slot under the rate limit.
    pub(crate) next_slot_ms: Option<u64>,
    /// The number of used permits for concurrent requests.
    pub(crate) permits: Option<u32>,
}

impl Destination {
    /// Creates a destination from its subscriptions and its state; `None` if it has neither.
    pub(crate) fn new(
        key: DestinationKey,
        state: Option<DestinationState>,
        subscriptions: &Subscriptions,
    ) -> Option<Self> {
        let delivering = subscriptions.to(key);
        let (namespace, address) = match (&state, delivering.first()) {
            (Some(state), _) => (state.namespace().to_owned(), text::line(&state.destination)),
            (None, Some(subscription)) => {
                (subscription.name.topic.namespace.clone(), subscription.destination.display())
            }
            (None, None) => return None,
        };
        Some(Self { key, namespace, address, subscriptions: delivering, state })
    }

    /// Returns the limits of concurrent requests that all functions share, one for each
    /// subscription with such a limit.
    pub(crate) fn shared_concurrency(&self) -> impl Iterator<Item = u32> {
        let all = self.subscriptions.iter().map(|subscription| &subscription.destination);
        all.filter_map(|destination| destination.max_concurrency.shared())
    }

    /// Returns the names of the destination's subscriptions; without any, the name in the stored
    /// state.
    pub(crate) fn names(&self) -> Vec<String> {
        match (&self.subscriptions[..], &self.state) {
            ([], Some(state)) => vec![text::line(&state.subscription)],
            (subscriptions, _) => {
                subscriptions.iter().map(|subscription| subscription.name.to_string()).collect()
            }
        }
    }
}

impl Subscriptions {
    /// Returns the subscriptions that deliver to this destination.
    fn to(&self, key: DestinationKey) -> Vec<Arc<Subscription>> {
        let all = self.catalogue.subscriptions();
        all.filter(|subscription| DestinationKey::of_subscription(subscription) == key)
            .cloned()
            .collect()
    }

    /// Returns true if notices about the destination must be published: if a topic for notices is
    /// set, or the subscriptions cannot be read. Destinations of that topic cause no notices.
    pub(crate) fn want_notices_of(&self, destination: &Destination) -> bool {
        let Some(topic) = self.catalogue.topic_of_notices() else { return self.problem.is_some() };
        destination.subscriptions.first().is_none_or(|first| first.name.topic != *topic)
    }

    /// Prints a warning if the subscriptions could not be read. The command continues.
    pub(crate) fn report(&self) {
        if let Some(problem) = &self.problem {
            note(problem);
        }
        if !self.is_whole {
            note(
                "only one topic per destination is read, so subscriptions of other topics with the \
                 same destination are not listed",
            );
        }
    }
}

impl Deployment {
    /// Reads the subscriptions that are needed to find a destination by its name. Reads only one
    /// topic if possible.
    pub(crate) async fn subscriptions_for(&self, name: &Name) -> anyhow::Result<Subscriptions> {
        let is_named = |(key, state): &(DestinationKey, DestinationState)| match name {
            Name::Subscription(name) => state.subscription == name.to_string(),
            Name::Address(url) => state.destination == url.as_str(),
            Name::Key(named) => key == named,
        };
        if let Name::Subscription(name) = name {
            return Ok(self.subscriptions(Wanted::topics_of([name])).await);
        }
        let states = self.states().await?.states;
        let known = states.iter().filter(|entry| is_named(entry));
        let known: Vec<SubscriptionName> =
            known.filter_map(|(_, state)| state.subscription.parse().ok()).collect();
        let wanted = if known.is_empty() { Wanted::All } else { Wanted::topics_of(&known) };
        Ok(self.subscriptions(wanted).await)
    }

    /// Finds the destination that a name refers to.
    pub(crate) async fn destination(
        &self,
        name: &Name,
        subscriptions: &Subscriptions,
    ) -> anyhow::Result<Destination> {
        let all = subscriptions.catalogue.subscriptions();
        // Several addresses may differ only in their queries.
        let is_address = |subscription: &Subscription, url: &Url| {
            *subscription.destination.url == *url
                || subscription.destination.display() == url.as_str()
        };
        let is_named = |subscription: &&Arc<Subscription>| match name {
            Name::Subscription(name) => subscription.name == *name,
            Name::Address(url) => is_address(subscription, url),
            Name::Key(key) => DestinationKey::of_subscription(subscription) == *key,
        };
        let named: Vec<&Arc<Subscription>> = all.filter(is_named).collect();
        let exact = named
            .iter()
            .filter(|subscription| {
                matches!(name, Name::Address(url) if *subscription.destination.url == *url)
            });
        let exact: BTreeSet<DestinationKey> =
            exact.map(|subscription| DestinationKey::of_subscription(subscription)).collect();
        let mut keys: BTreeSet<DestinationKey> = named
            .iter()
            .map(|subscription| DestinationKey::of_subscription(subscription))
            .collect();
        let states = self.states().await?;
        if exact.is_empty() {
            // The subscription of the destination may have been removed, or may be unreadable.
            let is_state_named = |(key, state): &&(DestinationKey, DestinationState)| match name {
                Name::Subscription(name) => {
                    keys.is_empty() && state.subscription == name.to_string()
                }
                Name::Address(url) => state.destination == url.as_str(),
                Name::Key(named) => key == named,
            };
            let of_states: Vec<_> =
                states.states.iter().filter(is_state_named).map(|(key, _)| *key).collect();
            keys.extend(of_states);
        } else {
            keys = exact;
        }
        for (key, problem) in &states.problems {
            ensure!(!keys.contains(key), "{problem}");
            note(text::line(problem));
        }
        let state_of = |key: DestinationKey| {
            states.states.iter().find(|(known, _)| *known == key).map(|(_, state)| state.clone())
        };
        let found =
            keys.into_iter().filter_map(|key| Destination::new(key, state_of(key), subscriptions));
        let mut found: Vec<Destination> = found.collect();
        match found.len() {
            0 => bail!(self.unknown(name, subscriptions)),
            1 => Ok(found.remove(0)),
            count => {
                let keys: Vec<String> = found
                    .iter()
                    .map(|destination| {
                        format!("{} ({})", destination.key, destination.names().join(", "))
                    })
                    .collect();
                let keys = keys.join(", ");
                bail!("{name} matches {count} destinations; specify one by its key: {keys}")
            }
        }
    }

    /// Creates the error for a name without a destination, with suggestions.
    fn unknown(&self, name: &Name, subscriptions: &Subscriptions) -> String {
        let nothing = "and it has no stored state";
        if let Some(problem) = &subscriptions.problem {
            return format!("{name} is unknown: {problem}, {nothing}");
        }
        let source = &subscriptions.source;
        match name {
            Name::Subscription(name) => {
                let there =
                    suggested(of_topic_or_all(name, subscriptions), "there are no subscriptions");
                format!("there is no subscription {name} in {source}, {nothing}; {there}")
            }
            Name::Address(_) | Name::Key(_) => {
                let all = subscriptions.catalogue.subscriptions();
                let all = all.map(|subscription| subscription.destination.display()).collect();
                let there = suggested(all, "there are no subscriptions");
                format!("no subscription in {source} delivers to {name}, {nothing}; {there}")
            }
        }
    }
}

/// Returns the names of the subscriptions of the same topic; if there are none, those of all
/// topics.
fn of_topic_or_all(name: &SubscriptionName, subscriptions: &Subscriptions) -> BTreeSet<String> {
    let names = || subscriptions.catalogue.subscriptions().map(|subscription| &subscription.name);
    let of_topic: BTreeSet<String> =
        names().filter(|other| other.topic == name.topic).map(ToString::to_string).collect();
    if of_topic.is_empty() { names().map(ToString::to_string).collect() } else { of_topic }
}

fn suggested(names: BTreeSet<String>, none: &str) -> String {
    let (count, names) = (names.len(), names.into_iter().take(SUGGESTED).collect::<Vec<_>>());
    match count {
        0 => none.to_owned(),
        _ if count > SUGGESTED => {
            format!("available: {} and {} more", names.join(", "), count - SUGGESTED)
        }
        1 => format!("available: {}", names.join("")),
        _ => format!("available: {}", names.join(", ")),
    }
}
