//! Parses the hour in keys of dead letters, without reading the blobs. Pure.
//!
//! A key is `<namespace>/<topic>/<subscription>/<yyyy>/<M>/<d>/<H>/<guid>.json`. Month, day and
//! hour have no leading zeros. Therefore folders are compared by time, never by bytes.

use std::ops::Range;

use delivery::delivery::replay::REPLAYS_FOLDER;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan as _};

/// Number of folders above the years: namespace, topic, subscription.
pub(crate) const NAME_FOLDERS: usize = 3;
/// Number of folders above a blob.
pub(crate) const KEY_FOLDERS: usize = NAME_FOLDERS + 4;
/// Name of the folder of the replay ledgers, beside the namespaces.
pub(crate) const LEDGER_FOLDER: &str = REPLAYS_FOLDER;
/// Name of the folder of the dismissals, beside the namespaces.
pub(crate) const DISMISSED_FOLDER: &str = "_dismissed";
/// Names of the top-level folders that are not namespaces.
pub(crate) const RESERVED_FOLDERS: [&str; 2] = [LEDGER_FOLDER, DISMISSED_FOLDER];

/// Returns the time range of a year, month, day or hour folder, in milliseconds; `None` for any
/// other folder.
///
/// `segments` are one to four folder names, beginning with the year: year, month, day, hour.
pub(crate) fn time_range(segments: &[&str]) -> Option<Range<u64>> {
    let number = |at: usize, default: i16| {
        segments.get(at).map_or(Some(default), |text| text.parse::<i16>().ok())
    };
    // `parse` would accept a sign.
    let is_plain = segments.iter().all(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let (year, month, day) = (number(0, 1)?, number(1, 1)?, number(2, 1)?);
    let hour = number(3, 0)?.try_into().ok().filter(|hour: &i8| *hour < 24 && is_plain)?;
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

/// Returns the time range of the hour folder in a key; `None` if the key is not that of a dead
/// letter.
pub(crate) fn hour_of_key(key: &str, root: &str) -> Option<Range<u64>> {
    let segments: Vec<&str> = key.strip_prefix(root)?.split('/').collect();
    (segments.len() == KEY_FOLDERS + 1
        && !segments.first().is_some_and(|first| RESERVED_FOLDERS.contains(first)))
    .then(|| time_range(segments.get(NAME_FOLDERS..KEY_FOLDERS)?))
    .flatten()
}

#[cfg(test)]
mod tests {
    use delivery::time::moment::rfc3339;

    use super::*;

    fn shown(segments: &[&str]) -> Option<(String, String)> {
        let short = |ms: u64| rfc3339(ms).chars().take(16).collect::<String>();
        time_range(segments).map(|span| (short(span.start), short(span.end)))
    }

    #[test]
    fn a_folder_is_a_time_range_and_hours_are_numbers() {
        for (segments, begin, end) in [
            (&["2026"][..], "2026-01-01T00:00", "2027-01-01T00:00"),
            (&["2026", "9"], "2026-09-01T00:00", "2026-10-01T00:00"),
            (&["2026", "12", "31"], "2026-12-31T00:00", "2027-01-01T00:00"),
            (&["2026", "11", "20", "7"], "2026-11-20T07:00", "2026-11-20T08:00"),
            (&["2026", "11", "20", "23"], "2026-11-20T23:00", "2026-11-21T00:00"),
        ] {
            assert_eq!(shown(segments), Some((begin.to_owned(), end.to_owned())), "{segments:?}");
        }
        let begin = |hour| time_range(&["2026", "11", "20", hour]).map(|span| span.start);
        assert!(begin("9") < begin("10"));
    }

    #[test]
    fn other_folders_have_no_time_range() {
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
    fn a_key_contains_its_hour_after_any_prefix() {
        let key = "p/ns/t/s/2026/11/20/7/6f1c2a9e.json";
        assert_eq!(hour_of_key(key, "p/"), time_range(&["2026", "11", "20", "7"]));
        assert_eq!(hour_of_key(key, ""), None);
        assert_eq!(hour_of_key("_replays/t/s/2026/11/20/7/1.json", ""), None);
    }
}
