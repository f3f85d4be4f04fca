//! The news: changes that all processes read within 30 seconds.
//!
//! They say which destinations are failing or slow, which are disabled, and which topics were changed. Each process reads
//! them every half minute, the newest first, and no more than [`NEWS_MAX`]. They are hints: whatever they do not say any
//! more, a process finds out by itself. Only that a destination is disabled is said until it is enabled again, before
//! anything else.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::DestinationKey;
use super::shared::{DestinationState, Document, Spell, VERSION};
use crate::subscription::Disabled;
use crate::subscription::name::TopicName;
use crate::table::ItemKey;
use crate::time::duration::{HOUR_MS, MINUTE_MS};

/// The partition of all news.
pub const NEWS: &str = "@news";
/// The most news that a process reads.
pub const NEWS_MAX: u32 = 1_000;
/// Operators disable at most so many destinations at a time: a process has to read them all, and other news beside them.
pub const DISABLED_MAX: usize = 900;
/// News about health is kept this long after its spell.
const HEALTH_MS: u64 = 2 * HOUR_MS;
/// A changed topic is found by everybody who lists the topics within this time.
const TOPIC_MS: u64 = 15 * MINUTE_MS;
/// Sorts behind all times, so whoever reads backwards reads it first.
const FIRST: char = '~';

/// What everybody is told at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct News {
    v: u32,
    /// When it was told.
    pub at_ms: u64,
    /// The namespace that it is about.
    pub namespace: String,
    /// What it is about.
    #[serde(flatten)]
    pub subject: Subject,
}

/// What news are about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Subject {
    /// A destination is failing, slow, or neither any more.
    Health(Health),
    /// A destination was disabled or enabled.
    Switch {
        /// Whose deliveries wait or end, or are attempted again.
        destination: DestinationKey,
        /// What happens to its deliveries while it is disabled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        disabled: Option<Disabled>,
    },
    /// A topic was changed, as `namespace/topic`.
    Topic(String),
}

/// The health of a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Which destination it is the health of.
    pub destination: DestinationKey,
    /// That it is failing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Spell>,
    /// That it is slow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<Spell>,
}

impl News {
    /// The news that follows from a change of a destination's state.
    ///
    /// Without a change it is the same again: whoever could not tell it before tells it now.
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

    /// All that there is to tell of a destination in this state.
    #[must_use]
    pub fn of_state(
        destination: DestinationKey,
        state: &DestinationState,
        now_ms: u64,
    ) -> [Self; 2] {
        let (failing, slow) = (state.failing, state.slow);
        let disabled = state.disabled.as_ref().map(|disabled| disabled.then);
        let subjects = [
            Subject::Health(Health { destination, failing, slow }),
            Subject::Switch { destination, disabled },
        ];
        subjects.map(|subject| Self::new(state.namespace(), subject, now_ms))
    }

    /// That a topic was changed.
    #[must_use]
    pub fn of_topic(topic: &TopicName, now_ms: u64) -> Self {
        Self::new(&topic.namespace, Subject::Topic(topic.to_string()), now_ms)
    }

    fn new(namespace: &str, subject: Subject, at_ms: u64) -> Self {
        Self { v: VERSION, at_ms, namespace: namespace.to_owned(), subject }
    }

    /// The item that holds it.
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
                let spells = [health.failing, health.slow];
                let until_ms = spells.into_iter().flatten().map(|spell| spell.until_ms).max();
                until_ms.unwrap_or_default().saturating_sub(self.at_ms).saturating_add(HEALTH_MS)
            }
            Subject::Switch { disabled: Some(_), .. } => return None,
            Subject::Switch { disabled: None, .. } => HEALTH_MS,
            Subject::Topic(_) => TOPIC_MS,
        };
        Some(self.at_ms.saturating_add(lasts_ms))
    }
}

/// All news that a process has read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllNews {
    health: BTreeMap<DestinationKey, (u64, Health)>,
    disabled: BTreeMap<DestinationKey, Disabled>,
    topics: BTreeMap<TopicName, u64>,
    namespaces: BTreeSet<String>,
}

impl FromIterator<News> for AllNews {
    /// Of two news about the same, the later one counts.
    fn from_iter<I: IntoIterator<Item = News>>(news: I) -> Self {
        let mut all = Self::default();
        for News { at_ms, namespace, subject, .. } in news {
            all.namespaces.insert(namespace);
            match subject {
                Subject::Health(health) => {
                    let known = all.health.entry(health.destination).or_insert((at_ms, health));
                    if at_ms > known.0 {
                        *known = (at_ms, health);
                    }
                }
                Subject::Switch { destination, disabled: Some(disabled) } => {
                    all.disabled.insert(destination, disabled);
                }
                Subject::Switch { disabled: None, .. } => {}
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
    /// The newest about the health of destinations.
    pub fn health(&self) -> impl Iterator<Item = Health> {
        self.health.values().map(|(_, health)| *health)
    }

    /// The destinations that are disabled.
    #[must_use]
    pub fn disabled(&self) -> &BTreeMap<DestinationKey, Disabled> {
        &self.disabled
    }

    /// The topics that were changed, and when that was told last.
    #[must_use]
    pub fn topics(&self) -> &BTreeMap<TopicName, u64> {
        &self.topics
    }

    /// The namespaces that they are about.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.namespaces.iter().map(String::as_str)
    }

    /// The destinations that are failing, slow or disabled.
    pub fn unhealthy(&self) -> impl Iterator<Item = DestinationKey> {
        let health = self.health().filter(|it| it.failing.is_some() || it.slow.is_some());
        let health = health.map(|health| health.destination);
        let keys: BTreeSet<_> = health.chain(self.disabled.keys().copied()).collect();
        keys.into_iter()
    }
}
