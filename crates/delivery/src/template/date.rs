//! Formats times with the conversions of `strftime`.

use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::error::Fault;
use super::value::{Number, Value};

/// Maximum length of a `strftime` format. Each conversion results in at most about 20 characters.
const FORMAT_MAX_BYTES: usize = 128;

/// Checks a `strftime` format by formatting a time.
///
/// # Errors
///
/// Fails if the format is too long or has an unknown conversion.
pub(super) fn check(format: &str) -> Result<(), Fault> {
    if format.len() > FORMAT_MAX_BYTES {
        return Err(Fault::new(format!("the date format has more than {FORMAT_MAX_BYTES} bytes")));
    }
    let checked = written(format, Timestamp::UNIX_EPOCH);
    checked
        .map(|_| ())
        .ok_or_else(|| Fault::new("the date format is not a strftime format, such as %Y-%m-%d"))
}

/// Formats a time in UTC. The value is an RFC 3339 time, or a number of seconds since 1970.
///
/// # Errors
///
/// Fails if the value is not a time in one of these forms, or if the time cannot be formatted.
pub(super) fn format(format: &str, value: &Value<'_>) -> Result<String, Fault> {
    let time = match (value.as_text(), value.as_number()) {
        (Some(text), _) => text.parse().ok(),
        (None, Some(Number::Integer(seconds))) => {
            i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok())
        }
        (None, Some(Number::Float(seconds))) => SignedDuration::try_from_secs_f64(seconds)
            .ok()
            .and_then(|since| Timestamp::from_duration(since).ok()),
        (None, None) => None,
    };
    time.and_then(|time| written(format, time)).ok_or_else(|| {
        Fault::new(
            "the value is not a time: expected RFC 3339 such as 2026-11-20T07:03:00Z, or seconds \
             since 1970",
        )
    })
}

fn written(format: &str, time: Timestamp) -> Option<String> {
    strtime::format(format, &time.to_zoned(TimeZone::UTC)).ok()
}
