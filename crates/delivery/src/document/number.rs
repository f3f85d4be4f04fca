//! [`Number`]: exact decimal numbers for filters, without floating point.
//!
//! This module is separate because filters compare numbers exactly as publishers wrote them.
//! 9007199254740993 does not equal 9007199254740992, `5.0` equals 5, and `1e400` is a valid number.
//! A comparison needs no more memory than the text of the numbers, for any exponent. There is no
//! arithmetic.

use std::cmp::Ordering;
use std::fmt;

/// Maximum number of digits before the decimal point in numbers that are printed without an
/// exponent.
const PLAIN_DIGITS_MAX: usize = 20;

/// A decimal number, compared by value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Number {
    negative: bool,
    /// The significant digits, as in `0.digits`. They neither begin nor end with a zero; empty for
    /// zero.
    digits: String,
    /// The power of ten by which `0.digits` is multiplied; 0 for the number zero.
    exponent: i64,
}

impl Number {
    /// Parses a JSON number such as `-12.5e3`; returns `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
        if [whole, fraction]
            .iter()
            .any(|part| part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()))
        {
            return None;
        }
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0');
        let leading_zeros = i64::try_from(all.len() - digits.len()).ok()?;
        let digits = digits.trim_end_matches('0');
        let exponent = read_exponent(exponent)?;
        // Zero has one representation, so -0, 0.0 and 0e7 are equal.
        if digits.is_empty() {
            return Some(Self { negative: false, digits: String::new(), exponent: 0 });
        }
        let exponent =
            exponent.saturating_add(i64::try_from(whole.len()).ok()?).saturating_sub(leading_zeros);
        Some(Self { negative, digits: digits.to_owned(), exponent })
    }

    /// Compares absolute values. Neither number may be zero.
    fn magnitude(&self, other: &Self) -> Ordering {
        self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits))
    }

    fn sign(&self) -> i8 {
        match (self.digits.is_empty(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }
}

/// Prints the number so that [`Number::parse`] returns an equal number, even for extreme exponents.
/// Examples are 1200, -12.5, 0.1e-6 and 12e400.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { negative, digits, exponent } = self;
        f.write_str(if *negative { "-" } else { "" })?;
        let whole = usize::try_from(*exponent).ok().filter(|whole| *whole <= PLAIN_DIGITS_MAX);
        match whole {
            Some(0) if digits.is_empty() => f.write_str("0"),
            Some(0) => write!(f, "0.{digits}"),
            Some(places) => match digits.split_at_checked(places) {
                Some((whole, fraction)) if !fraction.is_empty() => write!(f, "{whole}.{fraction}"),
                Some(_) | None => write!(f, "{digits:0<places$}"),
            },
            None if *exponent < 0 => write!(f, "0.{digits}e{exponent}"),
            // Omits the decimal point: with one, the largest exponent could not be parsed again.
            None => {
                let places = i64::try_from(digits.len()).unwrap_or(i64::MAX);
                write!(f, "{digits}e{}", exponent.saturating_sub(places))
            }
        }
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        self.sign().cmp(&other.sign()).then_with(|| {
            let magnitude = self.magnitude(other);
            if self.negative { magnitude.reverse() } else { magnitude }
        })
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Parses a whole number with an optional sign. A number outside the range of `i64` is clamped to
/// that range.
fn read_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let largest = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    Some(text.parse().unwrap_or(largest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        Number::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn numbers_are_ordered_by_value_whatever_their_spelling() {
        let rising = [
            "-1e400",
            "-12345678901234567890124",
            "-12345678901234567890123",
            "-2",
            "-1.5",
            "-0.1",
            "0",
            "1e-400",
            "0.09",
            "0.1",
            "1",
            "3.14159",
            "9007199254740992",
            "9007199254740993",
            "1e99999999999999999999",
        ];
        for (i, a) in rising.iter().enumerate() {
            for (j, b) in rising.iter().enumerate() {
                assert_eq!(number(a).cmp(&number(b)), i.cmp(&j), "{a} {b}");
            }
        }
    }

    #[test]
    fn one_value_has_many_spellings() {
        for (a, b) in [
            ("5", "5.0"),
            ("0", "-0.0e7"),
            ("1200", "1.2E+3"),
            ("0.012", "12e-3"),
            ("0", "0e99999999999999999999"),
        ] {
            assert_eq!(number(a), number(b), "{a} {b}");
        }
    }

    #[test]
    fn a_written_number_is_read_back_to_an_equal_one() {
        for (text, written) in [
            ("-0.0", "0"),
            ("1.20E+3", "1200"),
            ("-12.50", "-12.5"),
            ("0.5", "0.5"),
            ("12345678901234567890.1", "12345678901234567890.1"),
            ("100000000000000000000", "1e20"),
            ("0.01", "0.1e-1"),
            ("12e400", "12e400"),
            ("1e99999999999999999999", "1e9223372036854775806"),
            ("0.001e-99999999999999999999", "0.1e-9223372036854775808"),
            ("1.5e-9223372036854775807", "0.15e-9223372036854775806"),
        ] {
            assert_eq!(number(text).to_string(), written, "{text}");
            assert_eq!(number(written), number(text), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_numbers() {
        for text in
            ["", "-", "+1", ".5", "5.", "1e", "1e+", "0x1", "NaN", "inf", "1 ", "\"1\"", "true"]
        {
            assert_eq!(Number::parse(text), None, "{text}");
        }
    }
}
