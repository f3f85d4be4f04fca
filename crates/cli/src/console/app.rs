//! Defines the state that all handlers share: the container, the deployment, and the allowed
//! actions.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use deadletters::DeadLetters;
use maud::Markup;

use super::access::Access;
use super::destinations::HealthCache;
use super::destinations::rates::RateSource;
use super::letters::caches::LetterCaches;
use super::live::Live;
use super::replay::running::RunningJobs;
use super::shell::error::PageError;
use super::shell::guard::FormToken;
use super::shell::layout::{PageLayout, Section};
use super::sources::Sources;
use crate::operations::destinations::deployment::Deployment;
use crate::operations::replay_sender::ReplayQueues;

/// The shared state, in the form in which axum passes it to handlers.
pub(super) type SharedConsole = Arc<Console>;

pub(super) struct Console {
    /// The name of the stack or container that the console shows, such as `stack live`.
    pub(super) name: String,
    /// The options that make a command show this stack or container, such as ` --stack live`.
    pub(super) options: String,
    pub(super) token: FormToken,
    pub(super) letters: DeadLetters,
    pub(super) caches: Arc<LetterCaches>,
    pub(super) jobs: RunningJobs,
    pub(super) queues: ReplayQueues,
    /// True if the console shows a stack.
    pub(super) is_stack: bool,
    /// The table and the subscriptions of the deployment; `None` if only a container is shown.
    pub(super) deployment: Option<Deployment>,
    pub(super) health: HealthCache,
    pub(super) sources: Sources,
    pub(super) rates: RateSource,
    pub(super) access: Access,
    /// True if pages must not show the contents of events.
    pub(super) hides_events: bool,
    /// The events and attempts of `lastmile dev`; `None` in other consoles.
    pub(super) live: Option<Live>,
}

impl Console {
    /// Responds with a page and status 200. `main` is the content of the page.
    pub(super) fn page(&self, title: &str, section: Section, main: Markup) -> Response {
        PageLayout::new(title, section, main).respond(self, StatusCode::OK)
    }

    /// Returns the options that name the deployment in `lastmile destinations`; `None` if
    /// options cannot name it.
    pub(super) fn destination_options(&self) -> Option<String> {
        match (self.is_stack, &self.live) {
            (true, _) => Some(self.options.clone()),
            (false, Some(_)) if self.options.is_empty() => Some(String::new()),
            (false, _) => None,
        }
    }

    /// Returns the live part of the console.
    ///
    /// # Errors
    /// A page that explains that only `lastmile dev` has a live part.
    pub(super) fn live(&self) -> Result<&Live, PageError> {
        self.live.as_ref().ok_or_else(|| {
            let why = "Only the console of `lastmile dev` shows live deliveries.";
            PageError::new(StatusCode::NOT_FOUND, "No such page", why)
        })
    }
}
