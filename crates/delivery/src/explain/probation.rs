//! Explains the probation of a destination whose endpoint always behaves in the same way.
//!
//! This module is separate because it is about the destination and all of its deliveries, not about
//! the attempts of one delivery.

use super::endpoint::Endpoint;
use crate::delivery::health::probation::{FAILURES, LONGEST_MS, first_ms};
use crate::subscription::Subscription;

/// The number of failures that begin a probation, and the duration of the probation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbationTerms {
    /// Number of consecutive failed attempts that begin a probation. The attempts must be for at
    /// least two different events.
    pub after_failures: u32,
    /// Duration of the first probation in milliseconds; `None` if the endpoint's behaviour never
    /// causes a probation.
    pub first_ms: Option<u64>,
    /// Maximum duration of a probation in milliseconds, reached after failed probes.
    pub longest_ms: u64,
}

/// Returns the terms of probation for this endpoint; `None` if the subscription disables probation.
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
