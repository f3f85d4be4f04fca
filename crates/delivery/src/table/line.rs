//! A line in which deliveries wait for their turn, as one number: the time at which the last place in it ends.
//!
//! Each place takes as long as the request that is made then. Whoever takes places gets those behind all others, and the
//! number grows by as much. So a line of any length costs nothing, and nobody has to know who else waits in it.

use super::recovery::{Recovery, Report};

/// Microseconds of a millisecond.
const MS_US: u64 = 1_000;

/// The lines of a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LineName {
    /// Of those that wait for a permit.
    Turns,
    /// Of those that wait for their part of a rate.
    Slots,
    /// Of those that a recovering destination may get.
    Recovery,
}

impl LineName {
    /// The name of its attribute.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turns => "turns_us",
            Self::Slots => "slots_us",
            Self::Recovery => "recovery_us",
        }
    }
}

/// What a process wants: places one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakePlaces {
    /// Number of places; 0 for a report alone.
    pub count: u32,
    /// How long each takes, in microseconds.
    pub each_us: u64,
    /// The caller's guess that the line is not empty; a wrong guess costs one request.
    pub others_wait: bool,
    /// The first begins at this time at the earliest: now, or a little before where unused places are not lost.
    pub earliest_ms: u64,
    /// The first begins before this time, or there is none.
    pub latest_ms: u64,
    /// A later end was written by a wrong clock and is ignored.
    pub plausible_ms: u64,
    /// The destination recovers from an outage.
    pub report: Option<Report>,
}

/// The answer to a process that wants places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    /// Its places.
    pub line: Line,
    /// The recovery as the item has it now, if there was a report. It is in the item if places were taken.
    pub recovery: Option<Recovery>,
}

/// The line of a destination after a request for places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// The places of the caller begin here, in microseconds; it ends behind them.
    Taken {
        /// When the first begins.
        first_us: u64,
    },
    /// Other processes changed the line or the recovery: ask again soon.
    Overtaken,
    /// Too many wait already.
    Full {
        /// Until when, in milliseconds.
        until_ms: u64,
    },
}

impl TakePlaces {
    /// The end of the line that is written, and what the caller gets, where it ends at `end_us` before.
    #[must_use]
    pub fn take(&self, end_us: Option<u64>) -> (Option<u64>, Line) {
        let first_us = self.begins_us(end_us);
        if first_us >= self.latest_ms.saturating_mul(MS_US) {
            return (None, Line::Full { until_ms: first_us / MS_US });
        }
        (Some(first_us.saturating_add(self.all_us())), Line::Taken { first_us })
    }

    /// The end of a line that is plausible, at most.
    #[must_use]
    pub fn plausible_us(&self) -> u64 {
        self.plausible_ms.saturating_mul(MS_US)
    }

    /// How long all places take together.
    #[must_use]
    pub fn all_us(&self) -> u64 {
        self.each_us.saturating_mul(self.count.into())
    }

    /// The times at which the places begin, from the first on.
    pub fn places_ms(&self, first_us: u64) -> impl Iterator<Item = u64> + use<> {
        let each_us = self.each_us;
        (0..u64::from(self.count))
            .map(move |place| first_us.saturating_add(each_us.saturating_mul(place)) / MS_US)
    }

    /// The earliest time of the first place.
    #[must_use]
    pub fn earliest_us(&self) -> u64 {
        self.earliest_ms.saturating_mul(MS_US)
    }

    /// True if the first place follows the line, which ends after the earliest time.
    #[must_use]
    pub fn follows(&self, end_us: Option<u64>) -> bool {
        end_us
            .is_some_and(|end_us| (self.earliest_us() + 1..=self.plausible_us()).contains(&end_us))
    }

    /// When the first place begins: at the end of the line, or at the earliest time.
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
            // That of a clock that is wrong.
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
