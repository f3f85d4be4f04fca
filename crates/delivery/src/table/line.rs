//! A queue of time slots for requests, stored as one number: the time until which all slots are
//! taken.
//!
//! A process that takes slots gets the first slots after that time, and advances the time by their
//! duration. For example, a destination with `maxPerSecond: 20` has slots of 50 ms. A queue of any
//! length therefore needs constant space, and no process needs a list of the other processes that
//! wait.

use super::recovery::{Recovery, Report};

/// Number of microseconds in a millisecond.
const MS_US: u64 = 1_000;

/// The queues of slots that a destination can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotQueue {
    /// The queue for permits (`maxConcurrency`).
    Turns,
    /// The queue for slots in the rate (`maxPerSecond`).
    Slots,
    /// The queue of a destination that is recovering from an outage.
    Recovery,
}

impl SlotQueue {
    /// Returns the name of the item's attribute that stores the time until which all slots are
    /// taken.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turns => "turns_us",
            Self::Slots => "slots_us",
            Self::Recovery => "recovery_us",
        }
    }
}

/// A request for consecutive slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakePlaces {
    /// Number of requested slots; 0 to send only the report.
    pub count: u32,
    /// Duration of a slot in microseconds.
    pub each_us: u64,
    /// True if the caller expects that other processes wait in the queue. A wrong guess costs one
    /// more request to the table.
    pub others_wait: bool,
    /// Earliest start of the first slot, in milliseconds since 1970. It is the current time, or
    /// slightly earlier so that slots just missed are still used.
    pub earliest_ms: u64,
    /// Time in milliseconds since 1970 before which the first slot must start. Otherwise no slots
    /// are granted.
    pub latest_ms: u64,
    /// Latest plausible time until which slots are taken, in milliseconds since 1970. A later time
    /// was written by a process with a wrong clock and is ignored.
    pub plausible_ms: u64,
    /// Report of the caller about a destination that is recovering from an outage.
    pub report: Option<Report>,
}

/// The response to a request for slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    /// The granted slots, or the reason why none were granted.
    pub line: Line,
    /// The recovery that the item contains now; `None` if the request had no report. The report is
    /// stored only if slots were granted.
    pub recovery: Option<Recovery>,
}

/// The outcome of a request for slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// The slots were granted. They follow the slots that were taken before.
    Taken {
        /// Start of the first slot, in microseconds since 1970.
        first_us: u64,
    },
    /// Other processes changed the queue or the recovery. The caller may repeat the request soon.
    Overtaken,
    /// The first free slot is too late, so no slots were granted.
    Full {
        /// The time until which all slots are taken, in milliseconds since 1970.
        until_ms: u64,
    },
}

impl TakePlaces {
    /// Returns the new time until which slots are taken, and the outcome for the caller. The new
    /// time is `None` if no slots are granted. `end_us` is the time until which slots were taken
    /// before.
    #[must_use]
    pub fn take(&self, end_us: Option<u64>) -> (Option<u64>, Line) {
        let first_us = self.begins_us(end_us);
        if first_us >= self.latest_ms.saturating_mul(MS_US) {
            return (None, Line::Full { until_ms: first_us / MS_US });
        }
        (Some(first_us.saturating_add(self.all_us())), Line::Taken { first_us })
    }

    /// Returns `plausible_ms` in microseconds: a stored time after it is ignored as wrong.
    #[must_use]
    pub fn plausible_us(&self) -> u64 {
        self.plausible_ms.saturating_mul(MS_US)
    }

    /// Returns the total duration of the requested slots, in microseconds.
    #[must_use]
    pub fn all_us(&self) -> u64 {
        self.each_us.saturating_mul(self.count.into())
    }

    /// Returns the start of each slot in milliseconds, given the start of the first slot in
    /// microseconds.
    pub fn places_ms(&self, first_us: u64) -> impl Iterator<Item = u64> + use<> {
        let each_us = self.each_us;
        (0..u64::from(self.count))
            .map(move |place| first_us.saturating_add(each_us.saturating_mul(place)) / MS_US)
    }

    /// Returns the earliest start of the first slot, in microseconds since 1970.
    #[must_use]
    pub fn earliest_us(&self) -> u64 {
        self.earliest_ms.saturating_mul(MS_US)
    }

    /// True if the first slot starts at `end_us`: the time is plausible and later than the earliest
    /// start.
    #[must_use]
    pub fn follows(&self, end_us: Option<u64>) -> bool {
        end_us
            .is_some_and(|end_us| (self.earliest_us() + 1..=self.plausible_us()).contains(&end_us))
    }

    /// Returns the start of the first slot in microseconds. It is `end_us` if that time is
    /// plausible and later than the earliest start. Otherwise, it is the earliest start.
    fn begins_us(&self, end_us: Option<u64>) -> u64 {
        end_us.filter(|_| self.follows(end_us)).unwrap_or(self.earliest_us())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> TakePlaces {
        TakePlaces {
            count: 3,
            each_us: 50_000,
            others_wait: false,
            earliest_ms: 100_000,
            latest_ms: 160_000,
            plausible_ms: 400_000,
            report: None,
        }
    }

    #[test]
    fn places_follow_the_line_or_begin_at_the_earliest_time() {
        for (end_us, first_us) in [
            (None, 100_000_000),
            (Some(99_999_999), 100_000_000),
            (Some(100_000_001), 100_000_001),
            (Some(159_999_999), 159_999_999),
            // A clock that was wrong wrote this time.
            (Some(400_000_001), 100_000_000),
        ] {
            let taken = (Some(first_us + 150_000), Line::Taken { first_us });
            assert_eq!(three().take(end_us), taken, "{end_us:?}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_takes_nobody() {
        for end_us in [160_000_000, 400_000_000] {
            let full = (None, Line::Full { until_ms: end_us / 1_000 });
            assert_eq!(three().take(Some(end_us)), full);
        }
    }

    #[test]
    fn each_place_has_its_time() {
        let places: Vec<u64> = three().places_ms(100_000_500).collect();
        assert_eq!(places, [100_000, 100_050, 100_100]);
    }
}
