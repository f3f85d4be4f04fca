//! The permits that this process holds of destinations that take so many requests at once.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use delivery::delivery::health::DestinationKey;
use tokio::sync::Notify;
use uuid::Uuid;

/// The destinations for which this process holds permits, or did.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    /// Who holds them.
    pub(crate) holder: OnceLock<Uuid>,
    /// In an order that is the same in each process, because they are returned in it.
    own: Mutex<BTreeMap<DestinationKey, Arc<OwnLease>>>,
}

/// The permits of one destination that this process holds.
#[derive(Debug, Default)]
pub(crate) struct OwnLease {
    /// How many deliveries that are new want one, and how many whose turn it is.
    pub(crate) new: AtomicU32,
    pub(crate) waited: AtomicU32,
    held: Mutex<Held>,
    /// Locked while the document is changed.
    pub(crate) asking: tokio::sync::Mutex<()>,
    pub(crate) freed: Notify,
}

/// How many permits it holds, until when, and how many are in use.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) count: u32,
    pub(crate) until_ms: u64,
    pub(crate) in_use: u32,
    pub(crate) asked_ms: Option<u64>,
    /// Until when others wait for their turns: who is new comes after them.
    pub(crate) turns_until_ms: u64,
    /// How many of its permits were granted for deliveries that are new.
    pub(crate) for_new: u32,
    /// Turns that nobody has taken yet.
    pub(crate) turns_ms: VecDeque<u64>,
    /// How long its attempts took since that was told to others, all together, and how many they were.
    pub(crate) took_ms: u64,
    pub(crate) attempts: u32,
}

impl OwnLease {
    pub(crate) fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many deliveries want a permit: those that are new, and those whose turn it is.
    pub(crate) fn waiting(&self) -> [u32; 2] {
        [&self.new, &self.waited].map(|count| count.load(Ordering::Relaxed))
    }

    /// One of those that were granted for deliveries that are new.
    pub(crate) fn take_as_new(self: &Arc<Self>, ends_ms: u64) -> Option<LeasedPermit> {
        self.held().for_new.checked_sub(1)?;
        let permit = self.take(ends_ms)?;
        let mut held = self.held();
        held.for_new = held.for_new.saturating_sub(1);
        drop(held);
        Some(permit)
    }

    /// A permit for an attempt that ends before this time.
    pub(crate) fn take(self: &Arc<Self>, ends_ms: u64) -> Option<LeasedPermit> {
        let mut held = self.held();
        let is_free = held.in_use < held.count && ends_ms <= held.until_ms;
        is_free.then(|| {
            held.in_use += 1;
            LeasedPermit(Arc::clone(self))
        })
    }
}

impl Held {
    /// Notes an attempt with one of its permits.
    pub(crate) fn note_taken(&mut self, took_ms: u64) {
        self.took_ms = self.took_ms.saturating_add(took_ms);
        self.attempts = self.attempts.saturating_add(1);
    }

    /// How long an attempt took on average since this was asked last, if there was one.
    pub(crate) fn take_mean_ms(&mut self) -> Option<u64> {
        let attempts = std::mem::take(&mut self.attempts);
        std::mem::take(&mut self.took_ms).checked_div(u64::from(attempts))
    }

    /// Whether there is a permit or a turn for a delivery that is new.
    pub(crate) fn has_answer(&mut self, now_ms: u64) -> bool {
        self.forget_turns_before(now_ms);
        (self.for_new > 0 && self.in_use < self.count) || !self.turns_ms.is_empty()
    }

    /// Takes the next turn.
    pub(crate) fn take_turn(&mut self, now_ms: u64) -> Option<u64> {
        self.forget_turns_before(now_ms);
        self.turns_ms.pop_front()
    }

    fn forget_turns_before(&mut self, now_ms: u64) {
        // They were for somebody who got a permit after all.
        self.turns_ms.retain(|turn_ms| now_ms <= *turn_ms);
    }

    /// What is left once all permits are returned: what nobody was told yet.
    pub(crate) fn returned(&self) -> Self {
        Self { took_ms: self.took_ms, attempts: self.attempts, ..Self::default() }
    }
}

/// A permit to make one request, until it is dropped.
#[derive(Debug)]
pub(crate) struct LeasedPermit(Arc<OwnLease>);

impl Drop for LeasedPermit {
    fn drop(&mut self) {
        let mut held = self.0.held();
        held.in_use = held.in_use.saturating_sub(1);
        drop(held);
        self.0.freed.notify_waiters();
    }
}

impl Leases {
    /// The permits of this destination.
    pub(crate) fn of(&self, key: DestinationKey) -> Arc<OwnLease> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(own.entry(key).or_default())
    }

    /// Those that nobody uses or waits for, to be returned.
    pub(crate) fn idle(&self) -> Vec<(DestinationKey, Arc<OwnLease>)> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let is_idle = |lease: &Arc<OwnLease>| {
            let held = lease.held();
            held.count > 0 && held.in_use == 0 && lease.waiting() == [0, 0]
        };
        own.iter().filter(|(_, it)| is_idle(it)).map(|(key, it)| (*key, Arc::clone(it))).collect()
    }
}

/// One more delivery that waits for a permit.
pub(crate) struct Waiting<'a>(&'a AtomicU32);

impl<'a> Waiting<'a> {
    pub(crate) fn of(own: &'a OwnLease, has_waited: bool) -> Self {
        let count = if has_waited { &own.waited } else { &own.new };
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_delivery_has_an_answer_while_a_permit_is_free_for_it_or_a_turn_is_left() {
        for (for_new, in_use, turns, expected) in [
            (1, 1, &[][..], true),
            // None was granted for it, or all are in use.
            (0, 1, &[], false),
            (1, 2, &[], false),
            (0, 2, &[5_000], true),
            // That turn was for somebody who got a permit after all.
            (0, 2, &[4_999], false),
        ] {
            let turns_ms = turns.iter().copied().collect();
            let mut held = Held { count: 2, for_new, in_use, turns_ms, ..Held::default() };
            assert_eq!(held.has_answer(5_000), expected, "{for_new} {in_use} {turns:?}");
        }
    }

    #[test]
    fn a_lease_is_idle_while_nobody_uses_or_wants_it() {
        let leases = Leases::default();
        let own = leases.of(DestinationKey::of(&"https://example.com/".parse().unwrap()));
        let idle = || leases.idle().len();
        assert_eq!(idle(), 0, "nothing to return");
        *own.held() = Held { count: 1, until_ms: 10, ..Held::default() };
        assert_eq!(idle(), 1);
        let permit = own.take(10);
        assert_eq!((permit.is_some(), idle(), own.take(10).is_none()), (true, 0, true));
        drop(permit);
        assert!(own.take(11).is_none(), "it would end after the lease");
        for has_waited in [false, true] {
            let waiting = Waiting::of(&own, has_waited);
            assert_eq!((own.waiting().iter().sum::<u32>(), idle()), (1, 0));
            drop(waiting);
        }
        assert_eq!(idle(), 1);
    }
}
