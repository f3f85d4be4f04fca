//! What a key says without its blob being read: whose letter it is, and of which hour. Pure.
//!
//! `<namespace>/<topic>/<subscription>/<yyyy>/<M>/<d>/<H>/<guid>.json`. Month, day and hour have no
//! leading zeros, so folders are compared by the time they stand for and never by their bytes.

use std::ops::Range;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan as _};

/// The folders above the hours: namespace, topic, subscription.
pub(crate) const NAMES: usize = 3;
/// The folders above the blobs.
pub(crate) const FOLDERS: usize = NAMES + 4;
/// In a namespace's place: the ledgers of replays.
pub(crate) const LEDGERS: &str = "_replays";

/// The moments that a folder of a year, month, day or hour stands for; `None` when it is no such
/// folder.
///
/// `segments` are the one to four last parts of its path: year, month, day, hour.
pub(crate) fn moments(segments: &[&str]) -> Option<Range<u64>> {
    let number = |at: usize, default: i16| {
        segments.get(at).map_or(Some(default), |text| text.parse::<i16>().ok())
    };
    let plain = segments.iter().all(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let (year, month, day) = (number(0, 1)?, number(1, 1)?, number(2, 1)?);
    let hour = number(3, 0)?.try_into().ok().filter(|hour: &i8| *hour < 24 && plain)?;
    let begin =
        Date::new(year, month.try_into().ok()?, day.try_into().ok()?).ok()?.at(hour, 0, 0, 0);
    let length: Span = match segments.len() {
        1 => 1.year(),
        2 => 1.month(),
        3 => 1.day(),
        _ => 1.hour(),
    };
    let ms = |at: jiff::civil::DateTime| {
        let at = at.to_zoned(TimeZone::UTC).map_or(Timestamp::MAX, |at| at.timestamp());
        u64::try_from(at.as_millisecond()).unwrap_or(0)
    };
    Some(ms(begin)..begin.checked_add(length).map_or(u64::MAX, ms))
}

/// The moments of the hour that a key lies in; `None` when it is no key of a dead letter.
pub(crate) fn hour_of(key: &str, root: &str) -> Option<Range<u64>> {
    let segments: Vec<&str> = key.strip_prefix(root)?.split('/').collect();
    (segments.len() == FOLDERS + 1 && segments[0] != LEDGERS)
        .then(|| moments(&segments[NAMES..FOLDERS]))
        .flatten()
}

/// The name of a blob's file without its ending: the GUID.
pub(crate) fn stem(key: &str) -> &str {
    let file = key.rsplit('/').next().unwrap_or(key);
    file.strip_suffix(".json").unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use delivery::time::moment::rfc3339;

    use super::*;

    fn shown(segments: &[&str]) -> Option<(String, String)> {
        let short = |ms: u64| rfc3339(ms)[..16].to_owned();
        moments(segments).map(|span| (short(span.start), short(span.end)))
    }

    #[test]
    fn a_folder_stands_for_its_time_and_hours_are_numbers() {
        for (segments, begin, end) in [
            (&["2026"][..], "2026-01-01T00:00", "2027-01-01T00:00"),
            (&["2026", "9"], "2026-09-01T00:00", "2026-10-01T00:00"),
            (&["2026", "12", "31"], "2026-12-31T00:00", "2027-01-01T00:00"),
            (&["2026", "11", "20", "7"], "2026-11-20T07:00", "2026-11-20T08:00"),
            (&["2026", "11", "20", "23"], "2026-11-20T23:00", "2026-11-21T00:00"),
        ] {
            assert_eq!(shown(segments), Some((begin.to_owned(), end.to_owned())), "{segments:?}");
        }
        let begin = |hour| moments(&["2026", "11", "20", hour]).map(|span| span.start);
        assert!(begin("9") < begin("10"));
    }

    #[test]
    fn what_is_no_time_is_no_folder_of_hours() {
        for segments in [
            &["x"][..],
            &["2026", "13"],
            &["2026", "2", "30"],
            &["2026", "1", "1", "24"],
            &["-1"],
            &["+1"],
        ] {
            assert_eq!(shown(segments), None, "{segments:?}");
        }
    }

    #[test]
    fn a_key_tells_its_hour_behind_any_prefix() {
        let key = "p/ns/t/s/2026/11/20/7/6f1c2a9e.json";
        assert_eq!(hour_of(key, "p/"), moments(&["2026", "11", "20", "7"]));
        assert_eq!(hour_of(key, ""), None);
        assert_eq!(hour_of("_replays/t/s/2026/11/20/7/1.json", ""), None);
        assert_eq!(stem(key), "6f1c2a9e");
    }
}
