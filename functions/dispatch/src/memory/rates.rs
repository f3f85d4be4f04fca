//! The slots that this process has of destinations that take so many requests a second.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::slots::OwnSlots;

/// The destinations with a rate that this process has sent to.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<HashMap<DestinationKey, Arc<RateOfOne>>>);

/// The slots of one destination that this process has.
#[derive(Debug, Default)]
pub(crate) struct RateOfOne {
    /// How many slots those who wait for the lock want.
    pub(crate) wanted: AtomicU32,
    pub(crate) own: tokio::sync::Mutex<Own>,
}

/// What this process has of a rate.
#[derive(Debug, Default)]
pub(crate) struct Own {
    pub(crate) slots: OwnSlots,
    /// While storage is down: when this process may make its next request.
    pub(crate) share_next_ms: u64,
}

impl Rates {
    /// The slots of this destination.
    pub(crate) fn of(&self, key: DestinationKey) -> Arc<RateOfOne> {
        let mut rates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(rates.entry(key).or_default())
    }
}

/// So many slots are wanted, until this is dropped.
pub(crate) struct Wants<'a>(&'a AtomicU32, u32);

impl<'a> Wants<'a> {
    pub(crate) fn of(wanted: &'a AtomicU32, count: u32) -> Self {
        wanted.fetch_add(count, Ordering::Relaxed);
        Self(wanted, count)
    }
}

impl Drop for Wants<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_wanted_until_whoever_wants_them_has_gone() {
        let wanted = AtomicU32::new(0);
        let (two, three) = (Wants::of(&wanted, 2), Wants::of(&wanted, 3));
        assert_eq!(wanted.load(Ordering::Relaxed), 5);
        drop(two);
        assert_eq!(wanted.load(Ordering::Relaxed), 3);
        drop(three);
        assert_eq!(wanted.load(Ordering::Relaxed), 0);
    }
}
