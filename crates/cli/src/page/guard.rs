//! Which requests the page accepts, and what a browser may do with its responses.
//!
//! Every site that the same browser shows can send requests to a page on this machine. Separate,
//! and in one place before all routes, so that no route can forget it.
//!
//! Promises: only requests for this host name are answered (no DNS rebinding); a request that
//! changes something comes from a form of this page (its token, new with every start, and the
//! origin that the browser states); no other site makes this machine read the container; no browser
//! runs, frames, caches or guesses the type of anything that comes from an event.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use deadletters::container::DeadLetterContainer;
use subtle::ConstantTimeEq as _;

use super::error::PageError;
use super::query;

/// The field of a form that holds the token.
pub(super) const TOKEN: &str = "token";
/// The most that the body of a form may have.
const FORM_MAX_BYTES: usize = 64 * 1_024;
/// The relation of the site that made a request, as the browser states it.
/// <https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header>
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

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

/// The host names and the token of the page.
pub(super) struct Guard {
    container: DeadLetterContainer,
    hosts: Vec<String>,
    /// The token of the forms.
    pub(super) token: String,
}

impl Guard {
    /// The guard of this port, with a token made of random numbers. The container is shown around
    /// errors.
    pub(super) fn new(container: DeadLetterContainer, port: u16, random: [u32; 8]) -> Self {
        let mut hosts: Vec<String> =
            ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}")).into();
        // Browsers leave out the default port.
        if port == 80 {
            hosts.extend(["127.0.0.1", "localhost"].map(ToOwned::to_owned));
        }
        let token = random.map(|number| format!("{number:08x}")).concat();
        Self { container, hosts, token }
    }

    /// Whether a request is for a host name of this page.
    fn is_own_host(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        let known = |host: &str| self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
        // More than one is refused: it would be open which of them counts.
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        // The request line may name a host too, and it takes precedence (RFC 9112, 3.2.2).
        let absolute = uri.authority().is_none_or(|authority| known(authority.as_str()));
        host.is_some_and(known) && hosts.next().is_none() && absolute
    }

    /// Whether no header says that a request comes from another origin.
    fn is_own_origin(&self, headers: &HeaderMap) -> bool {
        let own = |origin: &str| self.hosts.iter().any(|host| origin == format!("http://{host}"));
        all_values(headers, &ORIGIN, own)
            && all_values(headers, &FETCH_SITE, |site| site == "same-origin")
    }

    fn is_token(&self, token: &str) -> bool {
        // In constant time: one that stops early tells how much of a guess is right.
        bool::from(token.as_bytes().ct_eq(self.token.as_bytes()))
    }
}

/// Whether a GET comes from this page or from a person, by the address bar or a bookmark. Another
/// site can send one too, for instance as an image; reading the container for it would be wasted.
fn is_from_person(headers: &HeaderMap) -> bool {
    all_values(headers, &FETCH_SITE, |site| matches!(site, "same-origin" | "none"))
}

/// Whether all values of a header are allowed; also when there is none.
fn all_values(headers: &HeaderMap, name: &HeaderName, is_allowed: impl Fn(&str) -> bool) -> bool {
    headers.get_all(name).iter().all(|value| value.to_str().is_ok_and(&is_allowed))
}

/// Checks a request before its route, and adds the headers to its response.
pub(super) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match accept(&guard, request).await {
        Ok(request) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    if let Some(error) = response.extensions_mut().remove::<PageError>() {
        response = error.respond(&guard.container);
    }
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, value);
    }
    response
}

async fn accept(guard: &Guard, request: Request) -> Result<Request, PageError> {
    if !guard.is_own_host(request.headers(), request.uri()) {
        let why = "This page can only be opened at the address that it was started with.";
        return Err(PageError::new(StatusCode::MISDIRECTED_REQUEST, "Another host", why));
    }
    let refused = |why: &str| PageError::new(StatusCode::FORBIDDEN, "Not from this page", why);
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        let why =
            "Another site requested this page, so nothing was read. Open it from here instead.";
        return if is_from_person(request.headers()) { Ok(request) } else { Err(refused(why)) };
    }
    if !guard.is_own_origin(request.headers()) {
        return Err(refused("The request came from another site. Nothing was done."));
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
    let body = to_bytes(body, FORM_MAX_BYTES).await.map_err(too_large)?;
    let token = query::pairs(&body).into_iter().find(|(name, _)| name == TOKEN);
    if !token.is_some_and(|(_, token)| guard.is_token(&token)) {
        return Err(refused(
            "The form is from before the page was restarted. Nothing was done; reload the page and try again.",
        ));
    }
    Ok(Request::from_parts(parts, Body::from(body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard_of(port: u16, random: [u32; 8]) -> Guard {
        let container = DeadLetterContainer::folder(".").unwrap();
        Guard::new(container, port, random)
    }

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let mut headers = HeaderMap::new();
        lines.iter().map(pair).for_each(|(name, value)| _ = headers.append(name, value));
        headers
    }

    #[test]
    fn only_its_own_host_names_are_accepted_and_only_one_at_a_time() {
        let guard = guard_of(9181, [0; 8]);
        let here = Uri::from_static("/");
        for (lines, is_own) in [
            (&[("host", "127.0.0.1:9181")][..], true),
            (&[("host", "LOCALHOST:9181")], true),
            (&[("host", "127.0.0.1")], false),
            (&[("host", "rebound.example.com:9181")], false),
            (&[("host", "127.0.0.1:9181"), ("host", "a")], false),
            (&[], false),
        ] {
            assert_eq!(guard.is_own_host(&headers(lines), &here), is_own, "{lines:?}");
        }
        let there = Uri::from_static("http://a.example.com/");
        assert!(!guard.is_own_host(&headers(&[("host", "127.0.0.1:9181")]), &there));
        assert!(guard_of(80, [0; 8]).is_own_host(&headers(&[("host", "localhost")]), &here));
    }

    #[test]
    fn the_origin_that_a_browser_states_has_to_be_its_own() {
        let guard = guard_of(9181, [0; 8]);
        for (lines, own) in [
            (&[][..], true),
            (&[("origin", "http://127.0.0.1:9181"), ("sec-fetch-site", "same-origin")], true),
            (&[("origin", "http://localhost:9181")], true),
            (&[("origin", "https://127.0.0.1:9181")], false),
            (&[("origin", "null")], false),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
        ] {
            assert_eq!(guard.is_own_origin(&headers(lines)), own, "{lines:?}");
        }
    }

    #[test]
    fn a_request_of_another_site_is_not_from_a_person() {
        for (lines, is_from_a_person) in [
            (&[][..], true),
            (&[("sec-fetch-site", "none")], true),
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")], false),
        ] {
            assert_eq!(is_from_person(&headers(lines)), is_from_a_person, "{lines:?}");
        }
    }

    #[test]
    fn a_token_is_made_of_all_random_numbers_and_no_other_is_accepted() {
        let guard = guard_of(9181, [1, 2, 3, 4, 5, 6, 7, u32::MAX]);
        assert_eq!(guard.token.len(), 64);
        assert!(guard.is_token(&guard.token));
        for token in ["", "0", guard.token.trim_start_matches('0'), &guard.token.replace('f', "e")]
        {
            assert!(!guard.is_token(token), "{token}");
        }
    }
}
