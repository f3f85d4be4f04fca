//! Computes the attempts of a delivery to an unreachable destination.
//!
//! Separate because `check` shows these attempts for each subscription, and warns about policies
//! that allow more attempts than fit into the time limit. Every dialect retries attempts without a
//! response. Therefore, an unreachable destination gets the maximum number of attempts of a policy.

use std::collections::HashMap;

use delivery::explain::{Always, Endpoint, explain};
use delivery::subscription::Subscription;
use delivery::subscription::profile::RetryPolicy;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tries {
    /// The number of attempts until the delivery becomes a dead letter.
    pub(crate) attempts: usize,
    /// The start of the last attempt, in milliseconds since publication.
    pub(crate) last_at_ms: u64,
}

/// Caches the computed attempts by retry policy, because many subscriptions have the same policy.
#[derive(Default)]
pub(crate) struct Attempts<'a>(HashMap<&'a RetryPolicy, Tries>);

impl<'a> Attempts<'a> {
    /// Returns the attempts that a delivery of this subscription makes if its destination is
    /// unreachable.
    pub(crate) fn tries(&mut self, subscription: &'a Subscription) -> Tries {
        let unreachable = Endpoint { always: Always::Refused, retry_after: None };
        *self.0.entry(&subscription.retry).or_insert_with(|| {
            let life = explain(subscription, &unreachable, 0);
            let last_at_ms = life.attempts.last().map_or(0, |attempt| attempt.at_ms);
            Tries { attempts: life.attempts.len(), last_at_ms }
        })
    }
}
