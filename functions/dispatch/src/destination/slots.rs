//! The unused rate slots of this process, for destinations with a rate.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

use delivery::time::duration::SECOND_MS;

/// Maximum lateness at which a slot can still be used.
const LATE_MS: u64 = SECOND_MS;

#[derive(Debug, Default)]
pub(super) struct OwnSlots {
    /// Number of slots that are needed by the deliveries that wait for the lock.
    pub(super) wanted: AtomicU32,
    pub(super) own: tokio::sync::Mutex<Own>,
}

/// The unused slots of one rate, and this process's copy of the time until which slots are taken.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// Unused slots in ascending order, in milliseconds since 1970.
    slots_ms: VecDeque<u64>,
    /// The time until which all processes have taken slots, from the last response of the table.
    pub(super) line_until_ms: u64,
    /// Time of the next request of this process while the table is unreachable.
    pub(super) share_next_ms: u64,
}

impl Own {
    /// Adds slots, which must be later than all existing slots.
    pub(super) fn add(&mut self, slots_ms: impl Iterator<Item = u64>) {
        self.slots_ms.extend(slots_ms);
    }

    /// Removes and returns the next slot that has not passed.
    pub(super) fn take(&mut self, now_ms: u64) -> Option<u64> {
        self.slots_ms.retain(|slot_ms| now_ms <= slot_ms.saturating_add(LATE_MS));
        self.slots_ms.pop_front()
    }

    /// Puts back a slot that was too late for its delivery.
    pub(super) fn put_back(&mut self, slot_ms: u64) {
        self.slots_ms.push_front(slot_ms);
    }
}

/// Counts slots as wanted, until the value is dropped.
pub(super) struct Wants<'a>(&'a AtomicU32, u32);

impl<'a> Wants<'a> {
    pub(super) fn new(wanted: &'a AtomicU32, count: u32) -> Self {
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
        let (two, three) = (Wants::new(&wanted, 2), Wants::new(&wanted, 3));
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
