//! Timestamps as text.
//!
//! Everywhere else a timestamp is milliseconds since 1970-01-01 UTC. Here it becomes RFC 3339 with
//! seven fractional digits, as Event Grid writes its times, or the hour folder of a dead letter.

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use jiff::tz::TimeZone;

/// RFC 3339 in UTC with seven fractional digits: `2026-11-20T07:03:00.1230000Z`.
#[must_use]
pub fn rfc3339(ms: u64) -> String {
    const SEVEN_DIGITS: DateTimePrinter = DateTimePrinter::new().precision(Some(7));
    SEVEN_DIGITS.timestamp_to_string(&timestamp(ms))
}

/// Reads RFC 3339, truncated to milliseconds; `None` for other text and for times before 1970.
#[must_use]
pub fn parse(text: &str) -> Option<u64> {
    let timestamp: Timestamp = text.parse().ok()?;
    u64::try_from(timestamp.as_millisecond()).ok()
}

/// The folder of an hour: `2026/11/20/7`, in UTC, without leading zeros.
#[must_use]
pub fn hour_folder(ms: u64) -> String {
    let at = TimeZone::UTC.to_datetime(timestamp(ms));
    format!("{}/{}/{}/{}", at.year(), at.month(), at.day(), at.hour())
}

/// The timestamp, or the last one that can be written.
fn timestamp(ms: u64) -> Timestamp {
    i64::try_from(ms)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
        .unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_has_seven_fractional_digits_and_an_hour_without_zeros() {
        assert_eq!(rfc3339(1_795_158_180_123), "2026-11-20T07:03:00.1230000Z");
        assert_eq!(hour_folder(1_795_158_180_123), "2026/11/20/7");
        assert_eq!(parse("2026-11-20T07:03:00.1230000Z"), Some(1_795_158_180_123));
        assert_eq!(parse("yesterday"), None);
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.0000000Z");
        assert_eq!(hour_folder(0), "1970/1/1/0");
    }

    #[test]
    fn no_timestamp_is_too_late_to_be_written() {
        assert_eq!(rfc3339(u64::MAX), "9999-12-30T22:00:00.9999999Z");
    }
}
