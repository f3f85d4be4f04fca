//! Text for people: times, counts, and what others wrote, made harmless.
//!
//! Events and responses come from anywhere; on a terminal their control characters could do
//! anything, and those that reverse or hide text could make it say something else.

use comfy_table::{ContentArrangement, Table, presets};
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};
use delivery::time::moment;
use indicatif::HumanCount;
use uuid::Uuid;

/// How much of an id is shown: it mostly names one dead letter, and every verb takes it.
const SHORT_ID_CHARS: usize = 8;
/// `2026-11-20T07:03:00`, without fraction and time zone.
const SECONDS_CHARS: usize = 19;

/// What others wrote, with a replacement for invisible characters other than line ends and tabs.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if matches!(c, '\n' | '\t') { c } else { visible(c) }).collect()
}

/// The same on one line.
pub(crate) fn line(text: &str) -> String {
    text.chars().map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { visible(c) }).collect()
}

fn visible(c: char) -> char {
    if is_invisible(c) { '\u{fffd}' } else { c }
}

/// Whether a character cannot be seen: controls, and what reverses (Unicode TR9, 2) or hides its
/// neighbours.
pub(crate) fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{feff}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
}

/// A time to the second: `2026-11-20 07:03:00Z`.
pub(crate) fn at(ms: Option<u64>) -> String {
    ms.map_or_else(|| "-".to_owned(), |ms| format!("{}Z", seconds(&moment::rfc3339(ms))))
}

/// RFC 3339 to the second, with a space and without the time zone. Any other text is only cut.
pub(crate) fn seconds(rfc3339: &str) -> String {
    first_chars(rfc3339, SECONDS_CHARS).replace('T', " ")
}

/// The beginning of an id, as lists show it.
pub(crate) fn short_id(id: Uuid) -> String {
    first_chars(&id.to_string(), SHORT_ID_CHARS)
}

/// A table with these columns.
pub(crate) fn table(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY).set_header(columns);
    table
}

/// A table of this width, in characters; longer cells have several lines.
pub(crate) fn wrapped_table(columns: &[&str], width: u16) -> Table {
    let mut table = table(columns);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    table
}

/// The first characters of a text.
pub(crate) fn first_chars(text: &str, count: usize) -> String {
    text.chars().take(count).collect()
}

/// `1 dead letter`, `20,000 dead letters`.
pub(crate) fn dead_letters(count: u64) -> String {
    format!("{} {}", grouped(count), if count == 1 { "dead letter" } else { "dead letters" })
}

/// A number with its thousands separated.
pub(crate) fn grouped(count: u64) -> String {
    HumanCount(count).to_string()
}

/// A duration in its two greatest units: `340 ms`, `10 s`, `3 min 20 s`, `2 d 4 h`.
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

/// Status and outcome, if there are any.
pub(crate) fn outcome(outcome: Option<&str>, status: Option<u16>) -> String {
    match (status, outcome) {
        (Some(status), Some(outcome)) => format!("{status} {}", line(outcome)),
        (Some(status), None) => status.to_string(),
        (None, Some(outcome)) => line(outcome),
        (None, None) => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_cannot_move_the_cursor() {
        assert_eq!(plain("a\x1b[2Jb\r\nc\t\u{9b}"), "a\u{fffd}[2Jb\u{fffd}\nc\t\u{fffd}");
        assert_eq!(line("a\nb\tc\x1bd"), "a b c\u{fffd}d");
        for hidden in
            ['\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}', '\u{61c}', '\u{200b}', '\u{2028}']
        {
            let text = format!("a{hidden}b");
            assert_eq!((plain(&text).as_str(), line(&text).as_str()), ("a\u{fffd}b", "a\u{fffd}b"));
        }
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
        assert_eq!(at(Some(1_795_158_180_123)), "2026-11-20 07:03:00Z");
    }
}
