//! One HTTP exchange with an endpoint we do not control.
//!
//! The endpoint may be slow, broken or hostile, so everything is bounded: no redirects, no proxy, no
//! decompression, one deadline over resolving, connecting, head and body, and no more than the
//! beginning of the body. Every address a name resolves to is checked before a packet is sent, and
//! only checked addresses are connected to. Whatever happens is an `Exchange`; nothing here is an
//! `Err`.

mod failure;
mod names;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use delivery::address::{AddressPolicy, ClientKind};
use delivery::delivery::outcome::{Content, Exchange, TransportResult};
use delivery::ports::{Clock, Late, SendHttp};
use delivery::request::{ANSWER_MAX_BYTES, Method, Request};
use delivery::subscription::MAX_CONCURRENCY;
pub use names::{Lookup, Resolved};
use reqwest::header::{
    CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
};
use reqwest::{Client, Response, redirect, tls};
use tokio::sync::Semaphore;

use crate::machine::Machine;
/// A certificate authority, as [`Network`] takes them.
pub use reqwest::Certificate;

/// Connecting, TLS included, takes no longer; the request's own deadline may be shorter.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that was idle for longer is not reused: the other side may have closed it while
/// the function was frozen.
const POOL_IDLE: Duration = Duration::from_secs(20);
/// How many connections to one host may be idle: the default concurrency of a subscription. With
/// fewer, a subscription at that concurrency would open new connections all the time.
const POOL_PER_HOST_MAX: usize = MAX_CONCURRENCY as usize;
/// An HTTP/1 response with more headers is a failure. hyper bounds the length of its head: 408 KiB.
const HEADERS_MAX: usize = 100;
/// An HTTP/2 response with a longer head is a failure.
const HTTP2_HEAD_MAX_BYTES: u32 = 64 * 1_024;
/// An HTTP/2 peer may send this much of a body that is not read yet: as much as is read at most.
const HTTP2_STREAM_WINDOW_BYTES: u32 = 64 * 1_024;
/// The same for all bodies of a connection; the client's own default is 5 MiB.
const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 4 * HTTP2_STREAM_WINDOW_BYTES;
/// The protocol's minimum, which is its default.
const HTTP2_FRAME_MAX_BYTES: u32 = 16 * 1_024;
/// So many responses longer than [`ANSWER_MAX_BYTES`] are read at once; the others wait, within
/// their deadlines. Each costs memory: the connection's buffer grows to 408 KiB, and the next one is
/// allocated while it is still there.
const LONG_ANSWERS_MAX: usize = 4;
/// The `user-agent` header of every request.
const USER_AGENT: &str = concat!("lastmile/", env!("CARGO_PKG_VERSION"));

/// What the sender needs of the network: how names resolve, and which certificates are trusted.
#[derive(Clone)]
pub struct Network {
    /// Resolves names.
    pub lookup: Lookup,
    /// Certificate authorities besides those of the machine.
    pub authorities: Vec<Certificate>,
}

/// Sends requests, each with the client of its kind, which checks addresses by that kind's rules.
#[derive(Debug, Clone)]
pub struct HttpSender {
    network: Network,
    policy: Arc<AddressPolicy>,
    /// Built at first use, except the one for nearly every request: reading the machine's
    /// certificates takes milliseconds of a cold start, and megabytes of memory.
    clients: Arc<[OnceLock<Client>; CLIENT_KINDS]>,
    long_answers: Arc<Semaphore>,
}

/// With TLS or without, to a port of the function's own or not.
const CLIENT_KINDS: usize = 4;
/// The kind of nearly every request.
const ORDINARY: ClientKind = ClientKind { in_clear: false, own_port: false };

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("authorities", &self.authorities.len())
            .finish_non_exhaustive()
    }
}

impl Default for Network {
    fn default() -> Self {
        Self { lookup: names::system_lookup(), authorities: Vec::new() }
    }
}

impl HttpSender {
    /// A sender that connects only to addresses that the policy allows.
    ///
    /// # Errors
    /// When no TLS client can be built on this machine.
    pub fn new(policy: AddressPolicy) -> Result<Self, reqwest::Error> {
        Self::on(&Network::default(), policy)
    }

    /// The same on another network than the machine's.
    ///
    /// # Errors
    /// When no TLS client can be built.
    pub fn on(network: &Network, policy: AddressPolicy) -> Result<Self, reqwest::Error> {
        let long_answers = Arc::new(Semaphore::new(LONG_ANSWERS_MAX));
        let sender = Self {
            network: network.clone(),
            policy: Arc::new(policy),
            clients: Arc::default(),
            long_answers,
        };
        // Built here so that a failure ends the cold start, and not the first delivery.
        sender.client(ORDINARY)?;
        Ok(sender)
    }

    /// The client kind and headers of a request that may be sent; else the exchange that reports why
    /// not.
    fn admit(&self, request: &Request) -> Result<(ClientKind, HeaderMap), Box<Exchange>> {
        let blocked = |refusal| Exchange::new(TransportResult::Blocked, 0, 0).with_detail(refusal);
        // Here as well as in the resolver, which never sees an IP address in a URL.
        let kind = self.policy.admit(&request.url).map_err(blocked)?;
        let unsendable =
            |problem| Exchange::new(TransportResult::Unsendable, 0, 0).with_detail(problem);
        let mut headers = header_map(&request.headers).map_err(unsendable)?;
        if request.body.is_empty() && request.method == Method::Post {
            // RFC 9110, 8.6: sent even with an empty body; some front ends answer 411 without it.
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        Ok((kind, headers))
    }

    async fn send(&self, request: &Request, headers: HeaderMap, kind: ClientKind) -> Exchange {
        let ended = |result| Exchange::new(result, 0, 0);
        let client = match self.client(kind) {
            Ok(client) => client,
            // A fault of this machine, so other attempts follow.
            Err(failure) => {
                return ended(TransportResult::Aborted).with_detail(failure::detail(failure));
            }
        };
        match self.send_with(client, request, headers).await {
            Ok((result, content)) => Exchange { content: Some(content), ..ended(result) },
            Err(failure) => ended(failure::result(&failure)).with_detail(failure::detail(failure)),
        }
    }

    async fn send_with(
        &self,
        client: &Client,
        request: &Request,
        headers: HeaderMap,
    ) -> Result<(TransportResult, Content), reqwest::Error> {
        let method = match request.method {
            Method::Post => reqwest::Method::POST,
            Method::Options => reqwest::Method::OPTIONS,
        };
        let builder = client.request(method, request.url.clone()).headers(headers);
        let response = builder.body(request.body.clone()).send().await?;
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(text);
        let content_type = response.headers().get(CONTENT_TYPE).and_then(text);
        let attributes = headers_with_prefix("ce-", response.headers());
        let webhook = headers_with_prefix("webhook-", response.headers());
        let (body, whole) = self.read_body(response, request.answer_max_bytes).await?;
        Ok((
            TransportResult::Answered { status, retry_after, body },
            Content { content_type, attributes, webhook, whole },
        ))
    }

    /// The beginning of the body, and whether that is all of it; the rest is never read.
    async fn read_body(
        &self,
        mut response: Response,
        max_bytes: usize,
    ) -> Result<(Vec<u8>, bool), reqwest::Error> {
        let (mut body, mut permit) = (Vec::new(), None);
        while body.len() < max_bytes {
            if body.len() >= ANSWER_MAX_BYTES && permit.is_none() {
                // The semaphore is never closed, so this cannot fail. Held until the body is read.
                permit = self.long_answers.acquire().await.ok();
            }
            let Some(chunk) = response.chunk().await? else { return Ok((body, true)) };
            let taken = &chunk[..chunk.len().min(max_bytes - body.len())];
            if body.capacity() - body.len() < taken.len() {
                grow(&mut body, taken.len(), max_bytes);
            }
            body.extend_from_slice(taken);
        }
        // A body of exactly this length counts as cut: only one more read could tell.
        Ok((body, false))
    }

    fn client(&self, kind: ClientKind) -> Result<&Client, reqwest::Error> {
        let slot = &self.clients[usize::from(kind.in_clear) * 2 + usize::from(kind.own_port)];
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        // `get_or_init` cannot return an error. Of two that are built at once, the first is kept.
        let client = client(&self.network, &self.policy, kind)?;
        Ok(slot.get_or_init(|| client))
    }
}

impl SendHttp for HttpSender {
    async fn exchange(&self, request: &Request) -> Exchange {
        let started_ms = Machine.now_ms();
        let exchange = match self.admit(request) {
            Ok((kind, headers)) => {
                let exchange = self.send(request, headers, kind);
                let in_time = tokio::time::timeout(timeout(request), exchange).await;
                in_time.unwrap_or_else(|_| timed_out(request))
            }
            Err(exchange) => *exchange,
        };
        timed(exchange, started_ms)
    }

    async fn exchange_or_late(&self, request: &Request) -> (Exchange, Option<Late>) {
        let started_ms = Machine.now_ms();
        let (kind, headers) = match self.admit(request) {
            Ok(admitted) => admitted,
            Err(exchange) => return (timed(*exchange, started_ms), None),
        };
        // A late response is cut, so that it never holds one of the permits for long responses.
        let answer_max_bytes = request.answer_max_bytes.min(ANSWER_MAX_BYTES);
        let (sender, cut) = (self.clone(), Request { answer_max_bytes, ..request.clone() });
        let mut open: Late =
            Box::pin(async move { timed(sender.send(&cut, headers, kind).await, started_ms) });
        match tokio::time::timeout(timeout(request), &mut open).await {
            Ok(exchange) => (exchange, None),
            Err(_) => (timed(timed_out(request), started_ms), Some(open)),
        }
    }
}

fn timed(exchange: Exchange, started_ms: u64) -> Exchange {
    // Saturating: the clock may be set back during the exchange.
    Exchange { started_ms, duration_ms: Machine.now_ms().saturating_sub(started_ms), ..exchange }
}

fn timeout(request: &Request) -> Duration {
    Duration::from_millis(request.timeout_ms)
}

fn timed_out(request: &Request) -> Exchange {
    Exchange::new(TransportResult::TimedOut, 0, 0)
        .with_detail(format_args!("no whole answer within {} ms", request.timeout_ms))
}

/// A client that checks addresses by the rules of this kind; one for plain HTTP trusts no
/// certificate.
fn client(
    network: &Network,
    policy: &Arc<AddressPolicy>,
    kind: ClientKind,
) -> Result<Client, reqwest::Error> {
    let (lookup, policy) = (Arc::clone(&network.lookup), Arc::clone(policy));
    let builder = Client::builder()
        .user_agent(USER_AGENT)
        // A redirect would lead to an address that no subscription names.
        .redirect(redirect::Policy::none())
        // A repeat by the client would be an attempt that nobody counts.
        .retry(reqwest::retry::never())
        // A proxy of the environment would resolve names itself, unchecked.
        .no_proxy()
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_PER_HOST_MAX)
        .http1_max_headers(HEADERS_MAX)
        .http2_initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES)
        .http2_initial_connection_window_size(HTTP2_CONNECTION_WINDOW_BYTES)
        // An adaptive window would override both sizes above.
        .http2_adaptive_window(false)
        .http2_max_frame_size(HTTP2_FRAME_MAX_BYTES)
        .http2_max_header_list_size(HTTP2_HEAD_MAX_BYTES)
        .tls_version_min(tls::Version::TLS_1_2)
        .https_only(!kind.in_clear)
        .dns_resolver(names::CheckingResolver { lookup, policy, kind });
    let builder = match kind.in_clear {
        true => builder.tls_certs_only([]),
        false => builder.tls_certs_merge(network.authorities.iter().cloned()),
    };
    builder.build()
}

/// The headers in the client's form. An invalid one, which could split the request, is refused; the
/// error has only its name, because the value may be a secret.
fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let (Ok(known), Ok(mut value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value))
        else {
            return Err(format!("the header {name:?} cannot be sent"));
        };
        // Which of them are secrets is not known here, so none enters the HTTP/2 header tables.
        value.set_sensitive(true);
        // `append` panics when a map is full, at 32,768 entries.
        map.try_append(known, value).map_err(|_| "a request with too many headers".to_owned())?;
    }
    Ok(map)
}

/// A header's value, if it is text.
fn text(value: &HeaderValue) -> Option<String> {
    value.to_str().ok().map(ToOwned::to_owned)
}

/// The headers whose names begin with this, by the rest of their names.
fn headers_with_prefix(prefix: &str, headers: &HeaderMap) -> Vec<(String, String)> {
    let matching = headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().strip_prefix(prefix)?, value)));
    matching.filter_map(|(name, value)| Some((name.to_owned(), text(value)?))).collect()
}

/// Reserves room in a body for more bytes, in few steps: with doubling, the old and the new buffer
/// would exist at once each time.
fn grow(body: &mut Vec<u8>, bytes: usize, max_bytes: usize) {
    let needed = body.len() + bytes;
    let capacity = match needed {
        _ if body.is_empty() => needed,
        ..=ANSWER_MAX_BYTES => max_bytes.min(ANSWER_MAX_BYTES),
        _ => max_bytes,
    };
    body.reserve_exact(capacity - body.len());
}
