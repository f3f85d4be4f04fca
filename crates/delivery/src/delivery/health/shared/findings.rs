//! [`Findings`]: what the attempts of one process reveal about a destination.
//!
//! This module is separate from the state of the destination, which combines the findings of all
//! processes.

use serde::{Deserialize, Serialize};

use crate::delivery::FailingDestination;
use crate::delivery::health::Finding;
use crate::delivery::outcome::Outcome;
use crate::subscription::Disable;

/// An attempt that changed the state of its destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempted {
    /// Start of the request in milliseconds since 1970.
    pub at_ms: u64,
    /// The log name of the outcome; `None` for an abandoned attempt.
    pub outcome: Option<String>,
    /// The HTTP status of the response; `None` without a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Duration of the attempt in milliseconds, until its outcome was known.
    pub duration_ms: u64,
}

impl Attempted {
    /// Returns an attempt that ended with this outcome.
    #[must_use]
    pub fn new(at_ms: u64, outcome: Outcome, status: Option<u16>, duration_ms: u64) -> Self {
        Self { at_ms, outcome: Some(outcome.as_str().to_owned()), status, duration_ms }
    }

    /// Returns an attempt that was abandoned at `ended_ms`.
    #[must_use]
    pub fn abandoned(at_ms: u64, ended_ms: u64) -> Self {
        let duration_ms = ended_ms.saturating_sub(at_ms);
        Self { at_ms, outcome: None, status: None, duration_ms }
    }
}

/// A series of consecutive failed requests to a destination, or its end. Failures count even if
/// they concern only one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureStreak {
    /// At least the last ten attempts failed.
    Failing {
        /// Time of the first of these failures, in milliseconds since 1970.
        since_ms: u64,
        /// Time of the last of these failures, in milliseconds since 1970.
        at_ms: u64,
    },
    /// An attempt succeeded, so the failures are no longer consecutive.
    Ended,
}

/// Maximum number of attempts that the state of a destination contains.
pub(super) const ATTEMPTS_KEPT: usize = 5;

/// The findings of one process about a destination since it last wrote to the shared state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// The URL of the destination, without credentials and query.
    pub destination: String,
    /// The full name of the subscription to which the attempts belong.
    pub subscription: String,
    /// The beginning, extension or end of the destination's probation, with its time in milliseconds
    /// since 1970.
    pub failing: Option<(Finding, u64)>,
    /// Maximum rate of the next recovery, in requests per second, and the time at which this
    /// maximum expires, in milliseconds since 1970. Present after a relapse during recovery.
    pub ceiling: Option<(u32, u64)>,
    /// Consecutive failures that began, continue or ended; `None` without such a change.
    pub row: Option<FailureStreak>,
    /// True if the process claimed the probe but did not attempt a delivery.
    pub is_unprobed: bool,
    /// The change of slowness, and the time of the finding in milliseconds since 1970.
    pub slow: Option<(Finding, u64)>,
    /// The last failure; present while the destination is failing.
    pub last_failure: Option<FailingDestination>,
    /// The attempts that revealed the findings.
    pub attempts: Vec<Attempted>,
    /// The subscription's rule for disabling a destination that fails for too long.
    pub disable: Option<Disable>,
    /// True if a subscription of the destination wants notices.
    pub notifies: bool,
}

impl Findings {
    /// Returns the namespace in which the destination is used.
    #[must_use]
    pub fn namespace(&self) -> &str {
        namespace_of(&self.subscription)
    }

    /// Returns empty findings about a destination.
    #[must_use]
    pub fn new(destination: String, subscription: String) -> Self {
        let (failing, ceiling, row, slow, attempts, disable, last_failure) = Default::default();
        let (is_unprobed, notifies) = (false, false);
        Self {
            destination,
            subscription,
            failing,
            ceiling,
            row,
            is_unprobed,
            slow,
            last_failure,
            attempts,
            disable,
            notifies,
        }
    }

    /// Adds an attempt. Only the last `ATTEMPTS_KEPT` are kept, because the table may be
    /// unreachable for a long time.
    pub fn add_attempt(&mut self, attempt: Attempted) {
        self.attempts.push(attempt);
        let too_many = self.attempts.len().saturating_sub(ATTEMPTS_KEPT);
        self.attempts.drain(..too_many);
    }

    /// Adds findings that could not be written earlier. Newer findings take precedence.
    pub fn add_earlier(&mut self, mut earlier: Self) {
        self.failing = self.failing.or(earlier.failing);
        self.slow = self.slow.or(earlier.slow);
        self.row = self.row.or(earlier.row);
        self.ceiling = self.ceiling.or(earlier.ceiling);
        if self.failing.is_none() {
            self.last_failure = self.last_failure.take().or(earlier.last_failure);
        }
        self.is_unprobed |= earlier.is_unprobed && self.failing.is_none();
        std::mem::swap(&mut self.attempts, &mut earlier.attempts);
        earlier.attempts.into_iter().for_each(|attempt| self.add_attempt(attempt));
    }
}

/// Returns the namespace of a subscription, given the subscription's full name.
pub(super) fn namespace_of(subscription: &str) -> &str {
    subscription.split('/').next().unwrap_or_default()
}
