//! Parses durations as people type them: `90s`, `30m`, `2h`, `7d`, `1h30m`, or ISO 8601.
//!
//! This module is separate from [`super::duration`], which parses durations in documents: only ISO
//! 8601 is allowed there. In the short form, each number has a unit. Each unit occurs at most once,
//! in descending order.

use thiserror::Error;

use super::duration::{self, DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};

/// Units with their length in milliseconds, in descending order.
const UNITS: [(&str, u64); 6] = [
    ("w", 7 * DAY_MS),
    ("d", DAY_MS),
    ("h", HOUR_MS),
    ("m", MINUTE_MS),
    ("s", SECOND_MS),
    ("ms", 1),
];

/// Error returned if a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{0:?} is not a duration: expected a number with a unit, as in 90s, 30m, 2h, 7d or 1h30m, or \
     ISO 8601 as in PT2H"
)]
pub struct BriefDurationError(String);

/// Parses a duration and returns it in milliseconds.
///
/// # Errors
/// [`BriefDurationError`] if the text is not a duration.
pub fn parse_ms(text: &str) -> Result<u64, BriefDurationError> {
    let problem = || BriefDurationError(text.to_owned());
    if text.starts_with('P') {
        return duration::parse_ms(text).map_err(|_| problem());
    }
    sum_ms(text).ok_or_else(problem)
}

/// Returns the sum of the components in milliseconds; `None` if the text contains anything else.
fn sum_ms(text: &str) -> Option<u64> {
    let (mut rest, mut units, mut sum) = (text, UNITS.as_slice(), 0_u64);
    while !rest.is_empty() || units.len() == UNITS.len() {
        let (number, tail) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (name, tail) =
            tail.split_at(tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len()));
        let index = units.iter().position(|(unit, _)| *unit == name)?;
        let (_, unit_ms) = units.get(index)?;
        sum = sum.checked_add(number.parse::<u64>().ok()?.checked_mul(*unit_ms)?)?;
        units = units.get(index + 1..)?;
        rest = tail;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_numbers_with_units_or_iso_8601() {
        for (text, ms) in [
            ("90s", 90_000),
            ("30m", 30 * MINUTE_MS),
            ("2h", 2 * HOUR_MS),
            ("7d", 7 * DAY_MS),
            ("1w", 7 * DAY_MS),
            ("250ms", 250),
            ("0s", 0),
            ("1h30m", 90 * MINUTE_MS),
            ("1d12h1m1s1ms", 36 * HOUR_MS + MINUTE_MS + 1_001),
            ("PT2H", 2 * HOUR_MS),
            ("PT0.1S", 100),
        ] {
            assert_eq!(parse_ms(text), Ok(ms), "{text}");
        }
        for text in [
            "",
            "1",
            "h",
            "1x",
            "1h1h",
            "30m1h",
            "-1h",
            "1.5h",
            "1 h",
            "2H",
            "P1M",
            "PT",
            "1h30",
            "99999999999999999999s",
            "9999999999999999d",
            "é",
            "1é",
        ] {
            let problem = parse_ms(text).unwrap_err().to_string();
            assert!(problem.contains("90s, 30m, 2h, 7d") && problem.contains("PT2H"), "{text}");
        }
    }
}
