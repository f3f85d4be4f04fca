//! The rate of requests that a destination allows.
//!
//! This module is separate because a handshake grants it, a stored consent contains it, and the
//! pace of requests depends on it.

use std::fmt;
use std::num::NonZeroU32;

/// The rate of requests that a destination allows (CloudEvents "HTTP 1.1 Web Hooks", 4.2.2,
/// `WebHook-Allowed-Rate`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// The rate is not limited, written as `*`.
    Unlimited,
    /// The destination allows this many requests per minute.
    PerMinute(NonZeroU32),
}

impl Rate {
    /// Parses `*` or a positive number. A number above `u32::MAX` becomes `u32::MAX`.
    ///
    /// # Errors
    /// A description of the problem, if the text is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "*" {
            return Ok(Self::Unlimited);
        }
        // The digits are checked separately, because `parse` accepts a plus sign.
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = if digits { text.parse().unwrap_or(u32::MAX) } else { 0 };
        let invalid =
            || format!("the rate {text:?} must be * or a positive number of requests per minute");
        NonZeroU32::new(number).map(Self::PerMinute).ok_or_else(invalid)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("*"),
            Self::PerMinute(requests) => requests.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_an_asterisk_or_a_positive_number() {
        let number = |number| NonZeroU32::new(number).map(Rate::PerMinute).ok_or_else(String::new);
        assert_eq!(Rate::parse(" * "), Ok(Rate::Unlimited));
        assert_eq!(Rate::parse("120"), number(120));
        assert_eq!(Rate::parse("99999999999999999999"), number(u32::MAX));
        for invalid in ["", "0", "-1", "1.5", "many", "+7"] {
            assert!(Rate::parse(invalid).is_err(), "{invalid}");
        }
    }
}
