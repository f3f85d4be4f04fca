//! Decides which requests a server on this machine accepts.
//!
//! Every web page in a browser on this machine can send requests to local ports. After the host
//! name of the page resolves to 127.0.0.1 (DNS rebinding), the browser even treats the server as
//! part of the page's own site. Such a page could delete dead letters, purge queues and write
//! subscriptions. Separate, and before all routes, so that every server has the same
//! rule and no route can omit it.
//!
//! Promises: a request for the name of another host is refused. So is a request that the browser
//! marks as coming from another site. Programs send no origin, so AWS clients, curl and event
//! senders are not affected.
//!
//! Does not distinguish programs on this machine, because these servers have no login.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use http::header::{HOST, ORIGIN, X_CONTENT_TYPE_OPTIONS};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, StatusCode, Uri};

/// The names of this machine, which are accepted on any port, because a tunnel or a container may
/// use another port.
pub(crate) const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// Header in which the browser states how the requesting site relates to the server.
/// <https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header>
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The hosts for which a server accepts requests: this machine, and configured hosts.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    named: Vec<String>,
    any_address: bool,
}

/// The refusal of a request: a status, and a sentence that describes which requests are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status of the response: 421 if the request is for another host, 403 if it comes from
    /// another site.
    pub status: StatusCode,
    /// A sentence that describes which requests are accepted.
    pub text: String,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let headers = [(X_CONTENT_TYPE_OPTIONS, "nosniff")];
        (self.status, headers, format!("{}\n", self.text)).into_response()
    }
}

impl Hosts {
    /// Adds the host `name`, on any port.
    #[must_use]
    pub fn and(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        if !LOOPBACK.contains(&name.as_str()) {
            self.named.push(name);
        }
        self
    }

    /// Adds the address on which a server listens. If the server listens on all addresses, every IP
    /// address is accepted as host. DNS rebinding is still refused, because it needs a host name.
    #[must_use]
    pub fn and_address(self, address: IpAddr) -> Self {
        match address {
            _ if address.is_unspecified() => Self { any_address: true, ..self },
            IpAddr::V4(address) => self.and(address.to_string()),
            IpAddr::V6(address) => self.and(format!("[{address}]")),
        }
    }

    /// Makes `routes` refuse requests that this guard does not allow.
    pub fn guard(self, routes: Router) -> Router {
        routes.layer(from_fn_with_state(Arc::new(self), answer))
    }

    /// Checks the host of a request and, if a browser sent the request, the requesting site.
    ///
    /// # Errors
    /// Fails if the request is for another host, or from another site.
    pub fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        let host = self.check_host(headers, uri)?;
        let is_own = |origin: &str| {
            origin
                .strip_prefix("http://")
                .is_some_and(|authority| authority.eq_ignore_ascii_case(host))
        };
        // `none` means that a person used the address bar or a bookmark.
        let is_here = |site: &str| matches!(site, "same-origin" | "none");
        if all_values(headers, &ORIGIN, is_own) && all_values(headers, &FETCH_SITE, is_here) {
            return Ok(());
        }
        let text = format!(
            "requests from web pages of another origin are refused, and nothing was changed; the \
             origin must be http://{host}"
        );
        Err(Refusal { status: StatusCode::FORBIDDEN, text })
    }

    /// Checks only the host of a request, and returns its `Host` header. This is sufficient if each
    /// URL is a secret.
    ///
    /// # Errors
    /// Fails if the request is for another host.
    pub fn check_host<'a>(&self, headers: &'a HeaderMap, uri: &Uri) -> Result<&'a str, Refusal> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        let host = host.filter(|host| self.has(host));
        // The request line may name a host too, which takes precedence (RFC 9112, 3.2.2).
        let absolute = uri.authority().is_none_or(|authority| self.has(authority.as_str()));
        // Refuse several `Host` headers, because it would be ambiguous which one counts.
        match (host, hosts.next()) {
            (Some(host), None) if absolute => Ok(host),
            _ => Err(self.other_host()),
        }
    }

    fn has(&self, authority: &str) -> bool {
        let Ok(parsed) = authority.parse::<Authority>() else { return false };
        let name = parsed.host();
        // The parser accepts anything as a port, and a user name before an `@`.
        let has_port = parsed.port_u16().is_some_and(|port| authority == format!("{name}:{port}"));
        if !has_port && authority != name {
            return false;
        }
        let mut known = LOOPBACK.into_iter().chain(self.named.iter().map(String::as_str));
        known.any(|known| known.eq_ignore_ascii_case(name))
            || (self.any_address && is_address(name))
    }

    fn other_host(&self) -> Refusal {
        let known = LOOPBACK.into_iter().chain(self.named.iter().map(String::as_str));
        let mut known: Vec<&str> = known.collect();
        if self.any_address {
            known.push("any IP address");
        }
        let text = format!(
            "the request is for another host; the header Host must be one of: {}",
            known.join(", ")
        );
        Refusal { status: StatusCode::MISDIRECTED_REQUEST, text }
    }
}

fn is_address(host: &str) -> bool {
    host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok()
}

/// True if all values of a header are allowed, or the header is missing.
fn all_values(headers: &HeaderMap, name: &HeaderName, is_allowed: impl Fn(&str) -> bool) -> bool {
    headers.get_all(name).iter().all(|value| value.to_str().is_ok_and(&is_allowed))
}

async fn answer(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    match hosts.check(request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    type Lines = &'static [(&'static str, &'static str)];

    fn headers(lines: Lines) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    fn status(hosts: &Hosts, lines: Lines, uri: &'static str) -> u16 {
        let checked = hosts.check(&headers(lines), &Uri::from_static(uri));
        checked.map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    #[test]
    fn only_names_of_this_machine_are_accepted_and_only_one_at_a_time() {
        let cases: [(Lines, u16); 14] = [
            (&[("host", "127.0.0.1:4566")], 200),
            (&[("host", "LOCALHOST:1")], 200),
            (&[("host", "[::1]:4566")], 200),
            (&[("host", "localhost")], 200),
            (&[("host", "rebound.example.com:4566")], 421),
            (&[("host", "localhost.example.com")], 421),
            (&[("host", "127.0.0.1.example.com:4566")], 421),
            (&[("host", "127.0.0.1:4566.example.com")], 421),
            (&[("host", "a@127.0.0.1:4566")], 421),
            (&[("host", "10.1.2.3:4566")], 421),
            (&[("host", "")], 421),
            (&[("host", "a b")], 421),
            (&[("host", "127.0.0.1:4566"), ("host", "a")], 421),
            (&[], 421),
        ];
        for (lines, expected) in cases {
            assert_eq!(status(&Hosts::default(), lines, "/"), expected, "{lines:?}");
        }
        let here: Lines = &[("host", "127.0.0.1:4566")];
        assert_eq!(status(&Hosts::default(), here, "http://a.example.com/"), 421);
        assert_eq!(status(&Hosts::default(), here, "http://127.0.0.1:4566/"), 200);
    }

    #[test]
    fn hosts_that_were_named_are_accepted_too_and_a_refusal_lists_them() {
        let hosts = Hosts::default().and("hooks.example.com");
        assert_eq!(status(&hosts, &[("host", "Hooks.example.com:443")], "/"), 200);
        let refusal = hosts.check(&headers(&[("host", "a.example.com")]), &Uri::from_static("/"));
        let text = refusal.expect_err("another host").text;
        assert!(text.contains("127.0.0.1, localhost, [::1], hooks.example.com"), "{text}");
        let of_one = Hosts::default().and_address(IpAddr::from([10, 1, 2, 3]));
        assert_eq!(status(&of_one, &[("host", "10.1.2.3:80")], "/"), 200);
        assert_eq!(status(&of_one, &[("host", "10.1.2.4:80")], "/"), 421);
        let everywhere = Hosts::default().and_address(IpAddr::from([0, 0, 0, 0]));
        for (lines, expected) in [
            (&[("host", "10.1.2.3:80")] as Lines, 200),
            (&[("host", "[2001:db8::1]")], 200),
            (&[("host", "a.example.com")], 421),
        ] {
            assert_eq!(status(&everywhere, lines, "/"), expected, "{lines:?}");
        }
    }

    #[test]
    fn what_a_browser_sends_for_another_site_is_refused() {
        let cases: [(Lines, u16); 10] = [
            (&[("host", "localhost:80"), ("origin", "http://localhost:80")], 200),
            (&[("host", "localhost:80"), ("sec-fetch-site", "same-origin")], 200),
            (&[("host", "localhost:80"), ("sec-fetch-site", "none")], 200),
            (&[("host", "localhost:80"), ("origin", "http://localhost:3000")], 403),
            (&[("host", "localhost:80"), ("origin", "http://127.0.0.1:80")], 403),
            (&[("host", "localhost:80"), ("origin", "https://localhost:80")], 403),
            (&[("host", "localhost:80"), ("origin", "https://a.example.com")], 403),
            (&[("host", "localhost:80"), ("origin", "null")], 403),
            (&[("host", "localhost:80"), ("sec-fetch-site", "same-site")], 403),
            (
                &[
                    ("host", "localhost:80"),
                    ("sec-fetch-site", "none"),
                    ("sec-fetch-site", "cross-site"),
                ],
                403,
            ),
        ];
        for (lines, expected) in cases {
            assert_eq!(status(&Hosts::default(), lines, "/"), expected, "{lines:?}");
        }
    }
}
