//! Explains the probation of a destination whose endpoint always behaves the same.
//!
//! Separate because it is about the destination and all of its deliveries, not about the life of
//! one delivery.

use super::endpoint::Endpoint;
use crate::delivery::health::probation::{FAILURES, LONGEST_MS, first_ms};
use crate::subscription::Subscription;

/// The start and the duration of probation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbationTerms {
    /// Number of consecutive failed attempts, of at least two events, that begin probation.
    pub after_failures: u32,
    /// First duration in milliseconds; `None` if this behaviour begins no probation.
    pub first_ms: Option<u64>,
    /// Maximum duration in milliseconds, after failed probes.
    pub longest_ms: u64,
}

/// Returns the terms of this subscription; `None` if it has no probation.
#[must_use]
pub fn probation(subscription: &Subscription, endpoint: &Endpoint) -> Option<ProbationTerms> {
    let exchange = endpoint.exchange(subscription, 0);
    let outcome = exchange.outcome(&subscription.retry);
    let terms = ProbationTerms {
        after_failures: FAILURES,
        first_ms: first_ms(outcome, exchange.status()),
        longest_ms: LONGEST_MS,
    };
    subscription.destination.probation.then_some(terms)
}
