//! Renders the layout of every page around its content.

use adapters::machine::Machine;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use delivery::ports::Clock as _;
use delivery::time::duration::SECOND_MS;
use maud::{DOCTYPE, Markup, html};

use super::super::app::Console;
use super::markup::line;
use crate::terminal::text;

/// The time that scripts add to the period of an [`UpdateSchedule`] before they update a page.
/// Cached data has not yet expired at the exact end of the period.
const UPDATE_MARGIN_MS: u64 = 200;
/// The minimum wait before scripts update a page.
const UPDATE_MIN_MS: u64 = 2 * SECOND_MS;

/// The entry of the navigation that is highlighted on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::console) enum Section {
    Home,
    DeadLetters,
    Destinations,
    Subscriptions,
    Replays,
    Live,
    Publish,
}

impl Section {
    const ALL: [Self; 7] = [
        Self::Home,
        Self::DeadLetters,
        Self::Destinations,
        Self::Subscriptions,
        Self::Replays,
        Self::Live,
        Self::Publish,
    ];

    /// Returns the path and the label of the entry.
    const fn entry(self) -> (&'static str, &'static str) {
        match self {
            Self::Home => ("/", "Home"),
            Self::DeadLetters => ("/letters", "Dead letters"),
            Self::Destinations => ("/destinations", "Destinations"),
            Self::Subscriptions => ("/subscriptions", "Subscriptions"),
            Self::Replays => ("/jobs", "Replays"),
            Self::Live => ("/live", "Live"),
            Self::Publish => ("/publish", "Publish"),
        }
    }

    /// Returns true if only the console of `lastmile dev` has this page.
    const fn is_live(self) -> bool {
        matches!(self, Self::Live | Self::Publish)
    }
}

/// The content of a page, and the settings of its layout.
pub(in crate::console) struct PageLayout {
    pub(in crate::console) title: String,
    pub(in crate::console) section: Section,
    pub(in crate::console) main: Markup,
    /// The equivalent command, without the name of the program.
    pub(in crate::console) command: Option<String>,
    /// The interval at which the page refreshes while a job, delivery or reading is in progress.
    pub(in crate::console) refresh_ms: Option<u64>,
    /// The state of a job or a reading, such as `Sending` or `Done`. Screen readers announce a
    /// change of this text. Empty on pages without a job or a reading.
    pub(in crate::console) status: &'static str,
    /// The number of results, which screen readers announce when it changes.
    pub(in crate::console) announcement: String,
    /// The schedule by which scripts update the page. Without scripts, the page does not change
    /// while a person reads.
    pub(in crate::console) updates: Option<UpdateSchedule>,
}

/// The time when the data of a page was read, and the interval at which it is read again.
#[derive(Debug, Clone, Copy)]
pub(in crate::console) struct UpdateSchedule {
    pub(in crate::console) read_ms: u64,
    pub(in crate::console) period_ms: u64,
}

impl UpdateSchedule {
    /// Returns the time until the next update, in milliseconds. The next update is due
    /// [`UPDATE_MARGIN_MS`] after the period ends, but not before [`UPDATE_MIN_MS`] have passed.
    fn next_ms(self, now_ms: u64) -> u64 {
        let left_ms = self.read_ms.saturating_add(self.period_ms).saturating_sub(now_ms);
        // A request at the exact end of the period would still return the old data.
        left_ms.saturating_add(UPDATE_MARGIN_MS).max(UPDATE_MIN_MS)
    }
}

impl PageLayout {
    pub(in crate::console) fn new(
        title: impl Into<String>,
        section: Section,
        main: Markup,
    ) -> Self {
        Self {
            title: title.into(),
            section,
            main,
            command: None,
            refresh_ms: None,
            status: "",
            announcement: String::new(),
            updates: None,
        }
    }

    /// Renders the whole document, and responds with it.
    pub(in crate::console) fn respond(self, console: &Console, status: StatusCode) -> Response {
        let update_ms = self.updates.map(|updates| updates.next_ms(Machine.now_ms()));
        let announced = if self.status.is_empty() { &self.announcement } else { self.status };
        let document = html! {
            (DOCTYPE)
            html lang="en" {
                (head(console, &self.title, self.refresh_ms))
                body {
                    a .skip href="#main" { "Skip to the content" }
                    (top(console, self.section))
                    main #main tabindex="-1" data-refresh-ms=[self.refresh_ms.or(update_ms)]
                        data-period-ms=[self.updates.map(|updates| updates.period_ms)] data-status=(announced) {
                        (problems(console))
                        (self.main)
                    }
                    p #announced .unseen role="status" {}
                    (footer(console, self.command.as_deref()))
                    (keys())
                }
            }
        };
        let kind = [(CONTENT_TYPE, "text/html; charset=utf-8")];
        (status, kind, document.into_string()).into_response()
    }
}

fn head(console: &Console, title: &str, refresh_ms: Option<u64>) -> Markup {
    html! { head {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        title { (line(title)) " · lastmile" }
        link rel="icon" href="/icon.svg" type="image/svg+xml";
        link rel="stylesheet" href="/style.css";
        script src="/page.js" defer {}
        @if console.live.is_some() { script src="/live.js" defer {} }
        // With scripts, page.js refreshes the page and keeps focus and scroll position.
        @if let Some(refresh_ms) = refresh_ms {
            noscript { meta http-equiv="refresh" content=(refresh_ms.div_ceil(1_000)); }
        }
    } }
}

fn top(console: &Console, section: Section) -> Markup {
    let is_there = |page: &Section| console.live.is_some() || !page.is_live();
    html! { header .top {
        a .brand href="/" { (logo()) span { "lastmile" } }
        nav aria-label="Pages" {
            @for (page, (href, text)) in
                Section::ALL.into_iter().filter(is_there).map(|page| (page, page.entry()))
            {
                a href=(href) aria-current=[(page == section).then_some("page")] { (text) }
            }
        }
        span .container title="Data source of this console" { (line(&console.name)) }
    } }
}

/// Renders notices about errors in the subscriptions, and about a restart of `lastmile dev`.
/// Scripts keep both up to date.
fn problems(console: &Console) -> Markup {
    let problem = console.sources.problem();
    html! { @if let Some(live) = &console.live {
        p #restarted .notice role="status" data-run=(live.run.as_str()) hidden {}
        p #problem .invalid role="status" hidden[problem.is_none()] {
            span { (problem.unwrap_or_default()) } " "
            a href="/subscriptions" { "Show them" }
        }
    } }
}

fn footer(console: &Console, command: Option<&str>) -> Markup {
    html! { footer {
        @if let Some(command) = command {
            p .command { "Command line: " code { "lastmile " (line(command)) } }
        }
        "Times are " span data-zone { "UTC" } ". "
        button .link type="button" data-script data-switch-zone hidden { "Show local times" } " "
        span { (text::counted(console.letters.container.requests(), "storage request")) " so far." }
        " " button .link type="button" data-script data-show-keys hidden { "Keyboard shortcuts (?)" }
    } }
}

/// Responds with the page that is shown while a container is read for the first time. The page
/// contains the number of storage requests so far.
pub(in crate::console) fn reading(console: &Console, requests: u64) -> Response {
    let main = html! { section .message {
        h1 { "Reading the dead letters" }
        p {
            (text::counted(requests, "storage request"))
            " so far. This page refreshes automatically."
        }
        progress aria-label="Reading" {}
    } };
    let page = PageLayout::new("Reading", Section::DeadLetters, main);
    let page =
        PageLayout { refresh_ms: Some(SECOND_MS), status: "Reading the dead letters", ..page };
    page.respond(console, StatusCode::OK)
}

/// Renders the list of keys that page.js handles. The key `?` opens the list.
fn keys() -> Markup {
    let keys = [
        ("/", "go to the search box"),
        ("j k", "next and previous dead letter"),
        ("Enter", "open the dead letter"),
        ("x", "select the dead letter for a replay"),
        ("u", "back to the list"),
        ("?", "show this help"),
    ];
    html! { dialog #keys aria-labelledby="keys-title" {
        h2 #keys-title { "Keys" }
        dl { @for (key, description) in keys { div {
            dt { @for key in key.split(' ') { kbd { (key) } " " } }
            dd { (description) }
        } } }
        label .inline { input type="checkbox" data-use-keys checked; " Enable single-key shortcuts" }
        div .buttons { button type="button" data-close-keys { "Close" } }
    } }
}

/// Renders the logo of the program: an envelope.
fn logo() -> Markup {
    html! {
        svg .logo viewBox="0 0 24 24" aria-hidden="true" focusable="false" {
            path d="M3 6.5h18v11H3z M3 7l9 6.5L21 7" {}
        }
    }
}
