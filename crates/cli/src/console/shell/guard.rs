//! Checks every request to the console, and sets the security headers of every response.
//!
//! Every site in the same browser can send requests to a page on this machine. `local::guard`
//! refuses such requests, for all local servers. The guard runs before all routes, so that no route
//! can omit its checks.
//!
//! Promises:
//!
//! - No other site can make this machine read the container.
//! - A request that changes something comes from a form on these pages. The form contains a token,
//!   which is new at every start.
//! - No browser runs, frames, caches or sniffs content that comes from an event.

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use local::guard::{Hosts, Refusal};
use maud::{Markup, html};
use subtle::ConstantTimeEq as _;

use super::super::app::SharedConsole;
use super::super::live::publish::{EVENT_FORM_MAX_BYTES, PUBLISH};
use super::error::PageError;
use super::query;

/// The name of the form field with the token.
pub(in crate::console) const TOKEN: &str = "token";
/// The title of the page that refuses a request from another site.
const NOT_FROM_HERE: &str = "Request from another site";
/// The maximum number of bytes of a form. The form for events has a higher limit.
const FORM_MAX_BYTES: usize = 64 * 1_024;
/// The security headers of every response.
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
             form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
    ),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    // With `no-referrer`, browsers would send `Origin: null` with a form, which the guard refuses.
    (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    // `X-Frame-Options` is for browsers that do not support `frame-ancestors`.
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

/// The secret token that all forms contain. A new one is created at every start.
pub(in crate::console) struct FormToken(String);

impl FormToken {
    /// Creates a token from 256 random bits.
    pub(in crate::console) fn new(random: [u32; 8]) -> Self {
        Self(random.map(|number| format!("{number:08x}")).concat())
    }

    /// Renders the hidden form field with the token.
    pub(in crate::console) fn field(&self) -> Markup {
        html! { input type="hidden" name=(TOKEN) value=(self.0); }
    }

    fn is_token(&self, token: &str) -> bool {
        // Compare in constant time, so that the duration does not reveal how many characters of a
        // guess are right.
        bool::from(token.as_bytes().ct_eq(self.0.as_bytes()))
    }
}

/// Checks a request before its route, renders an error as a page, and sets the headers of the
/// response.
pub(in crate::console) async fn check(
    State(console): State<SharedConsole>,
    request: Request,
    next: Next,
) -> Response {
    let form_max_bytes =
        if request.uri().path() == PUBLISH { EVENT_FORM_MAX_BYTES } else { FORM_MAX_BYTES };
    let mut response = match accept(&console.token, form_max_bytes, request).await {
        Ok(request) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    let error = response.extensions_mut().remove::<PageError>();
    // axum responds with plain text if a path or a form is invalid, as in /letters/%ff.
    let error = error.or_else(|| unreadable(&response));
    if let Some(error) = error {
        response = error.respond(&console);
    }
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, value);
    }
    response
}

/// Returns the page that replaces an error response in plain text; `None` for any other response.
fn unreadable(response: &Response) -> Option<PageError> {
    let (status, content_type) = (response.status(), response.headers().get(CONTENT_TYPE)?);
    let is_text = content_type.as_bytes().starts_with(b"text/plain");
    let why = "The address or the form is not valid. Go back, and use a link of a page.";
    (status.is_client_error() && is_text).then(|| PageError::new(status, "Invalid request", why))
}

/// Refuses requests from other sites. A request that changes something also needs the token, and a
/// body of at most `form_max_bytes`.
async fn accept(
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
            "The request is larger than any form of the console.",
        )
    };
    // The token is in the form, so read the body here, and pass it on to the route.
    let body = to_bytes(body, form_max_bytes).await.map_err(too_large)?;
    let given = query::pairs(&body).into_iter().find(|(name, _)| name == TOKEN);
    if !given.is_some_and(|(_, given)| token.is_token(&given)) {
        let why = "The form was opened before the console was restarted. Nothing was changed; \
                   reload the page and try again.";
        return Err(PageError::new(StatusCode::FORBIDDEN, NOT_FROM_HERE, why));
    }
    Ok(Request::from_parts(parts, Body::from(body)))
}

fn not_from_here(refusal: Refusal, is_read: bool) -> PageError {
    let (title, why) = match (refusal.status, is_read) {
        (StatusCode::FORBIDDEN, true) => (
            NOT_FROM_HERE,
            "Another site requested this page, so it was blocked. Open the page from here instead.",
        ),
        (StatusCode::FORBIDDEN, false) => {
            (NOT_FROM_HERE, "The request came from another site. Nothing was changed.")
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
