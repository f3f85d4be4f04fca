//! Renders untrusted text safely, and small elements that several pages share.
//!
//! Events and responses are untrusted. maud escapes inserted text, so nothing in them becomes
//! markup. This module also replaces control characters, and characters that reverse or hide text,
//! with their code points.

use std::borrow::Cow;

use adapters::machine::Machine;
use deadletters::replay::UnreadableLedger;
use deadletters::state::LetterStates;
use delivery::ports::Clock as _;
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};
use delivery::time::moment::rfc3339;
use maud::{Markup, PreEscaped, html};

use crate::terminal::text;
use crate::views::unreadable_ledger::{dismissals_not_read, not_shown};

/// Renders untrusted text on one line, without trailing line ends.
pub(in crate::console) fn line(text: &str) -> Markup {
    visible(&with_line_feeds(text.trim_end_matches(['\r', '\n'])), |_| false)
}

/// Renders untrusted text with its line ends and tabs.
pub(in crate::console) fn block(text: &str) -> Markup {
    visible(&with_line_feeds(text), |c| matches!(c, '\n' | '\t'))
}

/// Replaces CR LF and CR with LF.
fn with_line_feeds(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n").into()
    } else {
        text.into()
    }
}

/// Renders a message of this program, which may contain commands between backticks.
pub(in crate::console) fn message(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    // An odd number of backticks cannot be paired.
    if parts.len().is_multiple_of(2) {
        return block(text);
    }
    html! { @for (at, part) in parts.into_iter().enumerate() {
        @if at.is_multiple_of(2) { (block(part)) } @else { code { (block(part)) } }
    } }
}

/// Renders untrusted text of several lines in a box.
pub(in crate::console) fn boxed(text: &str, label: &str) -> Markup {
    html! { pre role="region" tabindex="0" aria-label=(label) { (block(text)) } }
}

/// Renders a box with an id, so that a button can copy its text.
pub(in crate::console) fn named_box(text: &str, label: &str, id: &str) -> Markup {
    html! { pre id=(id) role="region" tabindex="0" aria-label=(label) { (block(text)) } }
}

fn visible(text: &str, is_kept: impl Fn(char) -> bool) -> Markup {
    let is_replaced = |c: char| text::is_invisible(c) && !is_kept(c);
    let mut markup = String::with_capacity(text.len());
    // Each part ends with a replaced character, except perhaps the last part.
    for part in text.split_inclusive(is_replaced) {
        let shown = match part.chars().next_back().filter(|c| is_replaced(*c)) {
            Some(c) => html! {
                (part.trim_end_matches(c)) span .sign { "U+" (format!("{:04X}", u32::from(c))) }
            },
            None => html! { (part) },
        };
        markup.push_str(&shown.0);
    }
    PreEscaped(markup)
}

/// Renders a long name that may break before capitals and after punctuation.
pub(in crate::console) fn word(text: &str) -> Markup {
    let mut parts: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in text.chars() {
        let breaks = match before {
            '/' | '?' | '&' => c != '/',
            '.' | '_' | '-' => c.is_alphabetic() && c.is_lowercase(),
            before => before.is_lowercase() && c.is_uppercase(),
        };
        if breaks || parts.is_empty() {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
        before = c;
    }
    html! { @for (at, part) in parts.iter().enumerate() { @if at > 0 { wbr; } (line(part)) } }
}

/// Renders a note about replay jobs that cannot be shown, if there are any.
pub(in crate::console) fn jobs_not_shown(ledgers: &[UnreadableLedger]) -> Markup {
    html! { @if let Some(note) = not_shown(ledgers) { p .notice { (line(&note)) } } }
}

/// Renders notices about dismissals and replays that cannot be read.
pub(in crate::console) fn states_not_read(states: &LetterStates) -> Markup {
    html! {
        @if let Some(note) = dismissals_not_read(states.unreadable_dismissals()) { p .notice { (note) } }
        (jobs_not_shown(states.unreadable()))
    }
}

/// Renders a value, or a placeholder if there is none.
pub(in crate::console) fn or_none(value: Option<Markup>, none: &str) -> Markup {
    value.unwrap_or_else(|| html! { span .none { (none) } })
}

/// Renders a time, to the second.
pub(in crate::console) fn time(ms: Option<u64>) -> Markup {
    html! { @match ms {
        Some(ms) => time datetime=(rfc3339(ms)) { (text::at(Some(ms)).trim_end_matches('Z')) },
        None => span .none { "–" },
    } }
}

/// Renders the age of a time in its largest unit, such as `3 h ago`. The tooltip contains the exact
/// time.
pub(in crate::console) fn age(ms: Option<u64>) -> Markup {
    html! { @match ms {
        Some(ms) => time datetime=(rfc3339(ms)) title={ (text::at(Some(ms)).trim_end_matches('Z')) " UTC" } {
            (ago(ms, Machine.now_ms()))
        },
        None => span .none { "–" },
    } }
}

/// Renders a time to the second, and its age.
pub(in crate::console) fn time_and_age(ms: Option<u64>) -> Markup {
    html! {
        (time(ms))
        @if let Some(ms) = ms { " " span .kind { (ago(ms, Machine.now_ms())) } }
    }
}

fn ago(ms: u64, now_ms: u64) -> String {
    match now_ms.checked_sub(ms) {
        Some(0..SECOND_MS) => "now".to_owned(),
        Some(age_ms) => {
            let unit_ms = [DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS]
                .into_iter()
                .find(|unit_ms| age_ms >= *unit_ms)
                .unwrap_or(SECOND_MS);
            format!("{} ago", text::duration(age_ms / unit_ms * unit_ms))
        }
        // The time is in the future, because the clocks of machines differ.
        None => text::at(Some(ms)).trim_end_matches('Z').to_owned(),
    }
}

/// Renders the status and the outcome of an attempt. The CSS class shows the type of failure.
pub(in crate::console) fn outcome(outcome: Option<&str>, status: Option<u16>) -> Markup {
    let kind = match status {
        Some(200..=299) => "good",
        Some(400..=499) => "client",
        Some(_) => "server",
        None => "silent",
    };
    html! { @match (outcome, status) {
        (None, None) => span .none { "none" },
        (outcome, status) => span class={ "outcome " (kind) } {
            @if let Some(status) = status {
                b { (status) }
                @if let Some(name) = text::status_name(status) { " " (name) }
                @if let Some(more) = text::outcome_beside(outcome, status) { " (" (word(more)) ")" }
            } @else if let Some(outcome) = outcome { (word(outcome)) }
        },
    } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_and_what_cannot_be_seen_becomes_a_code_point() {
        let shown = line("<script>\u{1b}[2J\n\u{202e}é").into_string();
        assert_eq!(
            shown,
            "&lt;script&gt;<span class=\"sign\">U+001B</span>[2J<span class=\"sign\">U+000A</span>\
             <span class=\"sign\">U+202E</span>é"
        );
        assert_eq!(block("a\r\n\tb\rc\r").into_string(), "a\n\tb\nc\n");
        assert_eq!(line("a\r\nb\r\n").into_string(), "a<span class=\"sign\">U+000A</span>b");
    }

    #[test]
    fn a_command_in_a_message_becomes_code() {
        for (text, shown) in [
            ("start `lastmile dev` first", "start <code>lastmile dev</code> first"),
            ("`<b>`", "<code>&lt;b&gt;</code>"),
            ("a ` b", "a ` b"),
            ("no command", "no command"),
        ] {
            assert_eq!(message(text).into_string(), shown);
        }
    }

    #[test]
    fn an_age_has_one_unit() {
        for (ms, shown) in [
            (0, "now"),
            (1_999, "1 s ago"),
            (200_000, "3 min ago"),
            (3 * HOUR_MS + 5_000, "3 h ago"),
            (40 * DAY_MS + HOUR_MS, "40 d ago"),
        ] {
            assert_eq!(ago(1_795_158_180_123, 1_795_158_180_123 + ms), shown);
        }
        assert_eq!(ago(1_795_158_180_123, 0), "2026-11-20 07:03:00");
    }

    #[test]
    fn a_long_name_may_be_broken_where_its_words_begin() {
        assert_eq!(word("TopicNotFound<").into_string(), "Topic<wbr>Not<wbr>Found&lt;");
        assert_eq!(word("https://a.b/c").into_string(), "https://<wbr>a.<wbr>b/<wbr>c");
    }
}
