//! Which requests the page accepts, and what a browser may do with its responses.
//!
//! Every site that the same browser shows can send requests to a page on this machine. Which of them
//! are refused is the rule of all local servers (`local::guard`). Separate, and in one place before
//! all routes, so that no route can forget what this page adds to it.
//!
//! Promises: no other site makes this machine read the container; a request that changes something
//! comes from a form of this page (its token, new with every start); no browser runs, frames, caches
//! or guesses the type of anything that comes from an event.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use deadletters::container::DeadLetterContainer;
use local::guard::{Hosts, Refusal};
use maud::{Markup, html};
use subtle::ConstantTimeEq as _;

use super::error::PageError;
use super::query;

/// The field of a form that holds the token.
pub(crate) const TOKEN: &str = "token";
/// The title of a refusal.
const NOT_FROM_HERE: &str = "Not from this page";
/// The most that the body of a form may have.
const FORM_MAX_BYTES: usize = 64 * 1_024;
/// The headers of every response.
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
             form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
    ),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    // With `no-referrer` a browser would send `Origin: null` with a form.
    (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    // For browsers that do not know `frame-ancestors`.
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

/// The guard of the page.
pub(super) struct Guard {
    /// It is shown around errors.
    pub(super) container: DeadLetterContainer,
    pub(super) token: FormToken,
}

/// The token of the forms of a page, new with every start.
pub(crate) struct FormToken(String);

impl FormToken {
    /// A token made of random numbers.
    pub(crate) fn new(random: [u32; 8]) -> Self {
        Self(random.map(|number| format!("{number:08x}")).concat())
    }

    /// The field of a form that holds it.
    pub(crate) fn field(&self) -> Markup {
        html! { input type="hidden" name=(TOKEN) value=(self.0); }
    }

    fn is_token(&self, token: &str) -> bool {
        // In constant time: one that stops early tells how much of a guess is right.
        bool::from(token.as_bytes().ct_eq(self.0.as_bytes()))
    }
}

/// Checks a request before its route, and adds the headers to its response.
pub(super) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let accepted = accept(&guard.token, FORM_MAX_BYTES, request).await;
    answer(accepted, next, |error| error.respond(&guard.container)).await
}

/// The response to a request, if it was accepted, with an error as a page and with the headers of every
/// response.
pub(crate) async fn answer(
    accepted: Result<Request, PageError>,
    next: Next,
    error_page: impl FnOnce(PageError) -> Response,
) -> Response {
    let mut response = match accepted {
        Ok(request) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    if let Some(error) = response.extensions_mut().remove::<PageError>() {
        response = error_page(error);
    }
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, value);
    }
    response
}

/// Accepts a request of this page; one that changes something only with the token of its forms, and with a
/// body of at most so many bytes.
pub(crate) async fn accept(
    token: &FormToken,
    form_max_bytes: usize,
    request: Request,
) -> Result<Request, PageError> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let checked = Hosts::default().check(request.headers(), request.uri());
    checked.map_err(|refusal| not_from_here(refusal, is_read))?;
    if is_read {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    let too_large = |_| {
        PageError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "Too large",
            "No form of this page is that large.",
        )
    };
    // The token is inside the form, so the body is read here and given on to the route.
    let body = to_bytes(body, form_max_bytes).await.map_err(too_large)?;
    let given = query::pairs(&body).into_iter().find(|(name, _)| name == TOKEN);
    if !given.is_some_and(|(_, given)| token.is_token(&given)) {
        let why = "The form is from before the page was restarted. Nothing was done; reload the page and try again.";
        return Err(PageError::new(StatusCode::FORBIDDEN, NOT_FROM_HERE, why));
    }
    Ok(Request::from_parts(parts, Body::from(body)))
}

fn not_from_here(refusal: Refusal, is_read: bool) -> PageError {
    let (title, why) = match (refusal.status, is_read) {
        (StatusCode::FORBIDDEN, true) => (
            NOT_FROM_HERE,
            "Another site requested this page, so nothing was read. Open it from here instead.",
        ),
        (StatusCode::FORBIDDEN, false) => {
            (NOT_FROM_HERE, "The request came from another site. Nothing was done.")
        }
        _ => return PageError::new(refusal.status, "Another host", &refusal.text),
    };
    PageError::new(refusal.status, title, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_of_all_random_numbers_and_no_other_is_accepted() {
        let token = FormToken::new([1, 2, 3, 4, 5, 6, 7, u32::MAX]);
        assert_eq!(token.0.len(), 64);
        assert!(token.is_token(&token.0));
        for other in ["", "0", token.0.trim_start_matches('0'), &token.0.replace('f', "e")] {
            assert!(!token.is_token(other), "{other}");
        }
    }
}
