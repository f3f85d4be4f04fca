//! [`DestinationState`]: the shared state of a destination in one document, and the differences
//! between two states.
//!
//! This module is separate from the changes of a state because a state also contains the notices of
//! its changes.

use serde::{Deserialize, Serialize};

use super::document::{Document, VERSION};
use super::findings::{Attempted, namespace_of};
use super::spell::Spell;
use crate::delivery::FailingDestination;
use crate::delivery::health::notice::{Notice, Transition};
use crate::time::duration::DAY_MS;

/// Retention of a destination's state after its last write.
const FORGOTTEN_MS: u64 = 7 * DAY_MS;

/// The time at which a destination was disabled, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisabledState {
    /// Time at which the destination was disabled, in milliseconds since 1970.
    pub since_ms: u64,
    /// The reason why the destination was disabled, for people.
    pub why: String,
}

/// The state of a destination that all processes share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DestinationState {
    pub(super) v: u32,
    /// The URL of the destination, without credentials and query.
    pub destination: String,
    /// A subscription that delivers to the destination.
    pub subscription: String,
    /// The current probation; `None` if the destination is not on probation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Spell>,
    /// The current period in which all attempts, at least ten, have failed. Failures that concern
    /// single events count here, but do not begin a probation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusing: Option<Spell>,
    /// The last failure; present while the destination is failing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<FailingDestination>,
    /// End of the last probation, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Maximum rate of the next recovery, in requests per second, and the time at which this
    /// maximum expires, in milliseconds since 1970. Present after a relapse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<(u32, u64)>,
    /// Latest time at which the probe under way ends; `None` if no probe is claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_until_ms: Option<u64>,
    /// The current period of slow responses; `None` if the destination is not slow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<Spell>,
    /// The time at which the destination was disabled, and the reason; `None` if it is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<DisabledState>,
    /// The last attempts that changed the state, newest last.
    #[serde(default)]
    pub attempts: Vec<Attempted>,
    /// Unsent notices about the destination.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// Time of the last write of this document, in milliseconds since 1970.
    pub changed_ms: u64,
}

impl Document for DestinationState {
    fn expires_ms(&self) -> Option<u64> {
        // Only an operator can enable a disabled destination, so the state of such a destination
        // does not expire.
        let is_disabled = self.disabled.is_some();
        (!is_disabled).then(|| self.changed_ms.saturating_add(FORGOTTEN_MS))
    }
}

impl DestinationState {
    /// Returns the namespace in which the destination is used.
    #[must_use]
    pub fn namespace(&self) -> &str {
        namespace_of(&self.subscription)
    }

    /// Returns true if the destination is neither failing nor slow.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        !self.is_failing() && self.slow.is_none()
    }

    /// Returns true if the last ten attempts failed, or if the destination is on probation.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.failing.is_some() || self.refusing.is_some()
    }

    /// Removes failing and slow periods that no attempt has confirmed for a day. A later failure
    /// begins a new period.
    #[must_use]
    pub(super) fn without_stale(mut self, now_ms: u64) -> Self {
        let is_current = |spell: &Spell| !spell.is_stale(now_ms);
        self.failing = self.failing.filter(is_current);
        self.refusing = self.refusing.filter(is_current);
        self.slow = self.slow.filter(is_current);
        self
    }

    /// Returns the state of a healthy destination.
    #[must_use]
    pub fn healthy(destination: &str, subscription: &str, now_ms: u64) -> Self {
        let (failing, refusing, ended_ms, ceiling, probe_until_ms) = Default::default();
        let (slow, disabled, last_failure) = Default::default();
        let (destination, subscription) = (destination.to_owned(), subscription.to_owned());
        let (attempts, notices) = Default::default();
        Self {
            v: VERSION,
            destination,
            subscription,
            failing,
            refusing,
            last_failure,
            ended_ms,
            ceiling,
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
    /// Lists the changes since an earlier state was read. A destination without a stored state was
    /// healthy.
    pub fn since(
        before: Option<&DestinationState>,
        after: &DestinationState,
    ) -> impl Iterator<Item = Self> + use<> {
        let healthy = || DestinationState::healthy("", "", after.changed_ms);
        let before = before.cloned().unwrap_or_else(healthy).without_stale(after.changed_ms);
        Self::between(&before, after)
    }

    /// Lists the changes between two states of one destination.
    pub(super) fn between(
        before: &DestinationState,
        after: &DestinationState,
    ) -> impl Iterator<Item = Self> + use<> {
        let is_enabled = before.disabled.is_some() && after.disabled.is_none();
        let recovers = !before.is_healthy() && after.is_healthy() && !is_enabled;
        [
            (before.slow.is_none() && after.slow.is_some(), Self::Slow),
            (!before.is_failing() && after.is_failing(), Self::Failing),
            (recovers, Self::Recovered),
            (before.disabled.is_none() && after.disabled.is_some(), Self::Disabled),
            (is_enabled, Self::Enabled),
        ]
        .into_iter()
        .filter_map(|(happened, transition)| happened.then_some(transition))
    }
}
