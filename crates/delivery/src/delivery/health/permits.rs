//! How a destination that takes so many requests at once is shared out among all processes.
//!
//! One document says who holds how many permits, and until when. A process leases permits for its
//! attempts, for longer than they may take, and returns them when it needs none any more. One that is
//! killed keeps them until its lease is over.
//!
//! Who gets no permit gets a turn: a time by which, as long as attempts have taken lately, one will be
//! free. So deliveries that wait come back one after the other, and who comes later waits behind them.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::shared::{Document, VERSION};
use crate::time::duration::{MINUTE_MS, SECOND_MS};

/// A process that got fewer permits than it wanted is remembered for this long: until then nobody gets
/// more than an equal share.
const SHORT_MS: u64 = MINUTE_MS;
/// Turns are given out for so long ahead: what is known of how long attempts take may soon be wrong. Who
/// finds none left asks again then.
pub const TURNS_AHEAD_MS: u64 = 15 * MINUTE_MS;
/// No lease lasts longer: a late answer may take as long as two timeouts. A clock that was wrong wrote it.
const LEASE_MAX_MS: u64 = 30 * MINUTE_MS;
/// How long an attempt takes, until one is known.
const TAKES_MS: u64 = SECOND_MS / 2;
/// Turns are given out as if attempts took this many percent of their time: leasing takes some, and a
/// permit that is free for a moment costs less than a delivery that comes too early.
const TAKES_PERCENT: u64 = 115;

/// The permits of one destination that are given out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permits {
    v: u32,
    leases: Vec<Lease>,
    /// Until when somebody is short of permits.
    #[serde(default)]
    short_until_ms: u64,
    /// The end of the last turn that was given out, in microseconds.
    #[serde(default)]
    turns_until_us: u64,
    /// How long attempts take, on average; 0 until one is known.
    #[serde(default)]
    takes_ms: u64,
}

/// What one process holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Lease {
    /// The process.
    holder: Uuid,
    /// How many requests it may make at once.
    count: u32,
    /// Until when.
    until_ms: u64,
}

impl Default for Permits {
    fn default() -> Self {
        let (short_until_ms, turns_until_us, takes_ms) = Default::default();
        Self { v: VERSION, leases: Vec::new(), short_until_ms, turns_until_us, takes_ms }
    }
}

impl Document for Permits {}

impl Permits {
    /// Leases permits to a process, of `most` in all, and gives turns to its deliveries that are new and
    /// got none. What it had is part of them, and it keeps at least those that it uses, for as long as it
    /// had them.
    pub fn lease(&mut self, holder: Uuid, wanted: Wanted, most: u32, now_ms: u64) -> Granted {
        let Wanted { new, waited, in_use, until_ms } = wanted;
        self.forget_what_is_over(now_ms);
        // Who is new does not overtake those who wait.
        let new_at_once = if now_ms < self.turns_until_ms() { 0 } else { new };
        let count = in_use.saturating_add(waited).saturating_add(new_at_once);
        let before = self.leases.iter().position(|lease| lease.holder == holder);
        let before = before.map(|index| self.leases.swap_remove(index));
        let needed_ms = before.filter(|_| in_use > 0).map_or(0, |lease| lease.until_ms);
        let until_ms = until_ms.max(needed_ms);
        let taken = self.leases.iter().fold(0, |taken: u32, it| taken.saturating_add(it.count));
        let free = most.saturating_sub(taken);
        let holders = u32::try_from(self.leases.len() + 1).unwrap_or(u32::MAX);
        let is_short = now_ms < self.short_until_ms;
        let share = if is_short { (most / holders).max(1) } else { most };
        let permits = count.min(free).min(share).max(in_use);
        // Not each time, or every refusal would be a write.
        if permits < count && self.short_until_ms < now_ms.saturating_add(SHORT_MS / 2) {
            self.short_until_ms = now_ms.saturating_add(SHORT_MS);
        }
        if permits > 0 {
            self.leases.push(Lease { holder, count: permits, until_ms });
        }
        let for_new = permits.saturating_sub(in_use).saturating_sub(waited).min(new_at_once);
        let turns_ms = self.give_turns(new - for_new, most, now_ms);
        Granted { permits, until_ms, for_new, turns_ms }
    }

    /// Notes how long an attempt took. Turns that are still to come take as much longer or shorter.
    pub fn note_taken(&mut self, took_ms: u64, now_ms: u64) {
        let before_ms = self.takes_or_default_ms();
        let of_before = if self.takes_ms == 0 { took_ms } else { self.takes_ms };
        self.takes_ms = (of_before.saturating_mul(3).saturating_add(took_ms) / 4).max(1);
        let now_us = now_ms.saturating_mul(1_000);
        let left_us = self.turns_until_us.saturating_sub(now_us);
        if left_us > 0 {
            let changed_us = left_us.saturating_mul(self.takes_ms) / before_ms;
            self.turns_until_us = now_us.saturating_add(changed_us);
        }
    }

    /// How many are given out.
    #[must_use]
    pub fn held(&self, now_ms: u64) -> u32 {
        let held = self.leases.iter().filter(|lease| now_ms < lease.until_ms);
        held.fold(0, |held, lease| held.saturating_add(lease.count))
    }

    /// Until when turns are given out.
    #[must_use]
    pub fn turns_until_ms(&self) -> u64 {
        self.turns_until_us / 1_000
    }

    fn takes_or_default_ms(&self) -> u64 {
        if self.takes_ms == 0 { TAKES_MS } else { self.takes_ms }
    }

    /// Leases that are over, and what a clock that was wrong has written.
    fn forget_what_is_over(&mut self, now_ms: u64) {
        let latest_ms = now_ms.saturating_add(LEASE_MAX_MS);
        self.leases.retain(|lease| now_ms < lease.until_ms && lease.until_ms <= latest_ms);
        if self.turns_until_ms() > now_ms.saturating_add(2 * TURNS_AHEAD_MS) {
            self.turns_until_us = now_ms.saturating_mul(1_000);
        }
    }

    /// Turns for so many, as far as there are any in the time ahead.
    fn give_turns(&mut self, count: u32, most: u32, now_ms: u64) -> Vec<u64> {
        let each_us =
            self.takes_or_default_ms().saturating_mul(TAKES_PERCENT * 10) / u64::from(most.max(1));
        let last_ms = now_ms.saturating_add(TURNS_AHEAD_MS);
        let mut turns_ms = Vec::new();
        while turns_ms.len() < count as usize && self.turns_until_ms() < last_ms {
            let now_us = now_ms.saturating_mul(1_000);
            self.turns_until_us = self.turns_until_us.max(now_us).saturating_add(each_us);
            turns_ms.push(self.turns_until_ms());
        }
        turns_ms
    }
}

/// What a process wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// So many permits, for deliveries that have not waited yet.
    pub new: u32,
    /// So many for those whose turn it is.
    pub waited: u32,
    /// So many are in use, and cannot be returned.
    pub in_use: u32,
    /// Until then.
    pub until_ms: u64,
}

/// What a process gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Granted {
    /// How many permits it has now.
    pub permits: u32,
    /// Until when.
    pub until_ms: u64,
    /// How many of them are for deliveries that are new.
    pub for_new: u32,
    /// When those come back that are new and got none; fewer, where too many wait already.
    pub turns_ms: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(waited: u32, in_use: u32, until_ms: u64) -> Wanted {
        Wanted { new: 0, waited: waited - in_use, in_use, until_ms }
    }

    const A: Uuid = Uuid::from_u128(1);
    const B: Uuid = Uuid::from_u128(2);
    const C: Uuid = Uuid::from_u128(3);

    #[test]
    fn together_they_hold_no_more_than_the_destination_takes() {
        let mut permits = Permits::default();
        assert_eq!(permits.lease(A, wanted(2, 0, 100), 3, 0).permits, 2);
        assert_eq!(permits.lease(B, wanted(5, 0, 100), 3, 0).permits, 1);
        assert_eq!(permits.lease(C, wanted(1, 0, 100), 3, 0).permits, 0);
        assert_eq!(Permits::read(&permits.write()), Ok(permits.clone()));
        // Who returns them, or is gone, leaves them to others.
        assert_eq!(permits.lease(A, wanted(0, 0, 100), 3, 50).permits, 0);
        assert_eq!(permits.lease(C, wanted(1, 0, 200), 3, 50).permits, 1);
        assert_eq!(
            permits.lease(A, wanted(3, 0, 200), 3, 100).permits,
            1,
            "the lease of B is over"
        );
    }

    #[test]
    fn while_somebody_is_short_nobody_gets_more_than_an_equal_share_but_keeps_what_is_in_use() {
        let mut permits = Permits::default();
        assert_eq!(permits.lease(A, wanted(6, 0, 100_000), 6, 0).permits, 6);
        assert_eq!(permits.lease(B, wanted(3, 0, 100_000), 6, 0).permits, 0);
        assert_eq!(permits.lease(A, wanted(6, 6, 100_000), 6, 1_000).permits, 6, "all are in use");
        assert_eq!(
            permits.lease(A, wanted(6, 2, 100_000), 6, 2_000).permits,
            6,
            "nobody else holds any"
        );
        assert_eq!(permits.lease(A, wanted(1, 1, 100_000), 6, 3_000).permits, 1);
        assert_eq!(permits.lease(B, wanted(6, 0, 100_000), 6, 3_000).permits, 3);
        assert_eq!(permits.lease(A, wanted(6, 1, 100_000), 6, 4_000).permits, 3);
        // A minute after the last one was short.
        assert_eq!(permits.lease(B, wanted(0, 0, 100_000), 6, 70_000).permits, 0);
        assert_eq!(permits.lease(A, wanted(6, 0, 100_000), 6, 70_000).permits, 6);
    }

    #[test]
    fn who_is_new_and_gets_no_permit_gets_a_turn_behind_all_others() {
        let new = |new| Wanted { new, waited: 0, in_use: 0, until_ms: 60_000 };
        let mut permits = Permits::default();
        permits.note_taken(1_000, 0);
        // Three of them now, then one for each third of 1,150 ms.
        let first = permits.lease(A, new(5), 3, 10_000);
        assert_eq!((first.permits, first.for_new), (3, 3));
        assert_eq!(first.turns_ms, [10_383, 10_766]);
        permits.lease(A, new(0), 3, 10_100);
        // All are free, but two wait.
        let second = permits.lease(B, new(1), 3, 10_200);
        assert_eq!((second.permits, second.for_new, second.turns_ms), (0, 0, vec![11_149]));
        assert_eq!(permits.lease(B, wanted(1, 0, 60_000), 3, 10_400).permits, 1);
        let later = permits.lease(C, new(1), 3, 11_150);
        assert_eq!((later.permits, later.for_new, later.turns_ms), (1, 1, vec![]));
    }

    #[test]
    fn a_destination_that_recovers_is_not_kept_waiting_by_turns_of_before() {
        let new = |new| Wanted { new, waited: 0, in_use: 0, until_ms: 60_000 };
        let mut permits = Permits::default();
        (0..20).for_each(|_| permits.note_taken(20_000, 0));
        // 4.6 s each; no more than fit into 15 minutes.
        assert_eq!(permits.lease(A, new(6_000), 5, 0).turns_ms.len(), 196);
        assert!(permits.lease(B, new(10), 5, 0).turns_ms.is_empty());
        (0..40).for_each(|_| permits.note_taken(50, 1_000));
        assert!(permits.turns_until_ms() < 6_000, "{permits:?}");
    }

    #[test]
    fn a_lease_is_not_shortened_while_a_permit_is_in_use() {
        let mut permits = Permits::default();
        permits.lease(A, wanted(1, 0, 160_000), 1, 0);
        assert_eq!(permits.lease(A, wanted(1, 1, 61_000), 1, 1_000).until_ms, 160_000);
        assert_eq!(permits.lease(B, wanted(1, 0, 200_000), 1, 100_000).permits, 0);
        assert_eq!(permits.lease(A, wanted(1, 0, 161_000), 1, 100_000).until_ms, 161_000);
    }

    #[test]
    fn what_a_wrong_clock_wrote_is_forgotten() {
        let mut permits = Permits::default();
        let hour_ms = 60 * MINUTE_MS;
        let wanted_then = Wanted { new: 2, waited: 0, in_use: 0, until_ms: hour_ms + 60_000 };
        assert_eq!(permits.lease(A, wanted_then, 1, hour_ms).turns_ms.len(), 1);
        assert_eq!(permits.lease(B, wanted(1, 0, 60_000), 1, 0).permits, 1);
        assert_eq!(permits.turns_until_ms(), 0);
    }

    #[test]
    fn turns_follow_how_long_attempts_take() {
        let turn = |took_ms: &[u64]| {
            let mut permits = Permits::default();
            took_ms.iter().for_each(|took_ms| permits.note_taken(*took_ms, 0));
            let wanted = Wanted { new: 1, waited: 0, in_use: 0, until_ms: 0 };
            permits.lease(A, wanted, 0, 0).turns_ms
        };
        assert_eq!(turn(&[]), [575]);
        assert_eq!(turn(&[2_000]), [2_300]);
        assert_eq!(turn(&[2_000, 6_000]), [3_450]);
        assert_eq!(turn(&[0]), [1]);
    }
}
