//! What every page has around it, and what others wrote made visible.
//!
//! Events and responses come from anywhere. maud escapes what is put in, so nothing of them is
//! markup; here their control characters, and those that turn or hide text, become signs that can
//! be seen.

use adapters::machine::Machine;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use delivery::ports::Clock as _;
use delivery::time::moment::rfc3339;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::Page;
use super::query::Wrong;
use crate::letters::text;

/// Where a reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Letters,
    Jobs,
}

/// A page as it is answered.
pub(super) struct Sheet {
    pub(super) title: String,
    pub(super) place: Place,
    pub(super) main: Markup,
    /// How soon it is worth asking again, while something goes on.
    pub(super) again_ms: Option<u64>,
    /// What goes on, for who does not see it; told when it changes.
    pub(super) status: &'static str,
}

impl Sheet {
    pub(super) fn new(title: impl Into<String>, place: Place, main: Markup) -> Self {
        Self { title: title.into(), place, main, again_ms: None, status: "" }
    }

    /// The whole document.
    pub(super) fn answer(self, page: &Page, status: StatusCode) -> Response {
        let name = &page.letters.place().name;
        let current = |place| (self.place == place).then_some("page");
        let document = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (line(&self.title)) " · lastmile" }
                    link rel="icon" href="/icon.svg" type="image/svg+xml";
                    link rel="stylesheet" href="/style.css";
                    script src="/page.js" defer {}
                    @if let Some(again_ms) = self.again_ms {
                        noscript { meta http-equiv="refresh" content=(again_ms.div_ceil(1_000)); }
                    }
                }
                body {
                    a .skip href="#main" { "Skip to the content" }
                    header .top {
                        a .brand href="/" { (mark()) span { "lastmile" } span .of { "dead letters" } }
                        nav aria-label="Pages" {
                            a href="/" aria-current=[current(Place::Letters)] { "Letters" }
                            a href="/jobs" aria-current=[current(Place::Jobs)] { "Replays" }
                        }
                        span .container title="The container" { (line(name)) }
                    }
                    main #main tabindex="-1" data-again-ms=[self.again_ms] data-status=(self.status) { (self.main) }
                    p #status .unseen role="status" {}
                    footer {
                        "Times are UTC. Letters are never changed. "
                        span { (text::grouped(page.letters.place().requests())) " storage requests so far." }
                    }
                }
            }
        };
        let kind = [(CONTENT_TYPE, "text/html; charset=utf-8")];
        (status, kind, document.into_string()).into_response()
    }
}

/// The sign of the program: a letter on its way.
fn mark() -> Markup {
    html! {
        svg .logo viewBox="0 0 24 24" aria-hidden="true" focusable="false" {
            path d="M3 6.5h18v11H3z M3 7l9 6.5L21 7" {}
        }
    }
}

/// Something that cannot be shown or done, and why.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    status: StatusCode,
    title: String,
    why: String,
    /// Whereto one may go on.
    back: (String, &'static str),
}

impl Problem {
    pub(super) fn new(
        status: StatusCode,
        title: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self { status, title: title.into(), why: why.into(), back: ("/".to_owned(), "All letters") }
    }

    /// The same with another way on.
    pub(super) fn back(self, href: String, what: &'static str) -> Self {
        Self { back: (href, what), ..self }
    }

    /// A field of an address or a form.
    pub(super) fn field(wrong: &Wrong) -> Self {
        let title = if wrong.field.is_empty() {
            "A filter cannot be used".to_owned()
        } else {
            format!("The field {} cannot be used", wrong.field)
        };
        Self::new(StatusCode::BAD_REQUEST, title, wrong.why.clone())
    }

    /// The container does not do as it should.
    pub(super) fn storage(error: &anyhow::Error) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "The container cannot be read", format!("{error:#}"))
    }

    pub(super) fn answer(self, page: &Page) -> Response {
        let main = html! {
            section .notice {
                h1 { (line(&self.title)) }
                p .why { (block(&self.why)) }
                p { a .button href=(self.back.0) { (self.back.1) } }
            }
        };
        Sheet::new(self.title, Place::Letters, main).answer(page, self.status)
    }
}

/// What a handler cannot do is told by the guard, who knows the page around it.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// What others wrote, on one line.
pub(super) fn line(text: &str) -> Markup {
    visible(text, |_| false)
}

/// What others wrote, with its line ends and tabs.
pub(super) fn block(text: &str) -> Markup {
    visible(text, |c| matches!(c, '\n' | '\t'))
}

fn visible(text: &str, is_kept: impl Fn(char) -> bool) -> Markup {
    let mut markup = String::with_capacity(text.len());
    let mut plain_from = 0;
    for (at, c) in text.char_indices().filter(|(_, c)| is_unseen(*c) && !is_kept(*c)) {
        let shown =
            html! { (text[plain_from..at]) span .sign { "U+" (format!("{:04X}", u32::from(c))) } };
        markup.push_str(&shown.0);
        plain_from = at + c.len_utf8();
    }
    markup.push_str(&html! { (text[plain_from..]) }.0);
    PreEscaped(markup)
}

/// Whether a character does something other than to be seen: controls, and what turns or hides its
/// neighbours.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{feff}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
}

/// A name in one word, which may be broken before its capitals and behind its marks.
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

/// A moment, to the second.
pub(super) fn moment(ms: Option<u64>) -> Markup {
    html! { @match ms {
        Some(ms) => time datetime=(rfc3339(ms)) { (text::at(Some(ms)).trim_end_matches('Z')) },
        None => span .none { "–" },
    } }
}

/// How long ago a moment was.
pub(super) fn ago(ms: u64) -> String {
    format!("{} ago", text::span(Machine.now_ms().saturating_sub(ms).max(1_000)))
}

/// Status and outcome as a mark: its class tells what kind of end it was.
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
    fn markup_is_escaped_and_what_cannot_be_seen_becomes_a_sign() {
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
