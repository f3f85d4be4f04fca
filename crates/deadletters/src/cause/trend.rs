//! The trend of a cause: more or less frequent than before. Pure.
//!
//! Separate because every list of causes uses the same rule.

use delivery::time::duration::{HOUR_MS, MINUTE_MS};
use serde::Serialize;

/// Number of windows into which a time range is divided. [`Trend`] describes the limits of a
/// window.
const WINDOWS_PER_RANGE: u64 = 10;

/// The number of dead letters in the last window, compared with the window before. A window is a
/// tenth of the time range, but at least a minute and at most an hour. Example: with 40 dead
/// letters in the last hour and 30 in the hour before, the trend is rising.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Trend {
    /// More than 5/4 of the number in the window before.
    Rising,
    /// Between 3/4 and 5/4 of the number in the window before.
    Steady,
    /// Fewer than 3/4 of the number in the window before.
    Falling,
    /// No dead letters in either window.
    Over,
}

impl Trend {
    /// Returns the name of the trend, such as `rising`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rising => "rising",
            Self::Steady => "steady",
            Self::Falling => "falling",
            Self::Over => "over",
        }
    }

    /// Returns the trend of dead letters with these times. The range begins with the first dead
    /// letter of any cause.
    pub(super) fn new(times_ms: &[u64], range_from_ms: u64, end_ms: u64) -> Self {
        let tenth = end_ms.saturating_sub(range_from_ms) / WINDOWS_PER_RANGE;
        let window_ms = tenth.clamp(MINUTE_MS, HOUR_MS);
        let recent_from = end_ms.saturating_sub(window_ms);
        let before_from = recent_from.saturating_sub(window_ms);
        // Clocks differ, so a letter after the end counts as recent.
        let recent = times_ms.iter().filter(|at_ms| **at_ms >= recent_from).count();
        let before =
            times_ms.iter().filter(|at_ms| (before_from..recent_from).contains(at_ms)).count();
        match (recent, before) {
            (0, 0) => Self::Over,
            (recent, before) if recent * 4 > before * 5 => Self::Rising,
            (recent, before) if recent * 4 < before * 3 => Self::Falling,
            _ => Self::Steady,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_window_is_compared_with_the_one_before() {
        let trend = |times: &[u64]| Trend::new(times, 0, 20 * HOUR_MS);
        let (recent, before) = (19 * HOUR_MS + 1, 18 * HOUR_MS + 1);
        for (times, expected) in [
            (vec![recent], Trend::Rising),
            (vec![21 * HOUR_MS], Trend::Rising),
            (vec![recent, before], Trend::Steady),
            (vec![recent; 5], Trend::Rising),
            ([vec![recent; 5], vec![before; 4]].concat(), Trend::Steady),
            ([vec![recent; 6], vec![before; 4]].concat(), Trend::Rising),
            ([vec![recent; 2], vec![before; 3]].concat(), Trend::Falling),
            (vec![before], Trend::Falling),
            (vec![17 * HOUR_MS], Trend::Over),
            (vec![], Trend::Over),
        ] {
            assert_eq!(trend(&times), expected, "{times:?}");
        }
        // A range of 100 minutes has windows of 10 minutes.
        let short = |minute: u64| Trend::new(&[minute * MINUTE_MS], 0, 100 * MINUTE_MS);
        let trends = [95, 85, 75].map(short);
        assert_eq!(trends, [Trend::Rising, Trend::Falling, Trend::Over]);
    }
}
