//! Parses and formats timestamps.
//!
//! All other modules use milliseconds since 1970-01-01 UTC. This module converts them to RFC 3339
//! with seven fractional digits, as Event Grid writes times, and to the hour folder of a dead
//! letter.

use std::borrow::Cow;

use jiff::civil::DateTime;
use jiff::fmt::temporal::{DateTimePrinter, Pieces};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// Formats a timestamp in RFC 3339, in UTC with seven fractional digits:
/// `2026-11-20T07:03:00.1230000Z`.
#[must_use]
pub fn rfc3339(ms: u64) -> String {
    const SEVEN_DIGITS: DateTimePrinter = DateTimePrinter::new().precision(Some(7));
    SEVEN_DIGITS.timestamp_to_string(&timestamp(ms))
}

/// Parses RFC 3339 and truncates to milliseconds. Returns `None` for other text and for times
/// before 1970.
#[must_use]
pub fn parse(text: &str) -> Option<u64> {
    let timestamp: Timestamp = text.parse().ok()?;
    u64::try_from(timestamp.as_millisecond()).ok()
}

/// Parses a date-time of RFC 3339 and rounds it up to milliseconds. Returns `None` for other text.
/// A time before 1970 is 0. A time that is too late to be formatted is `u64::MAX`.
#[must_use]
pub fn date_time(text: &str) -> Option<u64> {
    // RFC 3339 allows T and Z in lower case.
    let text = text.to_ascii_uppercase();
    let time = Some(text.as_str()).filter(|text| is_rfc3339(text)).and_then(AzureTime::parse)?;
    // The library parses a leap second as the preceding second, which would be too early.
    let leap = SignedDuration::from_secs(i64::from(text.get(17..19) == Some("60")));
    let nanoseconds = u128::try_from((time.since_epoch() + leap).as_nanos()).unwrap_or(0);
    let ms = u64::try_from(nanoseconds.div_ceil(NANOSECONDS_OF_A_MILLISECOND));
    Some(time.ms().and(ms.ok()).unwrap_or(u64::MAX))
}

const NANOSECONDS_OF_A_MILLISECOND: u128 = 1_000_000;

/// The latest time of .NET, which means "never".
const NEVER: &str = "9999-12-31T23:59:59.9999999Z";

/// Formats a time like [`rfc3339`], except that `u64::MAX` becomes the latest time of .NET, which
/// means "never".
#[must_use]
pub fn written(ms: u64) -> String {
    if ms == u64::MAX { NEVER.to_owned() } else { rfc3339(ms) }
}

/// Parses a time that [`written`] has formatted.
#[must_use]
pub fn read(text: &str) -> Option<u64> {
    if text == NEVER { Some(u64::MAX) } else { parse(text) }
}

/// A time as Azure writes it: RFC 3339 with an optional zone. A time without a zone is in UTC.
///
/// This type exists because [`parse`] does not accept the whole range of .NET. The latest time of
/// .NET, `9999-12-31T23:59:59.9999999Z`, means "never". The earliest is `0001-01-01T00:00:00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AzureTime {
    civil: DateTime,
    /// The offset in seconds east of UTC; `None` if the text has no offset.
    offset_s: Option<i32>,
}

impl AzureTime {
    /// Creates a time that is in UTC.
    #[must_use]
    pub fn utc(civil: DateTime) -> Self {
        Self { civil, offset_s: None }
    }

    /// Parses a time as Azure writes it; returns `None` for other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let pieces = Pieces::parse(text).ok()?;
        if pieces.time_zone_annotation().is_some() {
            return None;
        }
        let civil = DateTime::from_parts(pieces.date(), pieces.time()?);
        Some(Self { civil, offset_s: pieces.to_numeric_offset().map(Offset::seconds) })
    }

    /// Returns the time in milliseconds since 1970. A time before 1970 is 0. Returns `None` if the
    /// time is too late for this program.
    #[must_use]
    pub fn ms(self) -> Option<u64> {
        let since = self.since_epoch().as_millis();
        let latest = i128::from(Timestamp::MAX.as_millisecond());
        u64::try_from(since.max(0)).ok().filter(|_| since <= latest)
    }

    fn since_epoch(self) -> SignedDuration {
        const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
        let offset = SignedDuration::from_secs(self.offset_s.unwrap_or(0).into());
        self.civil.duration_since(EPOCH).saturating_sub(offset)
    }
}

/// Converts a time as Azure writes it to RFC 3339, with `Z` if it has no zone. Other RFC 3339 text
/// stays unchanged. Returns `None` for any other text.
#[must_use]
pub fn with_zone(text: &str) -> Option<Cow<'_, str>> {
    let AzureTime { civil, offset_s } = AzureTime::parse(text)?;
    if is_rfc3339(text) {
        return Some(text.into());
    }
    let offset = match offset_s.unwrap_or(0) {
        0 => "Z".to_owned(),
        seconds => {
            let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
            format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        }
    };
    let as_written = format!("{text}{offset}");
    let made = match offset_s {
        None if is_rfc3339(&as_written) => as_written,
        None | Some(_) => format!("{civil}{offset}"),
    };
    // This excludes a year before 0, and an offset with seconds.
    let is_whole = offset_s.is_none_or(|seconds| seconds % 60 == 0);
    Some(made).filter(|made| is_whole && is_rfc3339(made)).map(Cow::Owned)
}

/// True if the text has the form of an RFC 3339 time, with T and Z in upper case.
fn is_rfc3339(text: &str) -> bool {
    const DATE_AND_TIME: &[u8] = b"0000-00-00T00:00:00";
    let is_like = |bytes: &[u8], form: &[u8]| {
        let same = |(byte, form): (&u8, &u8)| match form {
            b'0' => byte.is_ascii_digit(),
            form => byte == form,
        };
        bytes.len() == form.len() && bytes.iter().zip(form).all(same)
    };
    let Some((begin, rest)) = text.as_bytes().split_at_checked(DATE_AND_TIME.len()) else {
        return false;
    };
    let digits = rest.strip_prefix(b".").unwrap_or_default();
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let zone = if digits == 0 { rest } else { &rest[1 + digits..] };
    let is_offset = (is_like(zone, b"+00:00") || is_like(zone, b"-00:00"))
        && zone.get(1..3) <= Some(b"23")
        && zone.get(4..) <= Some(b"59");
    is_like(begin, DATE_AND_TIME) && (zone == b"Z" || is_offset)
}

/// Returns the folder for an hour in UTC, without leading zeros: `2026/11/20/7`.
#[must_use]
pub fn hour_folder(ms: u64) -> String {
    let at = TimeZone::UTC.to_datetime(timestamp(ms));
    format!("{}/{}/{}/{}", at.year(), at.month(), at.day(), at.hour())
}

/// Returns the timestamp for these milliseconds, or the latest one that can be formatted.
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
    fn a_time_of_azure_is_made_rfc_3339_or_is_none() {
        for (text, made) in [
            ("2021-05-14T23:50:00.3240+02:00", Some("2021-05-14T23:50:00.3240+02:00")),
            ("2021-05-14T23Z", Some("2021-05-14T23:00:00Z")),
            ("20210514T235000Z", Some("2021-05-14T23:50:00Z")),
            ("2021-05-14 23:50:00Z", Some("2021-05-14T23:50:00Z")),
            ("2021-05-14T23:50:00,5Z", Some("2021-05-14T23:50:00.5Z")),
            ("2021-05-14T23:50:00+02", Some("2021-05-14T23:50:00+02:00")),
            ("2021-05-14T23:50:00-0130", Some("2021-05-14T23:50:00-01:30")),
            ("2021-05-14T23:50:00+02:00:30", None),
            ("2021-05-14T23:50:00+24:00", None),
            ("-000001-05-14T23:50:00Z", None),
        ] {
            assert_eq!(with_zone(text).as_deref(), made, "{text}");
        }
    }

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
    fn a_date_time_of_rfc_3339_is_rounded_up_to_milliseconds() {
        for (text, ms) in [
            ("2026-11-20T07:03:00.123Z", Some(1_795_158_180_123)),
            ("2026-11-20T07:03:00.1230001Z", Some(1_795_158_180_124)),
            ("2026-11-20t08:03:00.123+01:00", Some(1_795_158_180_123)),
            ("2016-12-31T23:59:60Z", Some(1_483_228_800_000)),
            ("1969-12-31T23:59:59Z", Some(0)),
            ("0001-01-01T00:00:00z", Some(0)),
            ("9999-12-31T23:59:59Z", Some(u64::MAX)),
            ("2026-11-21T07:02:00.123+23:59", Some(1_795_158_180_123)),
            ("2026-11-20T07:03:00+24:00", None),
            ("2026-11-20T07:03:00-24:00", None),
            ("2026-11-20T07:03:00+01:60", None),
            ("2026-11-20T07:03Z", None),
            ("2026-11-20 07:03:00Z", None),
            ("2026-11-20T07:03:00", None),
            ("2026-13-20T07:03:00Z", None),
            ("2026-11-20", None),
            ("1795158180", None),
            ("", None),
        ] {
            assert_eq!(date_time(text), ms, "{text}");
        }
    }

    #[test]
    fn a_time_of_azure_without_a_zone_is_in_utc() {
        for (text, ms, written) in [
            ("2021-05-14T23:50:00.324", Some(1_621_036_200_324), "2021-05-14T23:50:00.324Z"),
            (
                "2021-05-14T23:50:00.3240000",
                Some(1_621_036_200_324),
                "2021-05-14T23:50:00.3240000Z",
            ),
            ("2021-05-14T23:50:00", Some(1_621_036_200_000), "2021-05-14T23:50:00Z"),
            ("2021-05-14 23:50", Some(1_621_036_200_000), "2021-05-14T23:50:00Z"),
            ("2021-05-14T23:50:00Z", Some(1_621_036_200_000), "2021-05-14T23:50:00Z"),
            ("2021-05-15T01:50:00+02:00", Some(1_621_036_200_000), "2021-05-15T01:50:00+02:00"),
            ("2016-12-31T23:59:60Z", Some(1_483_228_799_000), "2016-12-31T23:59:60Z"),
            ("2016-12-31T23:59:60", Some(1_483_228_799_000), "2016-12-31T23:59:60Z"),
            ("0001-01-01T00:00:00", Some(0), "0001-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59.9999999Z", None, "9999-12-31T23:59:59.9999999Z"),
            ("9999-12-31T23:59:59.9999999", None, "9999-12-31T23:59:59.9999999Z"),
            ("9999-12-31T23:59:60-12:00", None, "9999-12-31T23:59:60-12:00"),
            ("9999-12-30T21:00:00Z", Some(253_402_203_600_000), "9999-12-30T21:00:00Z"),
        ] {
            assert_eq!(AzureTime::parse(text).map(AzureTime::ms), Some(ms), "{text}");
            assert_eq!(with_zone(text).as_deref(), Some(written), "{text}");
        }
        for text in ["", "tomorrow", "2021-05-14", "10000-01-01T00:00:00Z", "2021-05-14T24:00:00Z"]
        {
            assert_eq!(AzureTime::parse(text), None, "{text}");
            assert_eq!(with_zone(text), None, "{text}");
        }
    }

    #[test]
    fn no_timestamp_is_too_late_to_be_written() {
        assert_eq!(rfc3339(u64::MAX), "9999-12-30T22:00:00.9999999Z");
    }
}
