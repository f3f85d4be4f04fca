//! One HTTP exchange with an endpoint we do not control.
//!
//! The endpoint may be slow, wrong or hostile, so everything is bounded: no redirects, no proxy, no decompression, one
//! deadline over connecting, head and body, and no more than the beginning of the body. Every address a name resolves
//! to is checked before a packet leaves. Whatever happens is an `Exchange`; nothing here is an `Err`.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use delivery::address::PrivateDestinations;
use delivery::outcome::{Ending, Exchange};
use delivery::ports::{Clock, SendHttp};
use delivery::request::Request;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, Response, redirect};
use url::Host;

use crate::machine::Machine;

/// Connecting, TLS included, takes no longer; the request's own deadline may be shorter.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that rested longer is not used again: the other side may have closed it while we were frozen.
const POOL_IDLE: Duration = Duration::from_secs(20);
/// No more of a response's body is read.
pub const RESPONSE_READ_BYTES: usize = 64 * 1_024;
/// What is logged of a failure's causes.
const PROBLEM_MAX_CHARS: usize = 300;
/// How destinations see us.
const USER_AGENT: &str = concat!("lastmile/", env!("CARGO_PKG_VERSION"));

/// Sends requests: one client for HTTPS, and one for plain HTTP, which may reach fewer addresses.
#[derive(Debug, Clone)]
pub struct HttpSender {
    tls: Client,
    clear: Client,
    private: Arc<PrivateDestinations>,
}

impl HttpSender {
    /// A sender that reaches private addresses only where they are allowed.
    ///
    /// # Errors
    /// When the machine's TLS set-up is unusable.
    pub fn new(private: PrivateDestinations) -> Result<Self, reqwest::Error> {
        let private = Arc::new(private);
        let client = |in_clear: bool| {
            Client::builder()
                .user_agent(USER_AGENT)
                .redirect(redirect::Policy::none())
                .retry(reqwest::retry::never())
                .no_proxy()
                .referer(false)
                .connect_timeout(CONNECT_TIMEOUT)
                .pool_idle_timeout(POOL_IDLE)
                .dns_resolver(Arc::new(CheckedResolver { private: Arc::clone(&private), in_clear }))
                .build()
        };
        Ok(Self { tls: client(false)?, clear: client(true)?, private })
    }

    async fn within_deadline(&self, request: &Request) -> Ending {
        let timeout = Duration::from_millis(request.timeout_ms);
        match tokio::time::timeout(timeout, self.converse(request)).await {
            Ok(Ok(ending)) => ending,
            Ok(Err(failure)) => {
                let ending = ending_of(&failure);
                let problem = causes(&failure.without_url());
                tracing::info!(host = request.url.host_str(), problem, "exchange.failed");
                ending
            }
            Err(_) => Ending::TimedOut,
        }
    }

    async fn converse(&self, request: &Request) -> Result<Ending, reqwest::Error> {
        if !self.may_begin(request) {
            return Ok(Ending::Blocked);
        }
        let Some(headers) = header_map(&request.headers) else {
            return Ok(Ending::Unsendable);
        };
        let client = if is_in_clear(request) { &self.clear } else { &self.tls };
        let post = client.request(Method::POST, request.url.clone()).headers(headers);
        let response = post.body(request.body.to_string()).send().await?;
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()).map(ToOwned::to_owned);
        Ok(Ending::Answered { status, retry_after, body: beginning(response).await? })
    }

    /// Whether a literal address may be reached; a name is looked at again when it is resolved.
    fn may_begin(&self, request: &Request) -> bool {
        let (host, address) = match request.url.host() {
            None => return false,
            Some(Host::Domain(host)) => return !is_in_clear(request) || self.private.may_resolve_in_clear(host),
            Some(host @ Host::Ipv4(address)) => (host.to_string(), IpAddr::V4(address)),
            Some(host @ Host::Ipv6(address)) => (host.to_string(), IpAddr::V6(address)),
        };
        may_reach(&self.private, is_in_clear(request), &host, address)
    }
}

impl SendHttp for HttpSender {
    async fn exchange(&self, request: &Request) -> Exchange {
        let started_ms = Machine.now_ms();
        let ending = self.within_deadline(request).await;
        Exchange { ending, started_ms, duration_ms: Machine.now_ms().saturating_sub(started_ms) }
    }
}

fn is_in_clear(request: &Request) -> bool {
    request.url.scheme() != "https"
}

fn may_reach(private: &PrivateDestinations, in_clear: bool, host: &str, address: IpAddr) -> bool {
    if in_clear { private.may_reach_in_clear(host, address) } else { private.may_reach(host, address) }
}

/// What an error says, and what it was caused by, for the log.
fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text.chars().take(PROBLEM_MAX_CHARS).collect()
}

fn header_map(headers: &[(String, String)]) -> Option<HeaderMap> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        map.append(HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(value).ok()?);
    }
    Some(map)
}

/// The beginning of the body; what lies beyond is never read.
async fn beginning(mut response: Response) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = RESPONSE_READ_BYTES - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == RESPONSE_READ_BYTES {
            break;
        }
    }
    Ok(body)
}

fn ending_of(failure: &reqwest::Error) -> Ending {
    if failure.is_builder() {
        return Ending::Unsendable;
    }
    if failure.is_timeout() {
        return Ending::TimedOut;
    }
    match caused_by::<DnsFailure>(failure) {
        Some(DnsFailure::Blocked(_)) => return Ending::Blocked,
        Some(DnsFailure::Unresolved(_)) => return Ending::ResolutionError,
        None => {}
    }
    match caused_by::<rustls::Error>(failure) {
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => Ending::TlsError,
        _ => Ending::SocketError,
    }
}

/// The error of this type that an error was caused by; an I/O error may carry another inside.
fn caused_by<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}

/// Resolves names with the system's resolver and refuses a host if any of its addresses is forbidden.
struct CheckedResolver {
    private: Arc<PrivateDestinations>,
    in_clear: bool,
}

#[derive(Debug)]
enum DnsFailure {
    Unresolved(String),
    Blocked(String),
}

impl fmt::Display for DnsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unresolved(host) => write!(f, "{host} does not resolve"),
            Self::Blocked(host) => write!(f, "{host} leads to an address that is not allowed"),
        }
    }
}

impl Error for DnsFailure {}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (private, in_clear) = (Arc::clone(&self.private), self.in_clear);
        Box::pin(async move {
            let host = name.as_str();
            let resolved = tokio::net::lookup_host((host, 0)).await;
            let addresses: Vec<SocketAddr> = resolved.map(Iterator::collect).unwrap_or_default();
            if addresses.is_empty() {
                return Err(DnsFailure::Unresolved(host.to_owned()).into());
            }
            if addresses.iter().any(|address| !may_reach(&private, in_clear, host, address.ip())) {
                return Err(DnsFailure::Blocked(host.to_owned()).into());
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
