//! What every page has around its content.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use deadletters::container::DeadLetterContainer;
use delivery::time::duration::SECOND_MS;
use maud::{DOCTYPE, Markup, html};

use super::markup::line;
use crate::text;

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
}

impl PageLayout {
    pub(super) fn new(title: impl Into<String>, section: NavSection, main: Markup) -> Self {
        Self { title: title.into(), section, main, refresh_ms: None, status: "" }
    }

    /// The whole document, as a response.
    pub(super) fn respond(self, container: &DeadLetterContainer, status: StatusCode) -> Response {
        let current = |section| (self.section == section).then_some("page");
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
                    // With scripts page.js refreshes, and keeps focus and scroll position.
                    @if let Some(refresh_ms) = self.refresh_ms {
                        noscript { meta http-equiv="refresh" content=(refresh_ms.div_ceil(1_000)); }
                    }
                }
                body {
                    a .skip href="#main" { "Skip to the content" }
                    header .top {
                        a .brand href="/" { (logo()) span { "lastmile" } span .of { "dead letters" } }
                        nav aria-label="Pages" {
                            a href="/" aria-current=[current(NavSection::DeadLetters)] { "Dead letters" }
                            a href="/jobs" aria-current=[current(NavSection::Replays)] { "Replays" }
                        }
                        span .container title="The container" { (line(&container.name)) }
                    }
                    main #main tabindex="-1" data-refresh-ms=[self.refresh_ms] data-status=(self.status) { (self.main) }
                    p #status .unseen role="status" {}
                    footer {
                        "Times are UTC. Dead letters are never changed. "
                        span { (text::grouped(container.requests())) " storage requests so far." }
                    }
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
            (text::grouped(requests))
            " storage requests so far. This page refreshes itself; nothing is read twice."
        }
        progress aria-label="Reading" {}
    } };
    let page = PageLayout::new("Reading", NavSection::DeadLetters, main);
    let page =
        PageLayout { refresh_ms: Some(SECOND_MS), status: "Reading the dead letters", ..page };
    page.respond(container, StatusCode::OK)
}

/// The logo of the program: an envelope.
fn logo() -> Markup {
    html! {
        svg .logo viewBox="0 0 24 24" aria-hidden="true" focusable="false" {
            path d="M3 6.5h18v11H3z M3 7l9 6.5L21 7" {}
        }
    }
}
