//! What this process knows of destinations that show that they have too much to do: how many requests
//! each gets at once, and until when one asked to be left alone (`Retry-After`).
//!
//! The rules are `delivery::delivery::health::adaptive` and `retry_after`. Other processes find out by
//! themselves: each has its own part in what a destination has to do.

use std::sync::{Mutex, MutexGuard, PoisonError};

use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::adaptive::{AdaptiveLimits, Observed};
use delivery::delivery::health::retry_after::RequestedWaits;
use delivery::subscription::Subscription;

use super::health::key_of;

/// The destinations that have too much to do, as far as this process knows.
#[derive(Debug, Default)]
pub(crate) struct Adaptive(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    limits: AdaptiveLimits<DestinationKey>,
    waits: RequestedWaits<DestinationKey>,
}

impl Adaptive {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no destination had too much to do lately. Then each has its whole limit.
    pub(crate) fn is_empty(&self) -> bool {
        self.memory().limits.is_empty()
    }

    /// How many requests a destination gets at once, if that is less than its ceiling.
    pub(crate) fn limit(&self, key: &DestinationKey, ceiling: u32) -> Option<u32> {
        self.memory().limits.limit(key, ceiling)
    }

    /// Takes into account what an attempt showed.
    pub(crate) fn note(&self, key: &DestinationKey, observed: Observed) {
        self.memory().limits.note(key, observed);
    }

    /// Notes that a destination asked to be left alone for so long.
    pub(crate) fn note_wait(&self, key: &DestinationKey, answered_ms: u64, wait_ms: u64) {
        self.memory().waits.note(key, answered_ms, wait_ms);
    }

    /// Until when a destination asked to be left alone, as far as this subscription obeys.
    pub(crate) fn left_alone_until_ms(
        &self,
        subscription: &Subscription,
        now_ms: u64,
    ) -> Option<u64> {
        let most_ms = subscription.retry.retry_after_max_ms;
        let mut memory = self.memory();
        // Nearly always: then no address is hashed.
        if memory.waits.is_empty() || most_ms == 0 {
            return None;
        }
        memory.waits.until_ms(&key_of(subscription), most_ms, now_ms)
    }
}

/// The most requests at once that a subscription allows. At least one, or its deliveries would wait for
/// ever.
pub(crate) fn ceiling_of(subscription: &Subscription) -> u32 {
    subscription.destination.max_concurrency.most.max(1)
}
