//! Contains what all pages share: the guard of requests, the layout, safe markup, errors, and the
//! query of a URL.

pub(crate) mod error;
pub(super) mod guard;
pub(super) mod layout;
pub(super) mod markup;
pub(super) mod query;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::{MethodRouter, get};

/// The content type with which JavaScript files are served.
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Creates the routes of static files, which all pages use.
pub(super) fn fixed_files<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/style.css", fixed("text/css; charset=utf-8", include_str!("style.css")))
        .route("/page.js", fixed(SCRIPT, include_str!("page.js")))
        .route("/live.js", fixed(SCRIPT, include_str!("live.js")))
        .route("/icon.svg", fixed("image/svg+xml", include_str!("icon.svg")))
}

/// Creates a route that returns a file with this content type.
fn fixed<S: Clone + Send + Sync + 'static>(
    kind: &'static str,
    text: &'static str,
) -> MethodRouter<S> {
    get(async move || ([(CONTENT_TYPE, kind)], text))
}
