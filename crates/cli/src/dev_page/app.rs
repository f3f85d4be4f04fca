//! The state that the handlers share.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use tokio::sync::{Semaphore, watch};

use super::Setup;
use super::feed::{Event, Feed};
use super::run::{Id, Run};
use super::sources::Sources;
use crate::page::error::PageError;
use crate::page::guard::FormToken;
use crate::page::layout::Document;
use crate::page::markup::line;

/// The most pages that are open at once.
pub(super) const STREAMS_MAX: usize = 50;

/// The state, as handlers get it.
pub(super) type SharedApp = Arc<App>;

pub(super) struct App {
    pub(super) setup: Setup,
    pub(super) run: Run,
    feed: Mutex<Feed>,
    /// Counts the changes of the feed and of the subscriptions.
    pub(super) changes: watch::Sender<u64>,
    pub(super) sources: Sources,
    pub(super) token: FormToken,
    pub(super) client: reqwest::Client,
    pub(super) streams: Arc<Semaphore>,
}

/// The entry of the navigation that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Live,
    Publish,
    Subscriptions,
    Destinations,
}

impl App {
    pub(super) fn new(
        setup: Setup,
        run: Run,
        sources: Sources,
        token: FormToken,
        client: reqwest::Client,
    ) -> Self {
        Self {
            setup,
            run,
            feed: Mutex::default(),
            changes: watch::Sender::new(0),
            sources,
            token,
            client,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
        }
    }

    /// Reads the feed.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Feed) -> T) -> T {
        read(&self.feed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The event with this id.
    ///
    /// # Errors
    /// A page that says why there is none.
    pub(super) fn event(&self, id: &str) -> Result<Event, PageError> {
        let (title, why) = match self.run.read(id) {
            Id::Of(number) => match self.read(|feed| feed.event(number).cloned()) {
                Some(event) => return Ok(event),
                None => {
                    ("The event is not kept", "It was dropped, since newer ones took its place.")
                }
            },
            Id::OfAnotherRun => (
                "An event of an earlier run",
                "lastmile dev was restarted since, and events are kept in memory only.",
            ),
            Id::Invalid => (
                "No such event",
                "This is not the address of an event; the live page leads to those that are kept.",
            ),
        };
        Err(PageError::new(StatusCode::NOT_FOUND, title, why))
    }

    /// Changes the feed, and tells every open page.
    pub(super) fn change(&self, change: impl FnOnce(&mut Feed)) {
        change(&mut self.feed.lock().unwrap_or_else(PoisonError::into_inner));
        self.tell();
    }

    /// Tells every open page that something has changed.
    pub(super) fn tell(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// A page with its content.
    pub(super) fn page(&self, title: &str, section: Section, main: Markup) -> Response {
        self.page_with(title, section, main, StatusCode::OK)
    }

    /// The same with another status.
    pub(super) fn page_with(
        &self,
        title: &str,
        section: Section,
        main: Markup,
        status: StatusCode,
    ) -> Response {
        let mut nav = vec![
            ("/", "Live", section == Section::Live),
            ("/publish", "Publish", section == Section::Publish),
            ("/subscriptions", "Subscriptions", section == Section::Subscriptions),
            ("/destinations", "Destinations", section == Section::Destinations),
        ];
        let letters = self.setup.dead_letters.as_ref().map(|address| format!("{address}/"));
        nav.extend(letters.iter().map(|address| (address.as_str(), "Dead letters", false)));
        let problem = self.sources.problem();
        let document = Document {
            title,
            product: "dev",
            nav: &nav,
            aside: html! { span .container title="The ingress" { (line(&self.setup.ingress)) } },
            files: html! {
                link rel="stylesheet" href="/dev_page.css";
                script src="/dev_page.js" defer {}
            },
            main: html! {
                p #restarted .notice role="status" data-run=(self.run.as_str()) hidden {}
                p #problem .invalid role="status" hidden[problem.is_none()] {
                    span { (problem.unwrap_or_default()) } " "
                    a href="/subscriptions" { "Show them" }
                }
                (main)
            },
            refresh_ms: None,
            update_ms: None,
            period_ms: None,
            announced: "",
            footer: html! {
                "Times are UTC. Everything here is in memory, and gone when "
                code { "lastmile dev" } " ends; dead letters are files."
            },
            after: html! {},
        };
        document.respond(status)
    }

    /// The page of an error.
    pub(super) fn error_page(&self, error: &PageError) -> Response {
        let (status, title) = error.status_and_title();
        self.page_with(title, Section::Live, error.main("Live"), status)
    }
}
