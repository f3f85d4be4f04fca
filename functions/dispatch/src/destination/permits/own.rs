//! The permits that this process holds, for destinations with `maxConcurrency`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use delivery::delivery::health::DestinationKey;
use delivery::table::{ItemKey, Permit};
use tokio::sync::Notify;

use crate::table::UNREACHABLE_MS;

/// Assumed duration of an attempt, before the first measurement.
const TAKES_MS: u64 = 500;

/// The permits that this process holds, for all destinations.
#[derive(Debug, Default)]
pub(in crate::destination) struct AllPermits {
    /// Random number that identifies this process in the names of its permits.
    pub(super) process: OnceLock<u32>,
    /// Number of the next permit that this process names.
    named: AtomicU32,
    /// Destinations with permits of this process. Sorted, because permits are returned in this
    /// order, which must not vary between runs. One destination may have two entries, as in
    /// `Unshared`.
    held: Mutex<BTreeMap<(DestinationKey, usize), Arc<OwnPermits>>>,
}

#[derive(Debug, Default)]
pub(in crate::destination) struct OwnPermits {
    /// Number of deliveries that wait for a permit and have had no turn yet. Deliveries whose turn
    /// has come are counted in `waited`.
    new: AtomicU32,
    waited: AtomicU32,
    held: Mutex<Held>,
    /// Lock that is held during a request to the table.
    pub(in crate::destination) asking: tokio::sync::Mutex<()>,
    pub(in crate::destination) freed: Notify,
    /// Item of the table that contains the permits of this destination.
    pub(in crate::destination) item: OnceLock<ItemKey>,
}

/// The permits of this process for one destination, and its copy of the destination's queue of
/// turns.
#[derive(Debug, Default)]
pub(in crate::destination) struct Held {
    grants: Vec<Grant>,
    /// Number of unused permits that are reserved for new deliveries.
    pub(in crate::destination) for_new: u32,
    /// Permits that the table may have granted in a response that was lost. They are returned to
    /// the table.
    pub(in crate::destination) uncertain: Vec<Permit>,
    /// Number of requests that this process may make while the table is unreachable, and the time
    /// until which that number is valid.
    share: Option<(u32, u64)>,
    /// Turns that are not assigned to a delivery yet.
    pub(in crate::destination) turns_ms: VecDeque<u64>,
    /// The time until which all turns are taken. New deliveries get a later turn.
    pub(in crate::destination) line_until_ms: u64,
    /// Earliest time of the next request for permits to the table.
    pub(in crate::destination) ask_again_ms: u64,
    /// Average duration of attempts in milliseconds; 0 before the first measurement.
    takes_ms: u64,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::destination) struct Grant {
    pub(in crate::destination) permit: Permit,
    /// Maximum number of concurrent requests that this permit allows.
    pub(in crate::destination) allows: u32,
    /// True if the table has granted the permit; false for the share of a process while the table
    /// is unreachable.
    pub(in crate::destination) is_in_table: bool,
    in_use: u32,
}

impl Grant {
    pub(in crate::destination) fn new(permit: Permit, allows: u32, is_in_table: bool) -> Self {
        Self { permit, allows, is_in_table, in_use: 0 }
    }
}

impl AllPermits {
    pub(super) fn next_number(&self) -> u32 {
        self.named.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers a destination for which this process holds permits.
    pub(super) fn note_held(&self, key: DestinationKey, own: &Arc<OwnPermits>) {
        self.lock().entry((key, Arc::as_ptr(own).addr())).or_insert_with(|| Arc::clone(own));
    }

    /// Returns the destinations with permits that this process no longer needs.
    pub(super) fn unneeded(&self) -> Vec<Arc<OwnPermits>> {
        let mut held = self.lock();
        held.retain(|_, own| own.has_any());
        held.values().filter(|own| own.has_unneeded()).map(Arc::clone).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(DestinationKey, usize), Arc<OwnPermits>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OwnPermits {
    pub(in crate::destination) fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::destination) fn new_ones(&self) -> u32 {
        self.new.load(Ordering::Relaxed)
    }

    pub(in crate::destination) fn waited(&self) -> u32 {
        self.waited.load(Ordering::Relaxed)
    }

    fn is_wanted(&self) -> bool {
        self.new_ones() > 0 || self.waited() > 0
    }

    fn has_any(&self) -> bool {
        let held = self.held();
        !held.grants.is_empty() || !held.uncertain.is_empty()
    }

    fn has_unneeded(&self) -> bool {
        let held = self.held();
        let has_uncertain = !held.uncertain.is_empty();
        !self.is_wanted() && (has_uncertain || held.grants.iter().any(|grant| grant.in_use == 0))
    }

    /// Uses a permit for an attempt that ends before `ends_ms`; returns `None` if there is none.
    pub(in crate::destination) fn take(self: &Arc<Self>, ends_ms: u64) -> Option<UsedPermit> {
        let mut held = self.held();
        let fits =
            |grant: &&mut Grant| grant.in_use < grant.allows && ends_ms <= grant.permit.until_ms;
        // Takes the permit that expires first, and leaves the others for later deliveries.
        let grant = held.grants.iter_mut().filter(fits).min_by_key(|grant| grant.permit)?;
        grant.in_use += 1;
        Some(UsedPermit { own: Arc::clone(self), permit: grant.permit })
    }

    /// Removes the unused permits that expire before `ends_ms`. Returns those that the table has
    /// granted.
    pub(in crate::destination) fn take_too_short(&self, ends_ms: u64) -> Vec<Permit> {
        let mut held = self.held();
        let is_too_short = |grant: &mut Grant| grant.in_use == 0 && grant.permit.until_ms < ends_ms;
        let too_short = held.grants.extract_if(.., is_too_short);
        too_short.filter(|grant| grant.is_in_table).map(|grant| grant.permit).collect()
    }

    /// Removes the permits that are no longer needed. Returns those that the table has granted.
    pub(in crate::destination) fn take_unneeded(&self) -> Vec<Permit> {
        if self.is_wanted() {
            return Vec::new();
        }
        let mut held = self.held();
        let unneeded = held.grants.extract_if(.., |grant| grant.in_use == 0);
        let mut unneeded: Vec<Permit> =
            unneeded.filter(|grant| grant.is_in_table).map(|grant| grant.permit).collect();
        unneeded.append(&mut held.uncertain);
        unneeded
    }
}

impl Held {
    /// Adds newly granted permits.
    pub(in crate::destination) fn add(&mut self, grants: impl IntoIterator<Item = Grant>) {
        self.grants.extend(grants);
    }

    /// Returns the share of this process while the table is unreachable. Calls `draw` for a new
    /// share after the pause of requests to the table has ended.
    pub(in crate::destination) fn share(&mut self, now_ms: u64, draw: impl FnOnce() -> u32) -> u32 {
        let drawn = self.share.filter(|(_, until_ms)| now_ms < *until_ms);
        let (share, _) = *self
            .share
            .insert(drawn.unwrap_or_else(|| (draw(), now_ms.saturating_add(UNREACHABLE_MS))));
        share
    }

    /// Limits the requests of this process to its share while the table is unreachable. Its permits
    /// from the table count towards the share.
    pub(in crate::destination) fn use_share(&mut self, share: Grant) {
        let in_table: u32 =
            self.grants.iter().filter(|grant| grant.is_in_table).map(|grant| grant.allows).sum();
        let allows = share.allows.saturating_sub(in_table);
        match self.grants.iter_mut().find(|grant| !grant.is_in_table) {
            Some(known) => {
                known.allows = allows.max(known.in_use);
                known.permit.until_ms = share.permit.until_ms;
            }
            None => self.grants.push(Grant { allows, ..share }),
        }
    }

    /// Returns how many more requests may start if each may take until `ends_ms`.
    pub(in crate::destination) fn free(&self, ends_ms: u64) -> u32 {
        let fits = self.grants.iter().filter(|grant| ends_ms <= grant.permit.until_ms);
        fits.map(|grant| grant.allows - grant.in_use).sum()
    }

    pub(in crate::destination) fn is_in_use(&self) -> bool {
        self.grants.iter().any(|grant| grant.in_use > 0)
    }

    /// Removes and returns the next turn that has not passed.
    pub(in crate::destination) fn take_turn(&mut self, now_ms: u64) -> Option<u64> {
        // Earlier turns belonged to deliveries that got a permit after all.
        self.turns_ms.retain(|turn_ms| now_ms <= *turn_ms);
        self.turns_ms.pop_front()
    }

    /// Adopts the average duration of attempts in other processes, if this process has made no
    /// attempt yet.
    pub(in crate::destination) fn note_taken_elsewhere(&mut self, takes_ms: Option<u64>) {
        if self.known_takes_ms().is_none() {
            self.takes_ms = takes_ms.unwrap_or_default();
        }
    }

    /// Adds the duration of an attempt to the average.
    pub(in crate::destination) fn note_taken(&mut self, took_ms: u64) {
        let before_ms = if self.takes_ms == 0 { took_ms } else { self.takes_ms };
        self.takes_ms = (before_ms.saturating_mul(3).saturating_add(took_ms) / 4).max(1);
    }

    /// Returns the average duration of an attempt; an assumed value before the first measurement.
    pub(in crate::destination) fn takes_ms(&self) -> u64 {
        self.known_takes_ms().unwrap_or(TAKES_MS)
    }

    /// Returns the average duration of an attempt; `None` before the first measurement.
    pub(in crate::destination) fn known_takes_ms(&self) -> Option<u64> {
        Some(self.takes_ms).filter(|takes_ms| *takes_ms > 0)
    }
}

/// A permit in use by one request. Dropping the value frees the permit.
#[derive(Debug)]
pub(in crate::destination) struct UsedPermit {
    own: Arc<OwnPermits>,
    permit: Permit,
}

impl UsedPermit {
    /// Returns the time by which the request must have ended, because the permit expires then.
    pub(in crate::destination) fn until_ms(&self) -> u64 {
        self.permit.until_ms
    }

    /// Adds the duration of the attempt to the average.
    pub(in crate::destination) fn note_taken(&self, took_ms: u64) {
        self.own.held().note_taken(took_ms);
    }
}

impl Drop for UsedPermit {
    fn drop(&mut self) {
        let mut held = self.own.held();
        if let Some(grant) =
            held.grants.iter_mut().find(|grant| grant.permit.number == self.permit.number)
        {
            grant.in_use = grant.in_use.saturating_sub(1);
        }
        drop(held);
        self.own.freed.notify_waiters();
    }
}

/// Counts a delivery as waiting for a permit, until the value is dropped.
pub(in crate::destination) struct Waiting<'a>(&'a AtomicU32);

impl<'a> Waiting<'a> {
    pub(in crate::destination) fn new(own: &'a OwnPermits, has_waited: bool) -> Self {
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

    fn grant(until_ms: u64, allows: u32, is_in_table: bool) -> Grant {
        let number = u32::try_from(until_ms).expect("a small time");
        Grant::new(Permit { until_ms, process: 1, number }, allows, is_in_table)
    }

    fn permits_until(times_ms: &[u64]) -> Arc<OwnPermits> {
        let own = Arc::new(OwnPermits::default());
        own.held().add(times_ms.iter().map(|until_ms| grant(*until_ms, 1, true)));
        own
    }

    #[test]
    fn an_attempt_uses_the_permit_that_ends_first_after_it() {
        let own = permits_until(&[30, 10, 20]);
        assert_eq!(own.held().free(10), 3);
        assert_eq!(own.held().free(21), 1);
        let used: Vec<u32> = [15, 5, 15]
            .map(|ends_ms| own.take(ends_ms).expect("a permit is left"))
            .iter()
            .map(|used| used.permit.number)
            .collect();
        assert_eq!(used, [20, 10, 30]);
        assert!(own.take(31).is_none());
    }

    #[test]
    fn a_permit_may_be_for_several_requests_at_once() {
        let own = permits_until(&[]);
        own.held().add([grant(10, 2, true)]);
        let used = [own.take(10), own.take(10)];
        assert!(used.iter().all(Option::is_some) && own.take(10).is_none());
        assert!(own.held().is_in_use());
        drop(used);
        assert_eq!(own.held().free(10), 2);
        assert!(!own.held().is_in_use());
    }

    #[test]
    fn what_nobody_uses_or_wants_is_returned_and_what_the_table_does_not_know_is_dropped() {
        let (permits, own) = (AllPermits::default(), Arc::new(OwnPermits::default()));
        let key = DestinationKey::new("n", &"https://example.com/".parse().unwrap());
        permits.note_held(key, &own);
        own.held().add([grant(10, 1, true), grant(20, 1, true), grant(30, 1, false)]);
        let used = own.take(10);
        for has_waited in [false, true] {
            let waiting = Waiting::new(&own, has_waited);
            assert_eq!((permits.unneeded().len(), own.take_unneeded()), (0, Vec::new()));
            drop(waiting);
        }
        assert_eq!(permits.unneeded().len(), 1);
        let returned: Vec<u64> = own.take_unneeded().iter().map(|permit| permit.until_ms).collect();
        assert_eq!((returned, permits.unneeded().len()), (vec![20], 0));
        drop(used);
        assert_eq!(own.take_unneeded().len(), 1);
    }

    #[test]
    fn a_share_is_what_the_permits_of_the_table_leave_of_it() {
        let own = permits_until(&[100]);
        let of_share = |own: &OwnPermits| own.held().free(50) - 1;
        own.held().use_share(grant(60, 3, false));
        assert_eq!(of_share(&own), 2);
        let used = [own.take(50), own.take(50)];
        assert!(used.iter().all(Option::is_some));
        // The share now ends later, and does not fall below the number of requests in flight.
        own.held().use_share(grant(70, 1, false));
        assert_eq!(own.held().free(70), 1, "that of the table");
        drop(used);
        assert_eq!(own.held().free(70), 3);
    }

    #[test]
    fn turns_that_have_passed_are_nobodys() {
        let mut held = Held { turns_ms: [3, 5, 7].into(), ..Held::default() };
        assert_eq!(
            [held.take_turn(4), held.take_turn(4), held.take_turn(4)],
            [Some(5), Some(7), None]
        );
    }

    #[test]
    fn how_long_attempts_take_follows_those_that_were_made() {
        let mut held = Held::default();
        assert_eq!(held.takes_ms(), 500);
        held.note_taken(2_000);
        assert_eq!(held.takes_ms(), 2_000);
        held.note_taken(6_000);
        assert_eq!(held.takes_ms(), 3_000);
        held.note_taken(0);
        assert_eq!(held.takes_ms(), 2_250);
    }
}
