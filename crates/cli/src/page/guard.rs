//! Who may talk to the page, and what a browser may do with its answers.
//!
//! A page on this machine is within reach of every site that the same browser shows. Separate, and
//! in one place before all routes, so that no route can forget it.
//!
//! Promises: an answer goes only to who asks for this address by its own name (no rebinding of
//! foreign names); a request that changes something has come from a form of this page (its token,
//! new with every start, and what the browser says about the origin); no other site makes this
//! machine read the container; no browser runs, embeds, keeps or guesses the type of anything that
//! an event brought here.

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use subtle::ConstantTimeEq as _;

use super::frame::Problem;
use super::{Page, query};

/// The field of a form that holds the token.
pub(super) const TOKEN: &str = "token";
/// What a form of the page may weigh.
const FORM_MAX_BYTES: usize = 64 * 1_024;
/// Whence a browser says that a request comes.
/// <https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header>
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What goes with every answer.
const ALWAYS: [(HeaderName, HeaderValue); 5] = [
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
             form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
    ),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    // Without any referrer at all a browser would not tell the origin of a form either.
    (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

/// What the page knows itself by.
pub(super) struct Guard {
    hosts: Vec<String>,
    token: String,
}

impl Guard {
    /// The guard of this port; the chances make its token.
    pub(super) fn new(port: u16, chances: [u32; 8]) -> Self {
        let mut hosts: Vec<String> =
            ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}")).into();
        if port == 80 {
            hosts.extend(["127.0.0.1", "localhost"].map(ToOwned::to_owned));
        }
        Self { hosts, token: chances.map(|chance| format!("{chance:08x}")).concat() }
    }

    /// What the forms of the page carry.
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// Whether a request asks for this page by its name.
    fn knows(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        let known = |host: &str| self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
        let mut named = headers.get_all(HOST).iter();
        let host = named.next().and_then(|host| host.to_str().ok());
        let absolute = uri.authority().is_none_or(|authority| known(authority.as_str()));
        host.is_some_and(known) && named.next().is_none() && absolute
    }

    /// Whether nothing says that a request comes from elsewhere.
    fn is_own(&self, headers: &HeaderMap) -> bool {
        let own = |origin: &str| self.hosts.iter().any(|host| origin == format!("http://{host}"));
        says(headers, &ORIGIN, own) && says(headers, &FETCH_SITE, |site| site == "same-origin")
    }

    fn takes(&self, token: &str) -> bool {
        bool::from(token.as_bytes().ct_eq(self.token.as_bytes()))
    }
}

/// Whether a browser would show what a GET brings to the person who asked for it: by the page
/// itself or by hand. An image on another site asks too, and what is read for it is read for
/// nothing.
fn is_asked_for(headers: &HeaderMap) -> bool {
    says(headers, &FETCH_SITE, |site| matches!(site, "same-origin" | "none"))
}

/// Whether a header says what is right, wherever it stands.
fn says(headers: &HeaderMap, name: &HeaderName, right: impl Fn(&str) -> bool) -> bool {
    headers.get_all(name).iter().all(|value| value.to_str().is_ok_and(&right))
}

/// Stands before every route.
pub(super) async fn watch(State(page): State<Page>, request: Request, next: Next) -> Response {
    let mut response = match admit(&page, request).await {
        Ok(request) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        response = problem.answer(&page);
    }
    for (name, value) in ALWAYS {
        response.headers_mut().insert(name, value);
    }
    response
}

async fn admit(page: &Page, request: Request) -> Result<Request, Problem> {
    let guard = &page.guard;
    if !guard.knows(request.headers(), request.uri()) {
        let why = "This page answers only to the address that it was started with.";
        return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "Another host", why));
    }
    let refused = |why: &str| Problem::new(StatusCode::FORBIDDEN, "Not from this page", why);
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        let why =
            "Another site asked for this, and nothing was read. From here it can be asked for.";
        return if is_asked_for(request.headers()) { Ok(request) } else { Err(refused(why)) };
    }
    if !guard.is_own(request.headers()) {
        return Err(refused("The request came from another site. Nothing was done."));
    }
    let (parts, body) = request.into_parts();
    let too_large = |_| {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "Too large",
            "No form of this page is so large.",
        )
    };
    let body = to_bytes(body, FORM_MAX_BYTES).await.map_err(too_large)?;
    let token = query::pairs(&body).into_iter().find(|(name, _)| name == TOKEN);
    if !token.is_some_and(|(_, token)| guard.takes(&token)) {
        return Err(refused(
            "The form is not one of this start of the page. Nothing was done; load the page again, and send it anew.",
        ));
    }
    Ok(Request::from_parts(parts, Body::from(body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let mut headers = HeaderMap::new();
        lines.iter().map(pair).for_each(|(name, value)| _ = headers.append(name, value));
        headers
    }

    #[test]
    fn only_its_own_names_are_known_and_only_one_at_a_time() {
        let guard = Guard::new(9181, [0; 8]);
        let here = Uri::from_static("/");
        for (lines, known) in [
            (&[("host", "127.0.0.1:9181")][..], true),
            (&[("host", "LOCALHOST:9181")], true),
            (&[("host", "127.0.0.1")], false),
            (&[("host", "rebound.example.com:9181")], false),
            (&[("host", "127.0.0.1:9181"), ("host", "a")], false),
            (&[], false),
        ] {
            assert_eq!(guard.knows(&headers(lines), &here), known, "{lines:?}");
        }
        let there = Uri::from_static("http://a.example.com/");
        assert!(!guard.knows(&headers(&[("host", "127.0.0.1:9181")]), &there));
        assert!(Guard::new(80, [0; 8]).knows(&headers(&[("host", "localhost")]), &here));
    }

    #[test]
    fn what_a_browser_says_about_the_origin_has_to_be_right() {
        let guard = Guard::new(9181, [0; 8]);
        for (lines, own) in [
            (&[][..], true),
            (&[("origin", "http://127.0.0.1:9181"), ("sec-fetch-site", "same-origin")], true),
            (&[("origin", "http://localhost:9181")], true),
            (&[("origin", "https://127.0.0.1:9181")], false),
            (&[("origin", "null")], false),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
        ] {
            assert_eq!(guard.is_own(&headers(lines)), own, "{lines:?}");
        }
    }

    #[test]
    fn what_another_site_asks_for_is_not_asked_for_by_a_person() {
        for (lines, asked_for) in [
            (&[][..], true),
            (&[("sec-fetch-site", "none")], true),
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")], false),
        ] {
            assert_eq!(is_asked_for(&headers(lines)), asked_for, "{lines:?}");
        }
    }

    #[test]
    fn a_token_is_made_of_all_chances_and_no_other_is_taken() {
        let guard = Guard::new(9181, [1, 2, 3, 4, 5, 6, 7, u32::MAX]);
        assert_eq!(guard.token().len(), 64);
        assert!(guard.takes(guard.token()));
        for token in ["", "0", &guard.token()[1..], &guard.token().replace('f', "e")] {
            assert!(!guard.takes(token), "{token}");
        }
    }
}
