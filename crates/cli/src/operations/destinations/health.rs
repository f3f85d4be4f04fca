//! Reads the health of all destinations of a deployment, for the console.
//!
//! Separate from the commands because a page needs all destinations at once: those with a
//! subscription, and those with a stored state.

use std::collections::BTreeMap;

use adapters::machine::Machine;
use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::shared::Attempted;
use delivery::delivery::outcome::Outcome;
use delivery::ports::Clock as _;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use super::deployment::Deployment;
use super::entries::READS_AT_ONCE;
use super::known::Destination;
use super::limits::limits;
use super::state::{conditions, next, outcome, since};
use crate::operations::topics::Wanted;

/// The health of one destination, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DestinationHealth {
    /// The key of the destination, which is the same on every machine.
    pub(crate) key: String,
    /// The address of the destination, without credentials and query.
    pub(crate) address: String,
    /// The names of the subscriptions that deliver to the destination.
    pub(crate) subscriptions: Vec<String>,
    /// The unhealthy conditions: the name of each, and a text with its beginning and its reason.
    pub(crate) conditions: Vec<(String, String)>,
    /// Describes when the next delivery is attempted.
    pub(crate) next: String,
    /// Describes each limit of the destination, and how much of it is in use.
    pub(crate) limits: Vec<String>,
    /// The last attempts in the stored state: time and outcome, oldest first.
    pub(crate) attempts: Vec<(u64, String)>,
    /// The number of consecutive failed attempts at the end of `attempts`. 0 unless the destination
    /// is failing.
    pub(crate) failed_in_a_row: usize,
}

/// The health of all destinations, and the problems that occurred while reading it.
#[derive(Debug, Default)]
pub(crate) struct Health {
    pub(crate) destinations: Vec<DestinationHealth>,
    pub(crate) problems: Vec<String>,
}

impl Deployment {
    /// Reads the health of all destinations that have a subscription or a stored state. Unhealthy
    /// ones come first.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub(crate) async fn health(&self) -> anyhow::Result<Health> {
        let found = self.states().await?;
        let known = self.subscriptions(Wanted::All).await;
        let named = known
            .catalogue
            .subscriptions()
            .map(|subscription| DestinationKey::of_subscription(subscription));
        let mut states: BTreeMap<DestinationKey, _> = named.map(|key| (key, None)).collect();
        states.extend(found.states.into_iter().map(|(key, state)| (key, Some(state))));
        let all = states.into_iter();
        let all = all.filter_map(|(key, state)| Destination::new(key, state, &known));
        let all: Vec<Destination> = all.collect();
        let reads = stream::iter(all).map(|destination| self.health_of(destination));
        let mut all: Vec<DestinationHealth> = reads.buffered(READS_AT_ONCE).try_collect().await?;
        all.sort_by_cached_key(|destination| {
            (destination.conditions.is_empty(), destination.address.clone())
        });
        let problems = found.problems.into_iter().map(|(_, problem)| problem);
        Ok(Health { destinations: all, problems: problems.chain(known.problem).collect() })
    }

    async fn health_of(&self, destination: Destination) -> anyhow::Result<DestinationHealth> {
        let now_ms = Machine.now_ms();
        let state = destination.state.as_ref();
        let conditions = state.map(conditions).unwrap_or_default();
        let named = conditions.into_iter().map(|condition| {
            let colon = if condition.why.is_empty() { "" } else { ", " };
            let why =
                format!("since {}{colon}{}", since(condition.since_ms, now_ms), condition.why);
            (condition.name.to_owned(), why)
        });
        let attempts = || state.into_iter().flat_map(|state| &state.attempts);
        // An attempt without an outcome was abandoned, because its destination is slow.
        let has_failed = |attempt: &&Attempted| {
            attempt.outcome.as_deref().is_some_and(|outcome| outcome != Outcome::Success.as_str())
        };
        let is_failing =
            state.is_some_and(|state| state.failing.is_some() || state.refusing.is_some());
        Ok(DestinationHealth {
            key: destination.key.to_string(),
            conditions: named.collect(),
            next: state.map_or_else(
                || "deliveries are attempted immediately".to_owned(),
                |state| next(state, now_ms),
            ),
            limits: limits(&self.table, &destination, now_ms).await?,
            failed_in_a_row: match is_failing {
                true => attempts().rev().take_while(has_failed).count(),
                false => 0,
            },
            attempts: attempts().map(|attempt| (attempt.at_ms, outcome(attempt))).collect(),
            subscriptions: destination.names(),
            address: destination.address,
        })
    }
}
