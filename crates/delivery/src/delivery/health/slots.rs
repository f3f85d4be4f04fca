//! How a destination that takes so many requests a second is shared out among all processes.
//!
//! Each second has as many slots as the destination takes requests. One document holds how many of them
//! are taken, from the first second that has one left; processes reserve them in it, so a slot is given
//! out once. A delivery that gets a later slot waits for it as a message. So a backlog of any length is
//! one number, and each of its deliveries is sent once, or once more for each delay that SQS limits.
//!
//! A slot may be used a second late: never are more than twice as many requests made in a second. A slot
//! that a process reserved and did not use by then is lost.

use serde::{Deserialize, Serialize};

use super::shared::{Document, VERSION};
use crate::subscription::profile::LIFETIME_MAX_MS;
use crate::time::duration::SECOND_MS;

/// A process that uses slots all the time reserves them for this many seconds ahead.
pub const AHEAD_SECONDS: u64 = 10;
/// How late a delivery may come for the slot it waited for. Beyond that it gets another one, once: then
/// it is attempted whenever it comes, or a queue that is slow would keep it from ever being attempted.
pub const LATE_MS: u64 = 5 * SECOND_MS;

/// Nobody waits for longer: slots that are given out for so long are those of a wrong clock.
const PLAUSIBLE_S: u64 = LIFETIME_MAX_MS / SECOND_MS;

/// The slots of one destination that are given out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    v: u32,
    /// For how many requests a second they were given out.
    per_second: u32,
    /// In all seconds before this one every slot is taken, or over.
    from_s: u64,
    /// How many are taken in each second from there on.
    taken: Vec<u32>,
}

/// What a process wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// How many requests a second the destination takes.
    pub per_second: u32,
    /// So many slots, as early as possible.
    pub count: u32,
    /// No later than this: what waits for longer has ended by then.
    pub latest_ms: u64,
    /// Up to so many in each of the coming seconds, as far as they are free: nobody waits for them yet.
    pub ahead: u32,
}

/// Slots of one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserved {
    /// When the second begins.
    pub at_ms: u64,
    /// How many.
    pub count: u32,
}

impl Default for Slots {
    fn default() -> Self {
        Self { v: VERSION, per_second: 0, from_s: 0, taken: Vec::new() }
    }
}

impl Document for Slots {}

impl Slots {
    /// Reserves the next slots. There may be fewer than wanted: none is later than its latest.
    pub fn reserve(&mut self, wanted: Wanted, now_ms: u64) -> Vec<Reserved> {
        let (per_second, now_s) = (wanted.per_second.max(1), now_ms / SECOND_MS);
        if self.from_s > now_s.saturating_add(PLAUSIBLE_S) {
            *self = Self::default();
        }
        self.forget_before(now_s);
        self.change_rate(per_second, now_s);
        let mut reserved = Vec::new();
        let mut left = wanted.count;
        for second in self.from_s..=wanted.latest_ms / SECOND_MS {
            if left == 0 {
                break;
            }
            left -= self.take(second, left, per_second, &mut reserved);
        }
        for second in now_s + 1..=now_s + AHEAD_SECONDS {
            self.take(second, wanted.ahead, per_second, &mut reserved);
        }
        let full = self.taken.iter().take_while(|taken| **taken >= per_second).count();
        self.taken.drain(..full);
        self.from_s = self.from_s.saturating_add(full as u64);
        reserved
    }

    /// What is given out takes as much shorter or longer as the destination takes more or fewer requests.
    fn change_rate(&mut self, per_second: u32, now_s: u64) {
        let before = std::mem::replace(&mut self.per_second, per_second);
        if before == 0 || before == per_second {
            return;
        }
        let seconds = self.from_s.saturating_sub(now_s);
        let changed = seconds.saturating_mul(before.into()).div_ceil(per_second.into());
        self.from_s = now_s.saturating_add(changed);
        if per_second > before {
            // Those who wait keep the seconds that they were given.
            self.taken.clear();
        }
    }

    /// When the next free slot is, at the earliest.
    #[must_use]
    pub fn next_ms(&self) -> u64 {
        self.from_s.saturating_mul(SECOND_MS)
    }

    /// Takes so many slots of a second, as far as they are free; how many that were.
    fn take(&mut self, second: u64, wanted: u32, per_second: u32, into: &mut Vec<Reserved>) -> u32 {
        let Some(index) = second.checked_sub(self.from_s) else { return 0 };
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let taken = self.taken.get(index).copied().unwrap_or_default();
        let count = wanted.min(per_second.saturating_sub(taken));
        if count > 0 {
            if self.taken.len() <= index {
                self.taken.resize(index + 1, 0);
            }
            self.taken[index] += count;
            into.push(Reserved { at_ms: second.saturating_mul(SECOND_MS), count });
        }
        count
    }

    fn forget_before(&mut self, now_s: u64) {
        let passed = now_s.saturating_sub(self.from_s);
        let passed_here = self.taken.len().min(usize::try_from(passed).unwrap_or(usize::MAX));
        self.taken.drain(..passed_here);
        self.from_s = self.from_s.max(now_s);
    }
}

/// The slots of one destination that a process has reserved and not used yet.
#[derive(Debug, Clone, Default)]
pub struct OwnSlots {
    /// In the order of their seconds.
    free: Vec<Reserved>,
    /// How many were used in the second of the last one, and in the seconds before.
    used: Vec<Reserved>,
}

impl OwnSlots {
    /// Adds slots that were reserved.
    pub fn add(&mut self, reserved: Vec<Reserved>) {
        self.free.extend(reserved);
        self.free.sort_by_key(|slot| slot.at_ms);
    }

    /// How many are left.
    #[must_use]
    pub fn count(&mut self, now_ms: u64) -> u32 {
        self.free.retain(|slot| now_ms < slot.at_ms.saturating_add(2 * SECOND_MS));
        self.free.iter().map(|slot| slot.count).sum()
    }

    /// Uses the next one; when it is.
    pub fn take(&mut self, now_ms: u64) -> Option<u64> {
        // What is over is lost.
        if self.count(now_ms) == 0 {
            return None;
        }
        let first = self.free.first_mut()?;
        first.count -= 1;
        let at_ms = first.at_ms;
        if first.count == 0 {
            self.free.remove(0);
        }
        // Who waits for a later one comes back with it.
        if at_ms <= now_ms.saturating_add(SECOND_MS) {
            match self.used.last_mut() {
                Some(last) if last.at_ms == at_ms => last.count += 1,
                Some(_) | None => self.used.push(Reserved { at_ms, count: 1 }),
            }
        }
        Some(at_ms)
    }

    /// Puts one back that was too late for whoever took it.
    pub fn put_back(&mut self, at_ms: u64) {
        self.add(vec![Reserved { at_ms, count: 1 }]);
    }

    /// How many it used per second lately: so many it will need.
    #[must_use]
    pub fn per_second(&mut self, now_ms: u64) -> u32 {
        let from_ms = now_ms.saturating_sub(AHEAD_SECONDS * SECOND_MS);
        self.used.retain(|slot| slot.at_ms >= from_ms);
        let used: u32 = self.used.iter().map(|slot| slot.count).sum();
        used / u32::try_from(AHEAD_SECONDS).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(per_second: u32, count: u32, ahead: u32) -> Wanted {
        Wanted { per_second, count, latest_ms: u64::MAX, ahead }
    }

    fn reserved(at_s: u64, count: u32) -> Reserved {
        Reserved { at_ms: at_s * SECOND_MS, count }
    }

    #[test]
    fn slots_of_a_wrong_clock_are_given_out_again() {
        let day_s = 24 * 3_600;
        for (ahead_s, first) in [(13 * day_s, 100 + 13 * day_s), (15 * day_s, 100)] {
            let from_s = 100 + ahead_s;
            let mut slots = Slots { from_s, per_second: 20, ..Slots::default() };
            assert_eq!(slots.reserve(wanted(20, 1, 0), 100_500), [reserved(first, 1)]);
        }
    }

    #[test]
    fn a_backlog_gets_the_next_seconds_one_after_the_other() {
        let mut slots = Slots::default();
        let all = slots.reserve(wanted(20, 50, 0), 100_500);
        assert_eq!(all, [reserved(100, 20), reserved(101, 20), reserved(102, 10)]);
        assert_eq!(
            slots.reserve(wanted(20, 15, 0), 100_900),
            [reserved(102, 10), reserved(103, 5)]
        );
        assert_eq!(slots.next_ms(), 103_000);
        // What is over is not given out.
        assert_eq!(slots.reserve(wanted(20, 1, 0), 200_000), [reserved(200, 1)]);
    }

    #[test]
    fn a_backlog_of_any_length_is_a_short_document() {
        let mut slots = Slots::default();
        for _ in 0..10_000 {
            slots.reserve(wanted(20, 10, 0), 1_000_000);
        }
        assert_eq!(slots.next_ms(), 1_000_000 + 5_000 * SECOND_MS);
        assert!(slots.write().len() < 80, "{}", String::from_utf8_lossy(&slots.write()));
        assert_eq!(Slots::read(&slots.write()), Ok(slots));
    }

    #[test]
    fn what_is_reserved_ahead_leaves_the_rest_to_others_and_waits_for_nobody() {
        let mut slots = Slots::default();
        let ahead = slots.reserve(wanted(10, 1, 4), 0);
        assert_eq!(ahead[0], reserved(0, 1));
        assert_eq!(ahead[1..], (1..=10).map(|second| reserved(second, 4)).collect::<Vec<_>>()[..]);
        let others: u32 = slots.reserve(wanted(10, 69, 0), 0).iter().map(|slot| slot.count).sum();
        assert_eq!((others, slots.next_ms()), (69, 11_000));
        // While there is a backlog, nothing is free.
        assert_eq!(slots.reserve(wanted(10, 1, 4), 0), [reserved(11, 1)]);
    }

    #[test]
    fn another_rate_makes_the_backlog_longer_or_shorter() {
        let mut slots = Slots::default();
        slots.reserve(wanted(1, 3_600, 0), 0);
        assert_eq!(slots.next_ms(), 3_600_000);
        assert_eq!(slots.reserve(wanted(100, 1, 0), 0), [reserved(36, 1)]);
        assert_eq!(slots.reserve(wanted(10, 1, 0), 0), [reserved(360, 1)]);
    }

    #[test]
    fn nothing_is_reserved_that_would_come_too_late() {
        let mut slots = Slots::default();
        let early = Wanted { latest_ms: 2_999, ..wanted(10, 100, 0) };
        let count: u32 = slots.reserve(early, 0).iter().map(|slot| slot.count).sum();
        assert_eq!((count, slots.next_ms()), (30, 3_000));
        assert!(slots.reserve(early, 0).is_empty());
    }

    #[test]
    fn own_slots_are_used_in_order_and_lost_two_seconds_after_their_beginning() {
        let mut own = OwnSlots::default();
        own.add(vec![reserved(12, 1)]);
        own.add(vec![reserved(10, 2), reserved(11, 1)]);
        assert_eq!(own.take(10_000), Some(10_000));
        assert_eq!(own.take(11_999), Some(10_000), "a second late");
        own.add(vec![reserved(10, 1)]);
        assert_eq!(own.take(12_000), Some(11_000));
        assert_eq!(own.take(12_000), Some(12_000));
        assert_eq!(own.take(12_000), None);
    }

    #[test]
    fn what_was_used_in_ten_seconds_is_what_will_be_needed() {
        let mut own = OwnSlots::default();
        for second in 0..10 {
            own.add(vec![reserved(second, 5)]);
            (0..5).for_each(|_| _ = own.take(second * SECOND_MS));
        }
        assert_eq!(own.per_second(10_000), 5);
        assert_eq!(own.per_second(15_000), 2);
        assert_eq!(own.per_second(60_000), 0);
    }

    #[test]
    fn a_document_that_gives_out_all_time_is_that_of_a_wrong_clock() {
        let document =
            format!(r#"{{"v":1,"per_second":20,"from_s":{},"taken":[99,99]}}"#, u64::MAX);
        let mut slots = Slots::read(document.as_bytes()).expect("a document");
        let reserved_now =
            slots.reserve(Wanted { latest_ms: 200_000, ..wanted(20, 1, 0) }, 100_000);
        assert_eq!((reserved_now, slots.next_ms()), (vec![reserved(100, 1)], 100_000));
    }
}
