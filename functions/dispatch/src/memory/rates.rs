//! The slots that this process has of destinations that take so many requests a second.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use delivery::delivery::health::DestinationKey;
use delivery::time::duration::SECOND_MS;

/// A slot may be used so late.
const LATE_MS: u64 = SECOND_MS;

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
    /// Slots that nobody has used yet, in their order.
    slots_ms: VecDeque<u64>,
    /// Until when others wait, as far as this process knows.
    pub(crate) line_until_ms: u64,
    /// While the table cannot be reached: when this process may make its next request.
    pub(crate) share_next_ms: u64,
}

impl Rates {
    /// The slots of this destination.
    pub(crate) fn of(&self, key: DestinationKey) -> Arc<RateOfOne> {
        let mut rates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(rates.entry(key).or_default())
    }
}

impl Own {
    /// Adds slots, which are later than all before.
    pub(crate) fn add(&mut self, slots_ms: impl Iterator<Item = u64>) {
        self.slots_ms.extend(slots_ms);
    }

    /// Uses the next slot that is not over.
    pub(crate) fn take(&mut self, now_ms: u64) -> Option<u64> {
        self.slots_ms.retain(|slot_ms| now_ms <= slot_ms.saturating_add(LATE_MS));
        self.slots_ms.pop_front()
    }

    /// Puts one back that was too late for whoever took it.
    pub(crate) fn put_back(&mut self, slot_ms: u64) {
        self.slots_ms.push_front(slot_ms);
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

    #[test]
    fn slots_are_used_in_their_order_and_lost_a_second_later() {
        let mut own = Own::default();
        own.add([10_000, 10_050, 11_000].into_iter());
        assert_eq!(own.take(11_001), Some(10_050));
        own.put_back(10_050);
        assert_eq!(own.take(11_050), Some(10_050));
        assert_eq!((own.take(5), own.take(5)), (Some(11_000), None));
    }
}
