//! Formats causes for people: two lines each, as wide as the terminal. Pure.
//!
//! Separate from grouping dead letters by cause, so that tests can format any causes at any width.
//!
//! Promises: the first line has the beginning of the title. The second line continues the title
//! beside the subscription.

use deadletters::cause::{Cause, CauseId};

use super::title_lines;
use crate::terminal::text;

/// The maximum number of causes that are printed: first those of stopped subscriptions, then the
/// most frequent ones.
const CAUSES_MAX: usize = 30;
/// The number of characters of a time to the minute, such as `2026-11-20 07:03`.
const MINUTES_CHARS: usize = 16;
/// The number of characters of a date and a space, such as `2026-11-20 `.
const DAY_CHARS: usize = 11;
/// The number of characters of a year and a hyphen, such as `2026-`.
const YEAR_CHARS: usize = 5;
/// The minimum space for a title or a subscription on a narrow terminal.
const TEXT_MIN_CHARS: usize = 16;
const GAP: &str = "  ";
/// The number of characters from the count to the title: the share and the gaps (`  <1%  `).
const COUNT_TO_TITLE_CHARS: usize = 8;

/// Formats the causes with a heading above, and with the next commands below. `place` contains the
/// options that name the container, for these commands.
pub(super) fn report(causes: &[Cause], width: usize, place: &str) -> String {
    let total: u64 = causes.iter().map(|cause| cause.count).sum();
    let since = causes.iter().filter_map(|cause| cause.first_ms).min();
    let mut lines = vec![format!(
        "{}, {}, since {}",
        text::dead_letters(total),
        text::counted(causes.len() as u64, "cause"),
        minutes(since)
    )];
    let shown = causes.get(..CAUSES_MAX.min(causes.len())).unwrap_or_default();
    let ids: Vec<CauseId> = causes.iter().map(|cause| cause.id).collect();
    let ids = CauseId::shortened(&ids);
    let counts = shown.iter().map(|cause| text::grouped(cause.count).len());
    let id_chars = ids.first().map_or(0, String::len);
    let indent = (counts.max().unwrap_or(1) + COUNT_TO_TITLE_CHARS).max(id_chars + GAP.len());
    for (cause, id) in shown.iter().zip(&ids) {
        lines.extend(two_lines(cause, id, indent, width));
    }
    if let Some(rest) = causes.get(CAUSES_MAX..).filter(|rest| !rest.is_empty()) {
        let letters = text::dead_letters(rest.iter().map(|cause| cause.count).sum());
        let more = text::counted(rest.len() as u64, "more cause");
        lines.push(format!("… and {more} with {letters}; use --output json to see all"));
    }
    if let (Some(cause), Some(id)) = (causes.first(), ids.first()) {
        let example = text::short_id(cause.example);
        lines.push(format!("Next: lastmile deadletters show{place} {example}"));
        lines.push(format!("      lastmile deadletters list{place} --cause {id}"));
        lines.push(format!("      lastmile deadletters replay{place} --cause {id}"));
    }
    lines.join("\n") + "\n"
}

/// Formats a cause on two lines. The first line has the count, the share and the title. The second
/// line has the id, the rest of the title, the subscriptions, the times and the trend.
fn two_lines(cause: &Cause, id: &str, indent: usize, width: usize) -> [String; 2] {
    let counts = indent - COUNT_TO_TITLE_CHARS;
    let begin =
        format!("{:>counts$}{GAP}{:>4}{GAP}", text::grouped(cause.count), percent(cause.share));
    let room = width.saturating_sub(indent).max(TEXT_MIN_CHARS);
    let reopened = if cause.is_reopened { ", reopened" } else { "" };
    let end = format!("{GAP}{}{GAP}{}{reopened}", times(cause), cause.trend.as_str());
    let beside = room.saturating_sub(end.chars().count());
    let title = text::line(&cause.title);
    let rest_chars = match title_lines::broken(&title, room) {
        [_, ""] => 0,
        [_, rest] => rest.chars().count() + GAP.len(),
    };
    let subscriptions = subscriptions(cause, beside.saturating_sub(rest_chars).max(TEXT_MIN_CHARS));
    let rest_room = beside.saturating_sub(subscriptions.chars().count() + GAP.len());
    let [first, mut rest] = title_lines::fitted(&title, room, rest_room.max(TEXT_MIN_CHARS));
    if !rest.is_empty() {
        rest.push_str(GAP);
    }
    [format!("{begin}{first}"), format!("{id:<indent$}{rest}{subscriptions}{end}")]
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100")]
fn percent(share: f64) -> String {
    match (share * 100.0).round() as u32 {
        0 => "<1%".to_owned(),
        percent => format!("{percent}%"),
    }
}

/// Formats the most frequent subscription of a cause, and the number of its other subscriptions.
fn subscriptions(cause: &Cause, room: usize) -> String {
    let more = match cause.subscriptions.len() {
        0 | 1 => String::new(),
        several => format!(" +{}", several - 1),
    };
    let first = cause
        .subscriptions
        .first()
        .map(|subscription| text::line(&subscription.name))
        .unwrap_or_default();
    format!("{}{more}", cut(&first, room.saturating_sub(more.len())))
}

/// Formats the times of the first and the last dead letter: `11-20 09:03..10:03Z`. The heading
/// contains the year.
fn times(cause: &Cause) -> String {
    let [first, last] =
        [cause.first_ms, cause.last_ms].map(|ms| text::first_chars(&text::at(ms), MINUTES_CHARS));
    let without = |text: &str, chars: usize| text.chars().skip(chars).collect::<String>();
    if text::first_chars(&first, YEAR_CHARS) != text::first_chars(&last, YEAR_CHARS) {
        return format!("{first}..{last}Z");
    }
    let begin = without(&first, YEAR_CHARS);
    if first == last {
        return format!("{begin}Z");
    }
    let is_one_day = text::first_chars(&first, DAY_CHARS) == text::first_chars(&last, DAY_CHARS);
    let end = without(&last, if is_one_day { DAY_CHARS } else { YEAR_CHARS });
    format!("{begin}..{end}Z")
}

fn minutes(ms: Option<u64>) -> String {
    ms.map_or_else(
        || "-".to_owned(),
        |ms| format!("{}Z", text::first_chars(&text::at(Some(ms)), MINUTES_CHARS)),
    )
}

fn cut(text: &str, room: usize) -> String {
    match text.chars().count() <= room {
        true => text.to_owned(),
        false => format!("{}…", text::first_chars(text, room.saturating_sub(1))),
    }
}
