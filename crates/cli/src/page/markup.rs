//! What others wrote, made visible, and small pieces that several pages show.
//!
//! Events and responses come from anywhere. maud escapes what is inserted, so nothing of them is
//! markup; here their control characters, and those that reverse or hide text, are replaced by
//! their code points.

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use delivery::time::moment::rfc3339;
use maud::{Markup, PreEscaped, html};

use crate::text;

/// What others wrote, on one line.
pub(super) fn line(text: &str) -> Markup {
    visible(text, |_| false)
}

/// What others wrote, with its line ends and tabs.
pub(super) fn block(text: &str) -> Markup {
    visible(text, |c| matches!(c, '\n' | '\t'))
}

/// What others wrote on several lines, in a box of its own.
pub(super) fn boxed(text: &str, label: &str) -> Markup {
    html! { pre role="region" tabindex="0" aria-label=(label) { (block(text)) } }
}

fn visible(text: &str, is_kept: impl Fn(char) -> bool) -> Markup {
    let is_replaced = |c: char| text::is_invisible(c) && !is_kept(c);
    let mut markup = String::with_capacity(text.len());
    // Each part ends with a character to replace; only the last may have none.
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

/// A long name, which may be broken before capitals and after punctuation.
pub(super) fn word(text: &str) -> Markup {
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

/// A value, or in its place what is said without one.
pub(super) fn or_none(value: Option<Markup>, none: &str) -> Markup {
    value.unwrap_or_else(|| html! { span .none { (none) } })
}

/// A time, to the second.
pub(super) fn time(ms: Option<u64>) -> Markup {
    html! { @match ms {
        Some(ms) => time datetime=(rfc3339(ms)) { (text::at(Some(ms)).trim_end_matches('Z')) },
        None => span .none { "–" },
    } }
}

/// How long ago a time was.
pub(super) fn ago(ms: u64) -> String {
    format!("{} ago", text::duration(Machine.now_ms().saturating_sub(ms).max(1_000)))
}

/// Status and outcome; the class says what kind of failure it was.
pub(super) fn outcome(outcome: Option<&str>, status: Option<u16>) -> Markup {
    let kind = match status {
        Some(200..=299) => "good",
        Some(400..=499) => "client",
        Some(_) => "server",
        None => "silent",
    };
    html! { @match (outcome, status) {
        (None, None) => span .none { "none" },
        (outcome, status) => span class={ "outcome " (kind) } {
            @if let Some(status) = status { b { (status) } " " }
            @if let Some(outcome) = outcome { (word(outcome)) }
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
        assert_eq!(block("a\n\tb\r").into_string(), "a\n\tb<span class=\"sign\">U+000D</span>");
    }

    #[test]
    fn a_long_name_may_be_broken_where_its_words_begin() {
        assert_eq!(word("TopicNotFound<").into_string(), "Topic<wbr>Not<wbr>Found&lt;");
        assert_eq!(word("https://a.b/c").into_string(), "https://<wbr>a.<wbr>b/<wbr>c");
    }
}
