//! The rate at which a replay sends, such as `50/s`.
//!
//! Separate because the command line, the console and ledgers use the same text format.
//! [`Rate::for_destinations`] returns a rate that respects the limits of the destinations.

use std::fmt;
use std::str::FromStr;

use delivery::time::duration::{MINUTE_MS, SECOND_MS};
use serde::{Deserialize, Serialize};

/// A number of dead letters per period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rate {
    count: u64,
    period_ms: u64,
}

/// Rate for a destination without a limit of its own. Low, because the replay competes with the
/// destination's current events.
const DEFAULT_PER_SECOND: u64 = 50;

impl Default for Rate {
    fn default() -> Self {
        Self::per_second(DEFAULT_PER_SECOND)
    }
}

impl Rate {
    fn per_second(count: u64) -> Self {
        Self { count, period_ms: SECOND_MS }
    }

    /// Returns a rate at which no destination exceeds its limit per second, if its dead letters are
    /// spread evenly. `destinations` has a number of dead letters and an optional limit for each.
    #[must_use]
    pub fn for_destinations(destinations: impl IntoIterator<Item = (u64, Option<u32>)>) -> Self {
        let destinations: Vec<(u64, Option<u32>)> =
            destinations.into_iter().filter(|(count, _)| *count > 0).collect();
        let all: u64 = destinations.iter().map(|(count, _)| count).sum();
        let rates = destinations.iter().map(|(count, limit)| {
            limit.map_or(DEFAULT_PER_SECOND, u64::from).saturating_mul(all) / count
        });
        rates.min().map_or_else(Self::default, Self::per_second)
    }

    /// Returns the time that sending this many dead letters takes, in milliseconds.
    #[must_use]
    pub fn takes_ms(self, letters: u64) -> u64 {
        self.wait_ms(letters)
    }

    /// Returns the minimum time from the start of sending until the next dead letter, in
    /// milliseconds. `sent_before` is the number of dead letters already sent.
    pub(crate) fn wait_ms(self, sent_before: u64) -> u64 {
        sent_before.saturating_mul(self.period_ms) / self.count
    }

    /// Returns the number of dead letters that may be sent together: the number for one second,
    /// from 1 to `at_most`.
    pub(crate) fn burst(self, at_most: usize) -> usize {
        let per_second = self.count.saturating_mul(SECOND_MS) / self.period_ms;
        // At least one, for rates below one a second.
        usize::try_from(per_second).unwrap_or(at_most).clamp(1, at_most)
    }
}

/// Formats the rate as in the command line and in ledgers, such as `50/s`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = if self.period_ms == MINUTE_MS { "m" } else { "s" };
        write!(f, "{}/{period}", self.count)
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> Self {
        rate.to_string()
    }
}

impl TryFrom<String> for Rate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (count, period) = text.split_once('/').unwrap_or((text, "s"));
        let period_ms = match period {
            "s" => Some(SECOND_MS),
            "m" => Some(MINUTE_MS),
            _ => None,
        };
        let count = count.parse().ok().filter(|count: &u64| *count > 0);
        let rate = count.zip(period_ms).map(|(count, period_ms)| Self { count, period_ms });
        rate.ok_or_else(|| format!("\"{text}\" is not a valid rate: expected 50/s or 600/m"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_for_destinations_keeps_the_limit_of_each() {
        for (destinations, rate) in [
            (vec![], "50/s"),
            (vec![(10, None)], "50/s"),
            (vec![(10, Some(3))], "3/s"),
            (vec![(10, Some(500))], "500/s"),
            // Half of the dead letters go to each.
            (vec![(10, Some(3)), (10, None)], "6/s"),
            (vec![(1, Some(1)), (9_999, None)], "50/s"),
            (vec![(9_999, Some(1)), (1, None)], "1/s"),
        ] {
            assert_eq!(
                Rate::for_destinations(destinations.clone()).to_string(),
                rate,
                "{destinations:?}"
            );
        }
    }

    #[test]
    fn a_rate_says_when_a_dead_letter_may_be_sent() {
        let rate: Rate = "50/s".parse().unwrap();
        assert_eq!((rate.wait_ms(0), rate.wait_ms(10), rate.wait_ms(100)), (0, 200, 2_000));
        assert_eq!("600/m".parse::<Rate>().unwrap().wait_ms(10), 1_000);
        for (text, burst) in [("50/s", 10), ("4/s", 4), ("600/m", 10), ("30/m", 1)] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!((rate.burst(10), rate.to_string()), (burst, text.to_owned()), "{text}");
        }
        for text in ["", "0", "0/s", "5/h", "-1/s", "a/s"] {
            assert!(text.parse::<Rate>().unwrap_err().contains("50/s"), "{text}");
        }
    }
}
