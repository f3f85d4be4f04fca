//! Formats text for people: times, counts, and untrusted text.
//!
//! Events and responses are untrusted. On a terminal, their control characters could overwrite
//! other output, and characters that reverse or hide text could falsify it.

pub(crate) mod attempts;
mod indented;
mod table;

use std::path::Path;

use axum::http::StatusCode;
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};
use delivery::time::moment;
use indicatif::HumanCount;
use uuid::Uuid;

pub(crate) use indented::indented;
pub(crate) use table::{Table, table, width};

/// The number of characters of a short id. Ids of this length are usually unique, and every command
/// accepts a short id.
const SHORT_ID_CHARS: usize = 8;
/// The number of characters of a time to the second, such as `2026-11-20T07:03:00`.
const SECONDS_CHARS: usize = 19;
/// The number of characters of a time of day to the millisecond, such as `07:03:00.123`.
const TIME_CHARS: usize = 12;
/// Durations from one to ten seconds are rounded to this unit.
const TENTH_MS: u64 = 100;
/// Durations of at least ten seconds are shown without fractions of a second.
const WHOLE_SECONDS_FROM_MS: u64 = 10_000;

/// Escapes untrusted text: replaces invisible characters except line ends and tabs.
pub(crate) fn plain(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    text.chars().map(|c| if matches!(c, '\n' | '\t') { c } else { visible(c) }).collect()
}

/// Escapes untrusted text, and replaces line ends and tabs with spaces.
pub(crate) fn line(text: &str) -> String {
    text.chars().map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { visible(c) }).collect()
}

/// Formats a path on one line. Escapes invisible characters, because file names are untrusted.
pub(crate) fn path(path: &Path) -> String {
    line(&path.display().to_string())
}

/// Escapes invisible characters in JSON. They can only be inside strings, so the value does not
/// change.
pub(crate) fn json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if matches!(c, '\n' | '\r' | '\t') || !is_invisible(c) {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]).iter() {
            escaped.push_str(&format!("\\u{unit:04x}"));
        }
    }
    escaped
}

fn visible(c: char) -> char {
    if is_invisible(c) { '\u{fffd}' } else { c }
}

/// Returns true for invisible characters: controls, characters that reverse (Unicode TR9, 2) or
/// hide others, and characters without a glyph (`Default_Ignorable_Code_Point`, except the emoji
/// selectors).
pub(crate) fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{17b4}'
                | '\u{17b5}'
                | '\u{180b}'..='\u{180f}'
        )
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}')
        || matches!(c, '\u{fe00}'..='\u{fe0d}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}')
        || matches!(c, '\u{e0000}'..='\u{e0fff}')
}

/// Formats a time to the second: `2026-11-20 07:03:00Z`.
pub(crate) fn at(ms: Option<u64>) -> String {
    ms.map_or_else(|| "-".to_owned(), |ms| format!("{}Z", seconds(&moment::rfc3339(ms))))
}

/// Formats the time of day in UTC: `07:03:00.123Z`.
pub(crate) fn time_of_day(ms: u64) -> String {
    let rfc3339 = moment::rfc3339(ms);
    // The time has the form `2026-11-20T07:03:00.1230000Z`.
    let time = rfc3339.split('T').nth(1).unwrap_or_default();
    format!("{}Z", first_chars(time, TIME_CHARS))
}

/// Formats an RFC 3339 time to the second, without its time zone: `2026-11-20 07:03:00`. Any other
/// text is cut to the same length, and its line ends become spaces.
pub(crate) fn seconds(rfc3339: &str) -> String {
    line(&first_chars(rfc3339, SECONDS_CHARS)).replace('T', " ")
}

/// Shortens an id to its first characters, which are usually unique.
pub(crate) fn short_id(id: Uuid) -> String {
    first_chars(&id.to_string(), SHORT_ID_CHARS)
}

/// Returns the first `count` characters of a text.
pub(crate) fn first_chars(text: &str, count: usize) -> String {
    text.chars().take(count).collect()
}

/// Formats a number of dead letters: `1 dead letter`, `20,000 dead letters`.
pub(crate) fn dead_letters(count: u64) -> String {
    counted(count, "dead letter")
}

/// Formats a number with a noun in singular or plural: `1 blob`, `20,000 blobs`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// Formats a number with thousands separators.
pub(crate) fn grouped(count: u64) -> String {
    HumanCount(count).to_string()
}

/// Formats a duration in its two largest units: `340 ms`, `10 s`, `3 min 20 s`, `2 d 4 h`.
pub(crate) fn duration(ms: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min"), (SECOND_MS, "s")];
    if ms < SECOND_MS {
        return format!("{ms} ms");
    }
    let first = UNITS.iter().position(|(unit_ms, _)| ms >= *unit_ms).unwrap_or(UNITS.len() - 1);
    let (mut rest_ms, mut parts) = (ms, Vec::new());
    for (unit_ms, name) in UNITS.iter().skip(first).take(2) {
        if rest_ms >= *unit_ms {
            parts.push(format!("{} {name}", rest_ms / unit_ms));
        }
        rest_ms %= unit_ms;
    }
    parts.join(" ")
}

/// Rounds a duration to a useful precision: `340 ms`, `2 s`, `1.5 s`, `3 min 20 s`. A wait of one
/// hour that has just begun still reads `1 h`.
pub(crate) fn rounded(ms: u64) -> String {
    let tenths = ms.saturating_add(TENTH_MS / 2) / TENTH_MS;
    if tenths < 10 {
        return duration(ms);
    }
    if ms < WHOLE_SECONDS_FROM_MS && !tenths.is_multiple_of(10) {
        return format!("{}.{} s", tenths / 10, tenths % 10);
    }
    duration(ms.saturating_add(SECOND_MS / 2) / SECOND_MS * SECOND_MS)
}

/// Formats a status and an outcome: `404 Not Found`, `503 Service Unavailable (Busy)`, `TimedOut`.
pub(crate) fn outcome(outcome: Option<&str>, status: Option<u16>) -> String {
    let Some(status) = status else { return outcome.map_or_else(|| "-".to_owned(), line) };
    let name = status_name(status).map(|name| format!(" {name}")).unwrap_or_default();
    let more = outcome_beside(outcome, status).map(|outcome| format!(" ({})", line(outcome)));
    format!("{status}{name}{}", more.unwrap_or_default())
}

/// Returns the name of an HTTP status according to RFC 9110, such as `Not Found`.
pub(crate) fn status_name(status: u16) -> Option<&'static str> {
    match status {
        413 => Some("Content Too Large"),
        422 => Some("Unprocessable Content"),
        status => StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()),
    }
}

/// Returns the outcome, unless it adds nothing to the name of the status.
pub(crate) fn outcome_beside(outcome: Option<&str>, status: u16) -> Option<&str> {
    let name = status_name(status).unwrap_or_default().replace(' ', "");
    let is_named =
        |outcome: &str| !name.is_empty() && matches!(outcome, "" | "GenericError" | "Success");
    outcome.filter(|outcome| *outcome != name && !is_named(outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters from each range that `is_invisible` covers.
    const HIDDEN: [char; 26] = [
        '\0',
        '\u{1b}',
        '\u{7f}',
        '\u{85}',
        '\u{9b}',
        '\u{ad}',
        '\u{34f}',
        '\u{61c}',
        '\u{180e}',
        '\u{200b}',
        '\u{200d}',
        '\u{200f}',
        '\u{2028}',
        '\u{202a}',
        '\u{202e}',
        '\u{2060}',
        '\u{2064}',
        '\u{2066}',
        '\u{2069}',
        '\u{3164}',
        '\u{feff}',
        '\u{fffb}',
        '\u{e0001}',
        '\u{e0041}',
        '\u{e007f}',
        '\u{e0100}',
    ];

    #[test]
    fn what_others_wrote_cannot_move_the_cursor() {
        assert_eq!(plain("a\x1b[2Jb\r\nc\t\u{9b}"), "a\u{fffd}[2Jb\nc\t\u{fffd}");
        assert_eq!(line("a\nb\tc\x1bd"), "a b c\u{fffd}d");
        for hidden in HIDDEN {
            let text = format!("a{hidden}b");
            assert_eq!((plain(&text).as_str(), line(&text).as_str()), ("a\u{fffd}b", "a\u{fffd}b"));
        }
        let seen = "é 日本 a\u{301} \u{2014} ❤\u{fe0f}";
        assert_eq!((plain(seen).as_str(), line(seen).as_str()), (seen, seen));
    }

    #[test]
    fn json_keeps_its_value_and_shows_what_cannot_be_seen() {
        for hidden in HIDDEN {
            let value = serde_json::json!({ "é": format!("a\n{hidden}b") });
            let written = json(&serde_json::to_string_pretty(&value).unwrap());
            assert!(!written.contains(hidden), "{written:?}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), value);
        }
        assert_eq!(json("[\t1]\r\n"), "[\t1]\r\n");
        assert_eq!(json("\"\u{202e}\u{e0041}\""), "\"\\u202e\\udb40\\udc41\"");
    }

    #[test]
    fn numbers_and_times_are_easy_to_read() {
        for (count, text) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (20_000, "20,000"), (1_234_567, "1,234,567")]
        {
            assert_eq!(grouped(count), text);
        }
        assert_eq!(dead_letters(1), "1 dead letter");
        assert_eq!(dead_letters(2), "2 dead letters");
        for (ms, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (10_400, "10 s"),
            (200_000, "3 min 20 s"),
            (HOUR_MS, "1 h"),
            (HOUR_MS + 5_000, "1 h"),
            (2 * DAY_MS + 4 * HOUR_MS, "2 d 4 h"),
        ] {
            assert_eq!(duration(ms), text);
        }
        for (word, status, text) in [
            (Some("Busy"), Some(503), "503 Service Unavailable (Busy)"),
            (Some("NotFound"), Some(404), "404 Not Found"),
            (Some("GenericError"), Some(422), "422 Unprocessable Content"),
            (Some("PayloadTooLarge"), Some(413), "413 Content Too Large (PayloadTooLarge)"),
            (Some("GenericError"), Some(599), "599 (GenericError)"),
            (Some("Success"), Some(200), "200 OK"),
            (Some("Su\u{1b}d"), Some(70), "70 (Su\u{fffd}d)"),
            (None, Some(500), "500 Internal Server Error"),
            (Some("TimedOut"), None, "TimedOut"),
            (None, None, "-"),
        ] {
            assert_eq!(outcome(word, status), text);
        }
        assert_eq!(at(Some(1_795_158_180_123)), "2026-11-20 07:03:00Z");
        assert_eq!(seconds("2026-11-20T07:03:00.1230000Z"), "2026-11-20 07:03:00");
        assert_eq!(seconds("2026\nx\u{202e}"), "2026 x\u{fffd}");
    }

    #[test]
    fn durations_are_as_exact_as_they_matter() {
        for (ms, shown) in [
            (340, "340 ms"),
            (940, "940 ms"),
            (997, "1 s"),
            (1_000, "1 s"),
            (1_043, "1 s"),
            (1_500, "1.5 s"),
            (1_970, "2 s"),
            (9_990, "10 s"),
            (3_599_998, "1 h"),
            (10_400, "10 s"),
            (200_000, "3 min 20 s"),
        ] {
            assert_eq!(rounded(ms), shown);
        }
    }
}
