//! How fast a job sends.

use std::fmt;
use std::str::FromStr;

use delivery::time::duration::{MINUTE_MS, SECOND_MS};
use serde::{Deserialize, Serialize};

/// How many dead letters may be sent in which time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rate {
    count: u64,
    period_ms: u64,
}

impl Rate {
    /// How long after the start a dead letter may be sent, given how many are sent before it.
    pub(crate) fn wait_ms(self, sent_before: u64) -> u64 {
        sent_before.saturating_mul(self.period_ms) / self.count
    }

    /// How many may be sent together: those of one second, at most so many.
    pub(crate) fn burst(self, at_most: usize) -> usize {
        let per_second = self.count.saturating_mul(SECOND_MS) / self.period_ms;
        // At least one, for rates below one a second.
        usize::try_from(per_second).unwrap_or(at_most).clamp(1, at_most)
    }
}

/// As on the command line and in a ledger.
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
