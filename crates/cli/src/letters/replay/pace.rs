//! How fast a job goes on.

use std::str::FromStr;

use delivery::time::duration::{MINUTE_MS, SECOND_MS};

use super::super::ledger::CHUNK;

/// How many letters may be sent in which time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    letters: u64,
    period_ms: u64,
}

impl Rate {
    /// How long after the beginning the letter of this place may leave.
    pub(super) fn wait_ms(self, letters_before: u64) -> u64 {
        letters_before.saturating_mul(self.period_ms) / self.letters
    }

    /// How many letters may leave together: those of a second, of a chunk at most.
    pub(super) fn burst(self) -> usize {
        let of_a_second = self.letters.saturating_mul(SECOND_MS) / self.period_ms;
        usize::try_from(of_a_second).unwrap_or(CHUNK).clamp(1, CHUNK)
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (letters, period) = text.split_once('/').unwrap_or((text, "s"));
        let period_ms = match period {
            "s" => Some(SECOND_MS),
            "m" => Some(MINUTE_MS),
            _ => None,
        };
        let letters = letters.parse().ok().filter(|letters: &u64| *letters > 0);
        let rate = letters.zip(period_ms).map(|(letters, period_ms)| Self { letters, period_ms });
        rate.ok_or_else(|| format!("\"{text}\" is no rate: 50/s, or 600/m, is expected"))
    }
}

/// How a job goes on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    pub(crate) rate: Option<Rate>,
    /// Letters about which nobody knows whether they were sent are not sent again.
    pub(crate) skip_uncertain: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_says_when_a_letter_may_leave() {
        let rate: Rate = "50/s".parse().unwrap();
        assert_eq!((rate.wait_ms(0), rate.wait_ms(10), rate.wait_ms(100)), (0, 200, 2_000));
        assert_eq!("600/m".parse::<Rate>().unwrap().wait_ms(10), 1_000);
        for (text, burst) in [("50/s", 10), ("4/s", 4), ("600/m", 10), ("30/m", 1)] {
            assert_eq!(text.parse::<Rate>().unwrap().burst(), burst, "{text}");
        }
        for text in ["", "0", "0/s", "5/h", "-1/s", "a/s"] {
            assert!(text.parse::<Rate>().unwrap_err().contains("50/s"), "{text}");
        }
    }
}
