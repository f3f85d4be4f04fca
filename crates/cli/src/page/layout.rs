//! What every page has around its content.

use adapters::machine::Machine;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use deadletters::container::DeadLetterContainer;
use delivery::ports::Clock as _;
use delivery::time::duration::SECOND_MS;
use maud::{DOCTYPE, Markup, html};

use super::markup::line;
use crate::text;

/// How much later than needed a page is asked for again.
const UPDATE_MARGIN_MS: u64 = 200;
/// The least time between two updates.
const UPDATE_MIN_MS: u64 = 2 * SECOND_MS;

/// The entry of the navigation that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NavSection {
    DeadLetters,
    Replays,
}

/// A page with its content.
pub(super) struct PageLayout {
    pub(super) title: String,
    pub(super) section: NavSection,
    pub(super) main: Markup,
    /// How soon the page is refreshed, while something is under way.
    pub(super) refresh_ms: Option<u64>,
    /// What is under way, for screen readers; announced when it changes.
    pub(super) status: &'static str,
    /// How many there are, for screen readers; announced when it changes.
    pub(super) announcement: String,
    /// When scripts look for something new; without scripts nothing moves under a reader.
    pub(super) updates: Option<UpdateSchedule>,
}

/// When what a page shows was read, and how often it is read again.
#[derive(Debug, Clone, Copy)]
pub(super) struct UpdateSchedule {
    pub(super) read_ms: u64,
    pub(super) period_ms: u64,
}

impl UpdateSchedule {
    /// How soon the page is asked for again: when what was read is too old, or soon, while it is being
    /// read.
    fn next_ms(self, now_ms: u64) -> u64 {
        let left_ms = self.read_ms.saturating_add(self.period_ms).saturating_sub(now_ms);
        // A little later than that: a request at the same moment would still be shown the old one.
        left_ms.saturating_add(UPDATE_MARGIN_MS).max(UPDATE_MIN_MS)
    }
}

impl PageLayout {
    pub(super) fn new(title: impl Into<String>, section: NavSection, main: Markup) -> Self {
        Self {
            title: title.into(),
            section,
            main,
            refresh_ms: None,
            status: "",
            announcement: String::new(),
            updates: None,
        }
    }

    /// The whole document, as a response.
    pub(super) fn respond(self, container: &DeadLetterContainer, status: StatusCode) -> Response {
        let updates_ms = self.updates.map(|updates| updates.next_ms(Machine.now_ms()));
        let announced = if self.status.is_empty() { &self.announcement } else { self.status };
        let nav = [
            ("/", "Dead letters", self.section == NavSection::DeadLetters),
            ("/jobs", "Replays", self.section == NavSection::Replays),
        ];
        let document = Document {
            title: &self.title,
            product: "dead letters",
            nav: &nav,
            aside: html! { span .container title="The container" { (line(&container.name)) } },
            files: html! { script src="/page.js" defer {} },
            main: self.main,
            refresh_ms: self.refresh_ms,
            update_ms: updates_ms,
            period_ms: self.updates.map(|updates| updates.period_ms),
            announced,
            footer: html! {
                "Times are UTC. Dead letters are never changed. "
                span { (text::counted(container.requests(), "storage request")) " so far." }
                " " button .link type="button" data-script data-show-keys hidden { "Keys (?)" }
            },
            after: keys(),
        };
        document.respond(status)
    }
}

/// A whole document, of whichever of our pages.
pub(crate) struct Document<'a> {
    pub(crate) title: &'a str,
    /// What the page is about, beside the name of the program.
    pub(crate) product: &'a str,
    /// Address, text, and whether it is the entry that this page belongs to.
    pub(crate) nav: &'a [(&'a str, &'a str, bool)],
    /// At the other end of the navigation.
    pub(crate) aside: Markup,
    /// Scripts, and further style sheets.
    pub(crate) files: Markup,
    pub(crate) main: Markup,
    /// How soon the page is refreshed, while something is under way.
    pub(crate) refresh_ms: Option<u64>,
    /// How soon scripts look for something new; without scripts nothing moves under a reader.
    pub(crate) update_ms: Option<u64>,
    /// How often what it shows is read again.
    pub(crate) period_ms: Option<u64>,
    /// What is under way, or how many there are, for screen readers; announced when it changes.
    pub(crate) announced: &'a str,
    pub(crate) footer: Markup,
    /// Behind the footer: what scripts open.
    pub(crate) after: Markup,
}

impl Document<'_> {
    /// The document as a response.
    pub(crate) fn respond(self, status: StatusCode) -> Response {
        let document = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (line(self.title)) " · lastmile" }
                    link rel="icon" href="/icon.svg" type="image/svg+xml";
                    link rel="stylesheet" href="/style.css";
                    (self.files)
                    // With scripts page.js refreshes, and keeps focus and scroll position.
                    @if let Some(refresh_ms) = self.refresh_ms {
                        noscript { meta http-equiv="refresh" content=(refresh_ms.div_ceil(1_000)); }
                    }
                }
                body {
                    a .skip href="#main" { "Skip to the content" }
                    header .top {
                        a .brand href="/" { (logo()) span { "lastmile" } span .of { (self.product) } }
                        nav aria-label="Pages" {
                            @for (href, text, is_current) in self.nav {
                                a href=(href) aria-current=[is_current.then_some("page")] { (text) }
                            }
                        }
                        (self.aside)
                    }
                    main #main tabindex="-1" data-refresh-ms=[self.refresh_ms.or(self.update_ms)] data-period-ms=[self.period_ms]
                        data-status=(self.announced) { (self.main) }
                    p #announced .unseen role="status" {}
                    footer { (self.footer) }
                    (self.after)
                }
            }
        };
        let kind = [(CONTENT_TYPE, "text/html; charset=utf-8")];
        (status, kind, document.into_string()).into_response()
    }
}

/// The page while a container is read for the first time, after so many storage requests.
pub(super) fn reading(container: &DeadLetterContainer, requests: u64) -> Response {
    let main = html! { section .message {
        h1 { "Reading the dead letters" }
        p {
            (text::counted(requests, "storage request"))
            " so far. This page refreshes itself; nothing is read twice."
        }
        progress aria-label="Reading" {}
    } };
    let page = PageLayout::new("Reading", NavSection::DeadLetters, main);
    let page =
        PageLayout { refresh_ms: Some(SECOND_MS), status: "Reading the dead letters", ..page };
    page.respond(container, StatusCode::OK)
}

/// The keys that page.js understands; shown by `?`.
fn keys() -> Markup {
    let keys = [
        ("/", "to the search box"),
        ("j k", "the next and the previous dead letter"),
        ("Enter", "opens it"),
        ("x", "picks it for a replay"),
        ("u", "back to the list"),
        ("?", "shows this"),
    ];
    html! { dialog #keys aria-labelledby="keys-title" {
        h2 #keys-title { "Keys" }
        dl { @for (key, what) in keys { div {
            dt { @for key in key.split(' ') { kbd { (key) } " " } }
            dd { (what) }
        } } }
        label .inline { input type="checkbox" data-use-keys checked; " Use single keys" }
        div .buttons { button type="button" data-close-keys { "Close" } }
    } }
}

/// The logo of the program: an envelope.
fn logo() -> Markup {
    html! {
        svg .logo viewBox="0 0 24 24" aria-hidden="true" focusable="false" {
            path d="M3 6.5h18v11H3z M3 7l9 6.5L21 7" {}
        }
    }
}
