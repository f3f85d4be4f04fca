//! What probation would do to the deliveries of an endpoint that always does the same.
//!
//! Separate because it is about the destination and all its deliveries, and not about the life of one.

use super::endpoint::Endpoint;
use crate::delivery::health::probation::{FAILURES, LONGEST_MS, first_ms};
use crate::subscription::Subscription;

/// When a destination is put on probation, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbationTerms {
    /// After so many failed attempts in a row, of at least two events.
    pub after_failures: u32,
    /// For how long at first; `None` if what the endpoint does begins none.
    pub first_ms: Option<u64>,
    /// For how long at most, after probes that fail.
    pub longest_ms: u64,
}

/// The terms of this subscription; `None` where probation is off.
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
