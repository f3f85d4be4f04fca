//! Parses and writes ISO 8601 durations exactly: `PnWnDTnHnMnS`, with a fraction in any component.
//!
//! This module is separate because no library supports what the specifications allow: a fraction in
//! any component, with a point or a comma, in full precision. A week is 7 × 24 h, and a day is 24
//! h. Years and months are refused because they have no fixed length. Negative values, empty input
//! and trailing text are refused too. Each error has the text and the position.

use thiserror::Error;

/// Number of milliseconds in a second.
pub const SECOND_MS: u64 = 1_000;
/// Number of milliseconds in a minute.
pub const MINUTE_MS: u64 = 60 * SECOND_MS;
/// Number of milliseconds in an hour.
pub const HOUR_MS: u64 = 60 * MINUTE_MS;
/// Number of milliseconds in a day, which always has 24 hours.
pub const DAY_MS: u64 = 24 * HOUR_MS;

/// Maximum number of digits of a fraction that are read. Even in a fraction of a week, the ignored
/// digits amount to less than a picosecond.
const FRACTION_DIGITS_MAX: usize = 18;

/// Error returned if a text is not an ISO 8601 duration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "\"{text}\" is not an ISO 8601 duration: at character {at}, {problem}; expected a duration \
     such as PT30S, PT1M30S or P1DT12H"
)]
pub struct DurationError {
    /// The text that is not a duration.
    pub text: String,
    /// Position of the problem in characters, counted from 1.
    pub at: usize,
    /// The problem at this position.
    pub problem: &'static str,
}

/// Parses an ISO 8601 duration and returns it in milliseconds. Parts of a millisecond are rounded
/// up, so that no wait is too short.
///
/// # Errors
/// [`DurationError`] with the position. Only weeks, days, hours, minutes and seconds are allowed,
/// in that order.
pub fn parse_ms(text: &str) -> Result<u64, DurationError> {
    let fail =
        |(at, problem): Problem| DurationError { text: text.to_owned(), at: at + 1, problem };
    let Some(rest) = text.strip_prefix('P') else {
        return Err(fail((0, "a duration must begin with P")));
    };
    let (date, time) = rest.split_once('T').map_or((rest, None), |(date, time)| (date, Some(time)));
    if rest.is_empty() {
        return Err(fail((1, "the duration has no number")));
    }
    let time_at = 1 + date.len() + 1;
    if time == Some("") {
        return Err(fail((time_at - 1, "T must be followed by hours, minutes or seconds")));
    }
    let date_ns = sum_ns(date, 1, &DATE_UNITS).map_err(fail)?;
    let time_ns = sum_ns(time.unwrap_or(""), time_at, &TIME_UNITS).map_err(fail)?;
    Ok(u64::try_from(date_ns.saturating_add(time_ns).div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

const DATE_UNITS: [(char, u64); 2] = [('W', 7 * DAY_MS), ('D', DAY_MS)];
const TIME_UNITS: [(char, u64); 3] = [('H', HOUR_MS), ('M', MINUTE_MS), ('S', SECOND_MS)];

/// A position in the text, counted from 0, and the problem at this position.
type Problem = (usize, &'static str);

/// Returns the sum of the components in one half of the text, before or after `T`, in nanoseconds.
/// The half begins at position `at`. Each unit may occur once, in order.
fn sum_ns(mut half: &str, mut at: usize, mut units: &[(char, u64)]) -> Result<u128, Problem> {
    let mut sum: u128 = 0;
    while !half.is_empty() {
        let number_end =
            half.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(half.len());
        let (number, tail) = half.split_at(number_end);
        let unit = tail.chars().next().ok_or((at + number_end, "a unit is missing"))?;
        let index = units.iter().position(|(letter, _)| *letter == unit);
        let index = index.ok_or((at + number_end, unit_problem(unit)))?;
        sum = sum
            .saturating_add(component_ns(number, units[index].1).map_err(|problem| (at, problem))?);
        units = &units[index + 1..];
        at += number_end + 1;
        half = tail.strip_prefix(unit).unwrap_or_default();
    }
    Ok(sum)
}

fn unit_problem(unit: char) -> &'static str {
    match unit {
        'Y' => "years have no fixed length; use days",
        'M' => "months have no fixed length; write minutes after T, once, before seconds",
        '-' | '+' => "a sign is not allowed",
        _ => {
            "expected one of the units W and D, or after T of H, M and S, each once and in this \
             order"
        }
    }
}

/// Parses the number of one component, such as the `1,5` of 1.5 hours, and returns its length in
/// nanoseconds.
fn component_ns(number: &str, unit_ms: u64) -> Result<u128, &'static str> {
    let (whole, fraction) = match number.split_once(['.', ',']) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (number, None),
    };
    if whole.is_empty() || fraction.is_some_and(str::is_empty) {
        return Err("expected a number with digits on both sides of its decimal point");
    }
    if fraction.is_some_and(|digits| digits.contains(['.', ','])) {
        return Err("a number has only one decimal point");
    }
    // The sum is in nanoseconds, because rounding each component to milliseconds would accumulate
    // errors.
    let unit_ns = u128::from(unit_ms) * 1_000_000;
    // The number has only digits, so overflow is the only possible error.
    let whole_ns = whole.parse::<u64>().map_or(u128::MAX, |amount| u128::from(amount) * unit_ns);
    let digits = fraction.map_or("", |digits| digits.get(..FRACTION_DIGITS_MAX).unwrap_or(digits));
    let numerator = digits.bytes().fold(0u128, |sum, digit| sum * 10 + u128::from(digit - b'0'));
    let denominator =
        10u128.pow(u32::try_from(digits.len()).expect("at most FRACTION_DIGITS_MAX digits"));
    Ok(whole_ns.saturating_add((numerator * unit_ns).div_ceil(denominator)))
}

/// Formats milliseconds as the shortest ISO 8601 duration that [`parse_ms`] parses to the same
/// value.
#[must_use]
pub fn format_ms(mut rest_ms: u64) -> String {
    let mut take = |unit_ms: u64| {
        let amount = rest_ms / unit_ms;
        rest_ms %= unit_ms;
        amount
    };
    let (days, hours, minutes, seconds) =
        (take(DAY_MS), take(HOUR_MS), take(MINUTE_MS), take(SECOND_MS));
    let mut text = String::from("P");
    if days > 0 {
        text.push_str(&format!("{days}D"));
    }
    let mut time = String::new();
    if hours > 0 {
        time.push_str(&format!("{hours}H"));
    }
    if minutes > 0 {
        time.push_str(&format!("{minutes}M"));
    }
    if rest_ms > 0 {
        time.push_str(format!("{seconds}.{rest_ms:03}").trim_end_matches('0'));
        time.push('S');
    } else if seconds > 0 || (days == 0 && time.is_empty()) {
        time.push_str(&format!("{seconds}S"));
    }
    if !time.is_empty() {
        text.push('T');
        text.push_str(&time);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_the_documents_are_read_exactly() {
        for (text, ms) in [
            ("PT1S", 1_000),
            ("PT0.2S", 200),
            ("PT0,25S", 250),
            ("PT2.5S", 2_500),
            ("PT1M", 60_000),
            ("PT1M30S", 90_000),
            ("PT0.5H", 1_800_000),
            ("P1D", DAY_MS),
            ("P7D", 7 * DAY_MS),
            ("P1W", 7 * DAY_MS),
            ("P1W1DT1H1M1.001S", 8 * DAY_MS + HOUR_MS + MINUTE_MS + 1_001),
            ("P0.5D", 12 * HOUR_MS),
            ("PT0S", 0),
            ("PT0.0001S", 1),
            ("PT99999999999999999999S", u64::MAX),
        ] {
            assert_eq!(parse_ms(text), Ok(ms), "{text}");
        }
    }

    #[test]
    fn an_invalid_duration_is_refused_with_the_position() {
        for (text, at) in [
            ("", 1),
            ("P", 2),
            ("PT", 2),
            ("1S", 1),
            ("PT1", 4),
            ("P1S", 3),
            ("P1Y", 3),
            ("P1M", 3),
            ("-PT1S", 1),
            ("PT-1S", 3),
            ("PT1S1M", 6),
            ("PT1H1H", 6),
            ("PT1S ", 5),
            ("PT.5S", 3),
            ("PT1.S", 3),
            ("PT1.2.3S", 3),
            ("PT1ST1S", 5),
            ("pt1s", 1),
            ("PTS", 3),
            ("P1DT", 4),
            ("PT1€", 4),
        ] {
            let error = parse_ms(text).expect_err(text);
            assert_eq!(error.at, at, "{error}");
            assert_eq!(error.text, text);
        }
    }

    #[test]
    fn a_written_duration_is_read_back() {
        for ms in
            [0, 1, 250, 999, 1_000, 61_001, HOUR_MS, DAY_MS, DAY_MS + 1, 14 * DAY_MS + 3_601_050]
        {
            assert_eq!(parse_ms(&format_ms(ms)), Ok(ms), "{}", format_ms(ms));
        }
        assert_eq!(format_ms(90_000), "PT1M30S");
        assert_eq!(format_ms(2 * DAY_MS), "P2D");
    }
}
