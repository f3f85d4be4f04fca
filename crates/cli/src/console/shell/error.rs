//! Renders errors as pages.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::html;

use super::super::app::Console;
use super::layout::{PageLayout, Section};
use super::markup::{line, message};
use crate::terminal::advice::chain;

/// An error for the user: the failed action, and the reason.
#[derive(Debug, Clone)]
pub(in crate::console) struct PageError {
    status: StatusCode,
    title: String,
    why: String,
    /// The address and the text of the link to continue with; `None` links to the first page.
    link: Option<(String, &'static str)>,
}

impl PageError {
    pub(in crate::console) fn new(
        status: StatusCode,
        title: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self { status, title: title.into(), why: why.into(), link: None }
    }

    /// Sets the address and the text of the link below the error.
    pub(in crate::console) fn with_link(self, href: String, text: &'static str) -> Self {
        Self { link: Some((href, text)), ..self }
    }

    /// Creates the error for a container that cannot be read or written.
    pub(in crate::console) fn storage(error: anyhow::Error) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "The container cannot be read", chain(&error))
    }

    /// Creates the error for a dismissal that could not be stored.
    pub(in crate::console) fn not_recorded(error: anyhow::Error) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "Nothing was dismissed", chain(&error))
    }

    pub(in crate::console) fn not_sent(error: &anyhow::Error) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "Nothing was sent", chain(error))
    }

    /// Renders the error as a page.
    pub(super) fn respond(self, console: &Console) -> Response {
        let (href, text) = self.link.unwrap_or_else(|| ("/".to_owned(), "Home"));
        let main = html! {
            section .message {
                h1 { (line(&self.title)) }
                p .why { (message(&self.why)) }
                p { a .button href=(href) { (text) } }
            }
        };
        PageLayout::new(self.title, Section::Home, main).respond(console, self.status)
    }
}

/// Attaches the error to the response. The guard renders the page, because it has the data for the
/// layout.
impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
