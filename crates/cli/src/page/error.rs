//! The page of an error.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use deadletters::container::DeadLetterContainer;
use maud::{Markup, html};

use super::layout::{NavSection, PageLayout};
use super::markup::{block, line};
use crate::advice::chain;

/// What cannot be shown or done, and why.
#[derive(Debug, Clone)]
pub(crate) struct PageError {
    status: StatusCode,
    title: String,
    why: String,
    /// The link to continue with, if it is not the first page: address and text.
    link: Option<(String, &'static str)>,
}

impl PageError {
    pub(crate) fn new(
        status: StatusCode,
        title: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self { status, title: title.into(), why: why.into(), link: None }
    }

    /// The same with another link.
    pub(crate) fn with_link(self, href: String, text: &'static str) -> Self {
        Self { link: Some((href, text)), ..self }
    }

    /// The container cannot be read or written.
    pub(super) fn storage(error: anyhow::Error) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "The container cannot be read", chain(&error))
    }

    /// A replay that could not be started.
    pub(super) fn not_sent(error: &anyhow::Error) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "Nothing was sent", chain(error))
    }

    pub(super) fn respond(self, container: &DeadLetterContainer) -> Response {
        let (status, main) = (self.status, self.main("All dead letters"));
        PageLayout::new(self.title, NavSection::DeadLetters, main).respond(container, status)
    }

    /// Its status and its title.
    pub(crate) fn status_and_title(&self) -> (StatusCode, &str) {
        (self.status, &self.title)
    }

    /// Its content, with a link to the first page if there is no other.
    pub(crate) fn main(&self, first_page: &'static str) -> Markup {
        let first_page = ("/".to_owned(), first_page);
        let (href, text) = self.link.as_ref().unwrap_or(&first_page);
        html! {
            section .message {
                h1 { (line(&self.title)) }
                p .why { (block(&self.why)) }
                p { a .button href=(href) { (text) } }
            }
        }
    }
}

/// The error of a handler travels to the guard, which knows the container for the page around it.
impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
