//! A line in which deliveries wait for their turn, stored as one number: the end of its last place.
//!
//! Each place lasts as long as the request that uses it. A process that takes places gets those
//! after all others, and moves the end by their duration. A line of any length therefore needs
//! constant space, and no process needs to know who else waits.

use super::recovery::{Recovery, Report};

/// Microseconds per millisecond.
const MS_US: u64 = 1_000;

/// The lines of a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LineName {
    /// Deliveries that wait for a permit (`maxConcurrency`).
    Turns,
    /// Deliveries that wait for a slot (`maxPerSecond`).
    Slots,
    /// Deliveries that wait for a recovering destination.
    Recovery,
}

impl LineName {
    /// Returns the name of the attribute in the item.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turns => "turns_us",
            Self::Slots => "slots_us",
            Self::Recovery => "recovery_us",
        }
    }
}

/// A request for consecutive places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakePlaces {
    /// Number of places; 0 to send only a report.
    pub count: u32,
    /// Duration of a place in microseconds.
    pub each_us: u64,
    /// True if the caller expects a non-empty line. A wrong guess costs one request.
    pub others_wait: bool,
    /// Earliest start of the first place: now, or a little before if unused places are not lost.
    pub earliest_ms: u64,
    /// Latest start of the first place, exclusive. There are no places after it.
    pub latest_ms: u64,
    /// Latest plausible end of the line. A later end was written by a wrong clock and is ignored.
    pub plausible_ms: u64,
    /// Report about a destination that recovers from an outage.
    pub report: Option<Report>,
}

/// The response to a request for places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    /// The places.
    pub line: Line,
    /// The current recovery in the item, if the request had a report. The report is stored only if
    /// places were taken.
    pub recovery: Option<Recovery>,
}

/// The line of a destination after a request for places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// The caller got the places from this time on, at the end of the line.
    Taken {
        /// Start of the first place, in microseconds.
        first_us: u64,
    },
    /// Other processes changed the line or the recovery. The caller may ask again soon.
    Overtaken,
    /// The line is too long.
    Full {
        /// End of the line in milliseconds.
        until_ms: u64,
    },
}

impl TakePlaces {
    /// Returns the new end of the line and the result for the caller, given the end `end_us`
    /// before.
    #[must_use]
    pub fn take(&self, end_us: Option<u64>) -> (Option<u64>, Line) {
        let first_us = self.begins_us(end_us);
        if first_us >= self.latest_ms.saturating_mul(MS_US) {
            return (None, Line::Full { until_ms: first_us / MS_US });
        }
        (Some(first_us.saturating_add(self.all_us())), Line::Taken { first_us })
    }

    /// Returns the latest plausible end of a line.
    #[must_use]
    pub fn plausible_us(&self) -> u64 {
        self.plausible_ms.saturating_mul(MS_US)
    }

    /// Returns the total duration of all places.
    #[must_use]
    pub fn all_us(&self) -> u64 {
        self.each_us.saturating_mul(self.count.into())
    }

    /// Returns the start of each place, given the start of the first.
    pub fn places_ms(&self, first_us: u64) -> impl Iterator<Item = u64> + use<> {
        let each_us = self.each_us;
        (0..u64::from(self.count))
            .map(move |place| first_us.saturating_add(each_us.saturating_mul(place)) / MS_US)
    }

    /// Returns the earliest start of the first place.
    #[must_use]
    pub fn earliest_us(&self) -> u64 {
        self.earliest_ms.saturating_mul(MS_US)
    }

    /// True if the line ends after the earliest start, so that the first place follows it.
    #[must_use]
    pub fn follows(&self, end_us: Option<u64>) -> bool {
        end_us
            .is_some_and(|end_us| (self.earliest_us() + 1..=self.plausible_us()).contains(&end_us))
    }

    /// Returns the start of the first place: the end of the line, or the earliest start.
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
