//! The page of an error.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use deadletters::container::DeadLetterContainer;
use maud::html;

use super::layout::{NavSection, PageLayout};
use super::markup::{block, line};

/// What cannot be shown or done, and why.
#[derive(Debug, Clone)]
pub(super) struct PageError {
    status: StatusCode,
    title: String,
    why: String,
    /// The link to continue with: address and text.
    link: (String, &'static str),
}

impl PageError {
    pub(super) fn new(
        status: StatusCode,
        title: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        let link = ("/".to_owned(), "All dead letters");
        Self { status, title: title.into(), why: why.into(), link }
    }

    /// The same with another link.
    pub(super) fn with_link(self, href: String, text: &'static str) -> Self {
        Self { link: (href, text), ..self }
    }

    /// The container cannot be read or written.
    pub(super) fn storage(error: anyhow::Error) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "The container cannot be read", format!("{error:#}"))
    }

    /// A replay that could not be started.
    pub(super) fn not_sent(error: &anyhow::Error) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "Nothing was sent", format!("{error:#}"))
    }

    pub(super) fn respond(self, container: &DeadLetterContainer) -> Response {
        let main = html! {
            section .message {
                h1 { (line(&self.title)) }
                p .why { (block(&self.why)) }
                p { a .button href=(self.link.0) { (self.link.1) } }
            }
        };
        PageLayout::new(self.title, NavSection::DeadLetters, main).respond(container, self.status)
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
