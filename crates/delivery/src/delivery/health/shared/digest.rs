//! The digest: one document that names all destinations that are not healthy.
//!
//! Separate because every process reads it, so it has a size of its own and only the gist of each state.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::document::{Document, VERSION};
use super::spell::Spell;
use super::state::DestinationState;
use crate::delivery::health::{DestinationKey, FOLDER};
use crate::subscription::Disabled;
use crate::time::duration::DAY_MS;

/// How many destinations a digest names. It is read by every process, so it has to stay small.
const DIGEST_MAX: usize = 2_000;

/// The key of the digest.
#[must_use]
pub fn digest_document() -> String {
    format!("{FOLDER}/digest.json")
}

/// What the digest says of one destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// That it is failing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Spell>,
    /// That it is slow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<Spell>,
    /// That it is disabled, and what happens to its deliveries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<Disabled>,
}

/// All destinations that are not healthy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    v: u32,
    destinations: BTreeMap<DestinationKey, Summary>,
}

impl Document for Digest {}

impl Default for Digest {
    fn default() -> Self {
        Self { v: VERSION, destinations: BTreeMap::new() }
    }
}

impl Digest {
    /// What it says of a destination; nothing, if that is healthy.
    #[must_use]
    pub fn get(&self, key: DestinationKey) -> Summary {
        self.destinations.get(&key).copied().unwrap_or_default()
    }

    /// Whether there may be unhealthy destinations that it does not name.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.destinations.len() >= DIGEST_MAX
    }

    /// The destinations that it names.
    pub fn iter(&self) -> impl Iterator<Item = (DestinationKey, Summary)> {
        self.destinations.iter().map(|(key, summary)| (*key, *summary))
    }

    /// Notes the state of a destination, and forgets those that nobody has tried for a day. Whether that
    /// changed anything.
    pub fn note(&mut self, key: DestinationKey, state: &DestinationState, now_ms: u64) -> bool {
        let before = self.destinations.len();
        let is_recent = |spell: Option<Spell>| {
            spell.is_some_and(|spell| now_ms < spell.until_ms.saturating_add(DAY_MS))
        };
        self.destinations
            .retain(|_, it| it.disabled.is_some() || is_recent(it.failing) || is_recent(it.slow));
        let is_smaller = self.destinations.len() < before;
        let disabled = state.disabled.as_ref().map(|disabled| disabled.then);
        let summary = Summary { failing: state.failing, slow: state.slow, disabled };
        if summary == Summary::default() {
            return self.destinations.remove(&key).is_some() || is_smaller;
        }
        let is_new = !self.destinations.contains_key(&key);
        // What is disabled has to be known by all.
        if is_new && self.is_full() && summary.disabled.is_none() {
            return is_smaller;
        }
        self.destinations.insert(key, summary) != Some(summary) || is_smaller
    }
}
