//! The findings of one process about a destination, from its attempts.
//!
//! Separate from the state of the destination, which is what all processes found out together.

use serde::{Deserialize, Serialize};

use crate::delivery::health::Finding;
use crate::delivery::outcome::Outcome;
use crate::subscription::Disable;

/// An attempt that changed what is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempted {
    /// Its start.
    pub at_ms: u64,
    /// What happened; `None` for one that was abandoned.
    pub outcome: Option<String>,
    /// The status, where there was an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long it took.
    pub duration_ms: u64,
}

impl Attempted {
    /// An attempt with this outcome.
    #[must_use]
    pub fn new(at_ms: u64, outcome: Outcome, status: Option<u16>, duration_ms: u64) -> Self {
        Self { at_ms, outcome: Some(outcome.as_str().to_owned()), status, duration_ms }
    }

    /// An attempt that was abandoned at this time.
    #[must_use]
    pub fn abandoned(at_ms: u64, ended_ms: u64) -> Self {
        let duration_ms = ended_ms.saturating_sub(at_ms);
        Self { at_ms, outcome: None, status: None, duration_ms }
    }
}

/// The last attempts that changed something, as many as are kept.
pub(super) const ATTEMPTS_KEPT: usize = 5;

/// What one process found out since it wrote last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// The address, without credentials and query.
    pub destination: String,
    /// The subscription whose attempt it was.
    pub subscription: String,
    /// Whether it keeps failing, and when that was found.
    pub failing: Option<(Finding, u64)>,
    /// Whether a probe that it had claimed was not made.
    pub is_unprobed: bool,
    /// Whether it is slow, and when that was found.
    pub slow: Option<(Finding, u64)>,
    /// The attempts that showed it.
    pub attempts: Vec<Attempted>,
    /// When its subscription wants it disabled.
    pub disable: Option<Disable>,
    /// Whether anybody wants to be told.
    pub notifies: bool,
}

impl Findings {
    /// The namespace of its subscription.
    #[must_use]
    pub fn namespace(&self) -> &str {
        namespace_of(&self.subscription)
    }

    /// Nothing yet about this destination.
    #[must_use]
    pub fn new(destination: String, subscription: String) -> Self {
        let (failing, slow, attempts, disable) = Default::default();
        let (is_unprobed, notifies) = (false, false);
        Self { destination, subscription, failing, is_unprobed, slow, attempts, disable, notifies }
    }

    /// Adds an attempt, and keeps as many of the last ones as an item does: it may be long until they can be written.
    pub fn add_attempt(&mut self, attempt: Attempted) {
        self.attempts.push(attempt);
        let too_many = self.attempts.len().saturating_sub(ATTEMPTS_KEPT);
        self.attempts.drain(..too_many);
    }

    /// Adds the findings of an earlier time.
    pub fn add_earlier(&mut self, mut earlier: Self) {
        self.failing = self.failing.or(earlier.failing);
        self.slow = self.slow.or(earlier.slow);
        self.is_unprobed |= earlier.is_unprobed && self.failing.is_none();
        std::mem::swap(&mut self.attempts, &mut earlier.attempts);
        earlier.attempts.into_iter().for_each(|attempt| self.add_attempt(attempt));
    }
}

/// The namespace of the subscription with this full name.
pub(super) fn namespace_of(subscription: &str) -> &str {
    subscription.split('/').next().unwrap_or_default()
}
