//! The state of a destination, as one document holds it, and how two states of it differ.
//!
//! Separate from the changes, because notices of a change are part of the state.

use serde::{Deserialize, Serialize};

use super::document::{Document, VERSION};
use super::findings::{Attempted, namespace_of};
use super::spell::Spell;
use crate::delivery::health::notice::{Notice, Transition};
use crate::subscription::Disabled;
use crate::time::duration::DAY_MS;

/// Health that nobody has written for this long is forgotten.
const FORGOTTEN_MS: u64 = 7 * DAY_MS;

/// A destination that gets no events until an operator enables it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisabledState {
    /// Since when.
    pub since_ms: u64,
    /// What happens to its deliveries.
    pub then: Disabled,
    /// Why, for people.
    pub why: String,
}

/// What is known of a destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DestinationState {
    pub(super) v: u32,
    /// Its address, without credentials and query.
    pub destination: String,
    /// A subscription that delivers to it.
    pub subscription: String,
    /// Since when it keeps failing, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Spell>,
    /// When it was found to fail no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Until when the process that probes it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_until_ms: Option<u64>,
    /// Since when it is slow to answer, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<Spell>,
    /// That it is disabled, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<DisabledState>,
    /// The last attempts that changed something, the newest last.
    #[serde(default)]
    pub attempts: Vec<Attempted>,
    /// Who is to be told of what changed, until that is sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// When it was written.
    pub changed_ms: u64,
}

impl Document for DestinationState {
    fn expires_ms(&self) -> Option<u64> {
        // Only an operator enables it again.
        let is_disabled = self.disabled.is_some();
        (!is_disabled).then(|| self.changed_ms.saturating_add(FORGOTTEN_MS))
    }
}

impl DestinationState {
    /// The namespace of the subscriptions that know it.
    #[must_use]
    pub fn namespace(&self) -> &str {
        namespace_of(&self.subscription)
    }

    /// Whether it is neither failing nor slow.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.failing.is_none() && self.slow.is_none()
    }

    /// A destination of which nothing is known.
    #[must_use]
    pub fn healthy(destination: &str, subscription: &str, now_ms: u64) -> Self {
        let (failing, ended_ms, probe_until_ms) = Default::default();
        let (slow, disabled) = Default::default();
        let (destination, subscription) = (destination.to_owned(), subscription.to_owned());
        let (attempts, notices) = Default::default();
        Self {
            v: VERSION,
            destination,
            subscription,
            failing,
            ended_ms,
            probe_until_ms,
            slow,
            disabled,
            attempts,
            notices,
            changed_ms: now_ms,
        }
    }
}

impl Transition {
    /// What changed since a state was read; a destination without one was healthy.
    pub fn since(
        before: Option<&DestinationState>,
        after: &DestinationState,
    ) -> impl Iterator<Item = Self> + use<> {
        let healthy = DestinationState::healthy("", "", after.changed_ms);
        Self::between(before.unwrap_or(&healthy), after)
    }

    /// What changed from one state to another.
    pub(super) fn between(
        before: &DestinationState,
        after: &DestinationState,
    ) -> impl Iterator<Item = Self> + use<> {
        let is_enabled = before.disabled.is_some() && after.disabled.is_none();
        let recovers = !before.is_healthy() && after.is_healthy() && !is_enabled;
        [
            (before.slow.is_none() && after.slow.is_some(), Self::Slow),
            (before.failing.is_none() && after.failing.is_some(), Self::Failing),
            (recovers, Self::Recovered),
            (before.disabled.is_none() && after.disabled.is_some(), Self::Disabled),
            (is_enabled, Self::Enabled),
        ]
        .into_iter()
        .filter_map(|(happened, transition)| happened.then_some(transition))
    }
}
