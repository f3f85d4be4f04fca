//! Published changes ([`News`]): items of the table that record changes of destinations and topics.
//! All processes read them within 30 seconds.
//!
//! A change is published if a destination becomes failing, slow, disabled or healthy, or if a topic
//! changes. Each process reads the changes every half minute, newest first, up to [`NEWS_MAX`].
//! They are hints: a process that misses a change finds it by itself. Disabled destinations are the
//! exception. The item of a disabled destination is read first, and stays until an operator enables
//! the destination.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::DestinationKey;
use super::shared::{DestinationState, Document, ROW_MS, Spell, VERSION};
use crate::delivery::FailingDestination;
use crate::subscription::name::TopicName;
use crate::table::ItemKey;
use crate::time::duration::{HOUR_MS, MINUTE_MS};

/// Partition key of all published changes.
pub const NEWS: &str = "@news";
/// Maximum number of published changes that a process reads at once.
pub const NEWS_MAX: u32 = 1_000;
/// Maximum number of disabled destinations. It is lower than [`NEWS_MAX`], because a process must
/// read all disabled destinations and other changes too.
pub const DISABLED_MAX: usize = 900;
/// Retention of a health item after the latest possible end of a failing or slow period.
const HEALTH_MS: u64 = 2 * HOUR_MS;
/// Retention of a topic item. In this time, every process that lists topics finds the change by
/// itself.
const TOPIC_MS: u64 = 15 * MINUTE_MS;
/// First character of the sort keys of disabled destinations. It sorts after all times, so that
/// reading in reverse order returns these items first.
const FIRST: char = '~';

/// A change of a destination or a topic, published to all processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct News {
    v: u32,
    /// Time of publication in milliseconds since 1970.
    pub at_ms: u64,
    /// The namespace of the changed destination or topic.
    pub namespace: String,
    /// The destination or topic that changed.
    #[serde(flatten)]
    pub subject: Subject,
}

/// A destination or topic, and its change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Subject {
    /// The destination became failing or slow, or recovered.
    Health(Health),
    /// The destination was disabled or enabled.
    Switch {
        /// The key of the destination that was disabled or enabled.
        destination: DestinationKey,
        /// True if the destination was disabled; false if it was enabled again.
        is_disabled: bool,
    },
    /// The topic with this name, `namespace/topic`, was changed.
    Topic(String),
}

/// The health of a destination, as one process publishes it to the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// The key of the destination that has this health.
    pub destination: DestinationKey,
    /// The current probation; `None` if the destination is not on probation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Spell>,
    /// The current slow period; `None` if the destination is not slow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<Spell>,
    /// The current period in which all attempts, at least ten, have failed; `None` without such a
    /// period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusing: Option<Spell>,
    /// The last failure; present while the destination is failing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<FailingDestination>,
    /// End of the last probation, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Maximum rate after the outage, in requests per second, and the time at which this maximum
    /// expires, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<(u32, u64)>,
}

impl Health {
    /// Returns true if the destination is unhealthy or was unhealthy recently. A process that has
    /// no state of the destination must then create one.
    #[must_use]
    pub fn is_news(&self) -> bool {
        self.is_unhealthy() || self.ended_ms.is_some()
    }

    fn is_unhealthy(&self) -> bool {
        self.failing.is_some() || self.slow.is_some() || self.refusing.is_some()
    }
}

impl News {
    /// Returns the changes to publish after a destination's state was written.
    ///
    /// It returns them even if nothing changed: the process that made the last change may have
    /// failed to publish it.
    pub fn of_change(
        destination: DestinationKey,
        before: Option<&DestinationState>,
        after: &DestinationState,
    ) -> impl Iterator<Item = Self> {
        let [health, switch] = Self::of_state(destination, after, after.changed_ms);
        let is_disabled = |state: &DestinationState| state.disabled.is_some();
        let is_switched = is_disabled(after) || before.is_some_and(is_disabled);
        std::iter::once(health).chain(is_switched.then_some(switch))
    }

    /// Returns all changes to publish for a destination in this state.
    #[must_use]
    pub fn of_state(
        destination: DestinationKey,
        state: &DestinationState,
        now_ms: u64,
    ) -> [Self; 2] {
        let (failing, slow, refusing) = (state.failing, state.slow, state.refusing);
        let (ended_ms, ceiling) = (state.ended_ms, state.ceiling);
        let is_disabled = state.disabled.is_some();
        let last_failure = state.last_failure.clone();
        let subjects = [
            Subject::Health(Health {
                destination,
                failing,
                slow,
                refusing,
                last_failure,
                ended_ms,
                ceiling,
            }),
            Subject::Switch { destination, is_disabled },
        ];
        subjects.map(|subject| Self::new(state.namespace(), subject, now_ms))
    }

    /// Returns the change to publish for a topic that was changed at `now_ms`.
    #[must_use]
    pub fn of_topic(topic: &TopicName, now_ms: u64) -> Self {
        Self::new(&topic.namespace, Subject::Topic(topic.to_string()), now_ms)
    }

    fn new(namespace: &str, subject: Subject, at_ms: u64) -> Self {
        Self { v: VERSION, at_ms, namespace: namespace.to_owned(), subject }
    }

    /// Returns the key of the table item that stores this change.
    #[must_use]
    pub fn item(&self) -> ItemKey {
        let at_ms = self.at_ms;
        let sort = match &self.subject {
            Subject::Health(Health { destination, .. }) => format!("{at_ms:015}#{destination}"),
            Subject::Switch { destination, .. } => format!("{FIRST}{destination}"),
            Subject::Topic(topic) => format!("{at_ms:015}#{topic}"),
        };
        ItemKey::new(NEWS, sort)
    }
}

impl Document for News {
    fn expires_ms(&self) -> Option<u64> {
        let lasts_ms = match &self.subject {
            Subject::Health(health) => {
                let spells = [health.failing, health.slow, health.refusing];
                let until_ms = spells.into_iter().flatten().map(|spell| spell.until_ms).max();
                let left_ms = until_ms.unwrap_or_default().saturating_sub(self.at_ms);
                // An earlier item may contain a period of `ROW_MS`. If it outlived this item, a
                // destination that recovered would count as failing or slow again.
                left_ms.max(ROW_MS).saturating_add(HEALTH_MS)
            }
            Subject::Switch { is_disabled: true, .. } => return None,
            Subject::Switch { is_disabled: false, .. } => HEALTH_MS,
            Subject::Topic(_) => TOPIC_MS,
        };
        Some(self.at_ms.saturating_add(lasts_ms))
    }
}

/// The published changes that a process has read, by destination and topic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllNews {
    health: BTreeMap<DestinationKey, (u64, String, Health)>,
    disabled: BTreeSet<DestinationKey>,
    topics: BTreeMap<TopicName, u64>,
    namespaces: BTreeSet<String>,
}

impl FromIterator<News> for AllNews {
    /// Keeps the later of two items about the same destination or topic.
    fn from_iter<I: IntoIterator<Item = News>>(news: I) -> Self {
        let mut all = Self::default();
        for News { at_ms, namespace, subject, .. } in news {
            all.namespaces.insert(namespace.clone());
            match subject {
                Subject::Health(health) => {
                    let destination = health.destination;
                    let new = (at_ms, namespace, health);
                    let known = all.health.entry(destination).or_insert_with(|| new.clone());
                    if at_ms > known.0 {
                        *known = new;
                    }
                }
                Subject::Switch { destination, is_disabled: true } => {
                    all.disabled.insert(destination);
                }
                Subject::Switch { is_disabled: false, .. } => {}
                Subject::Topic(topic) => {
                    let Ok(topic) = topic.parse() else { continue };
                    let known_ms = all.topics.entry(topic).or_insert(at_ms);
                    *known_ms = at_ms.max(*known_ms);
                }
            }
        }
        all
    }
}

impl AllNews {
    /// Returns the newest health of each destination, with the destination's namespace.
    pub fn health(&self) -> impl Iterator<Item = (&str, &Health)> {
        self.health.values().map(|(_, namespace, health)| (namespace.as_str(), health))
    }

    /// Returns the destinations that are disabled.
    #[must_use]
    pub fn disabled(&self) -> &BTreeSet<DestinationKey> {
        &self.disabled
    }

    /// Returns the changed topics, each with the time of its newest change.
    #[must_use]
    pub fn topics(&self) -> &BTreeMap<TopicName, u64> {
        &self.topics
    }

    /// Returns the namespaces of all destinations and topics that changed.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.namespaces.iter().map(String::as_str)
    }

    /// Returns the destinations that are failing, slow or disabled.
    pub fn unhealthy(&self) -> impl Iterator<Item = DestinationKey> {
        let health = self.health().map(|(_, health)| health).filter(|health| health.is_unhealthy());
        let health = health.map(|health| health.destination);
        let keys: BTreeSet<_> = health.chain(self.disabled.iter().copied()).collect();
        keys.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recovery_is_kept_as_long_as_the_failures_before_it() {
        let key = DestinationKey::new("n", &"https://example.com/".parse().unwrap());
        let healthy = DestinationState::healthy("https://example.com/", "n/t/s", 1_000);
        let row = Spell { since_ms: 1_000, until_ms: 1_000 + ROW_MS, lasts_ms: ROW_MS };
        let mut failing = healthy.clone();
        failing.refusing = Some(row);
        let expires_ms = |state: &DestinationState, now_ms| {
            let [health, _] = News::of_state(key, state, now_ms);
            health.expires_ms()
        };
        assert_eq!(expires_ms(&failing, 1_000), Some(1_000 + ROW_MS + HEALTH_MS));
        assert!(expires_ms(&healthy, 2_000) > expires_ms(&failing, 1_000));
    }
}
