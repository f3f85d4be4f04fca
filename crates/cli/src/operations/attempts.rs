//! Computes the attempts of a delivery whose destination is unreachable.
//!
//! Separate because `check` shows them for each subscription, and warns about policies that allow
//! more. Every dialect retries attempts without a response, so these are the most attempts of a
//! policy.

use std::collections::HashMap;

use delivery::explain::{Always, Endpoint, explain};
use delivery::subscription::Subscription;
use delivery::subscription::profile::RetryPolicy;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tries {
    /// The number of requests.
    pub(crate) attempts: usize,
    /// The start of the last attempt, since publication.
    pub(crate) last_at_ms: u64,
}

/// The attempts by retry policy, because many subscriptions have the same policy.
#[derive(Default)]
pub(crate) struct Attempts<'a>(HashMap<&'a RetryPolicy, Tries>);

impl<'a> Attempts<'a> {
    /// The attempts of a delivery of this subscription.
    pub(crate) fn of(&mut self, subscription: &'a Subscription) -> Tries {
        let unreachable = Endpoint { always: Always::Refused, retry_after: None };
        *self.0.entry(&subscription.retry).or_insert_with(|| {
            let life = explain(subscription, &unreachable, 0);
            let last_at_ms = life.attempts.last().map_or(0, |attempt| attempt.at_ms);
            Tries { attempts: life.attempts.len(), last_at_ms }
        })
    }
}
