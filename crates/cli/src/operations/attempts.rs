//! The attempts of a delivery whose destination cannot be reached.
//!
//! Separate because `check` shows it for each subscription and warns where a policy allows more. Attempts that get no
//! response are retried in every dialect, so these are the most attempts that a policy makes.

use std::collections::HashMap;

use delivery::explain::{Always, Endpoint, explain};
use delivery::subscription::Subscription;
use delivery::subscription::profile::RetryPolicy;

/// The attempts of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tries {
    /// The number of requests.
    pub(crate) attempts: usize,
    /// When the last one begins, since publication.
    pub(crate) last_at_ms: u64,
}

/// The attempts by the policy that decides them: many subscriptions have the same.
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
