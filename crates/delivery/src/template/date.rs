//! Times as text, by a format of `strftime`.

use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::error::Fault;
use super::value::{Number, Value};

/// The longest format; each of its signs is at most some 20 characters long in the result.
const FORMAT_MAX_BYTES: usize = 128;

/// Checks a format with one time.
///
/// # Errors
/// It is too long, or `strftime` does not have one of its signs.
pub(super) fn check(format: &str) -> Result<(), Fault> {
    if format.len() > FORMAT_MAX_BYTES {
        return Err(Fault::new(format!(
            "the format of a date has at most {FORMAT_MAX_BYTES} bytes"
        )));
    }
    let checked = written(format, Timestamp::UNIX_EPOCH);
    checked.map(|_| ()).ok_or_else(|| {
        Fault::new("the format of the date is not one of strftime, such as %Y-%m-%d")
    })
}

/// An RFC 3339 time or the seconds since 1970, in UTC.
///
/// # Errors
/// The value is neither.
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
        Fault::new("the value is not a time: neither RFC 3339 such as 2026-11-20T07:03:00Z nor seconds since 1970")
    })
}

fn written(format: &str, time: Timestamp) -> Option<String> {
    strtime::format(format, &time.to_zoned(TimeZone::UTC)).ok()
}
