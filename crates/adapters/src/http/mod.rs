//! One HTTP exchange with an endpoint outside our control.
//!
//! The endpoint may be slow, broken or hostile, so everything is limited. There are no redirects
//! and no proxy, and one deadline covers resolving, connecting, head and body. Only the beginning
//! of a body is read, and decoding has the same limit. Every address of a name is checked before a
//! packet is sent, and the client connects only to checked addresses. The result is always an
//! `Exchange`: sending never returns an `Err`.
//!
//! The head of a response determines the result, unless the request needs the body: then a response
//! with an unreadable body is a failure. After a head with a success status, the endpoint has
//! accepted the event, and a retry would deliver it twice. If the endpoint states that it has not
//! processed a request, the request is sent again at once on another connection.
//!
//! A connection is reused only if the response was read to its end. After a timeout, a broken
//! connection or a dropped exchange, the connection is closed as soon as no exchange uses it. In
//! the pool, it could stay open after the deadline of its exchange, and receive further frames. It
//! is closed at once if it exceeds its budget (`metered.rs`).

mod clients;
mod encoding;
mod failure;
mod long_answers;
mod metered;
mod names;
mod recent;
pub mod sigv4;
mod tls;

use std::borrow::Cow;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use delivery::address::{AddressPolicy, ClientKind};
use delivery::delivery::outcome::{Content, Exchange, TransportResult};
use delivery::event::binary::header_text;
use delivery::machine::reply::declares_reply;
use delivery::ports::{Clock, Late, SendHttp};
use delivery::request::{ANSWER_MAX_BYTES, Method, Needs, Request};
use delivery::time::duration::SECOND_MS;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, USER_AGENT,
};
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::capture_connection;
use percent_encoding::percent_decode_str;
/// A certificate authority in DER form, for [`Network`].
pub use rustls::pki_types::CertificateDer as Certificate;
use tokio::time::timeout;
use url::Url;

pub use self::clients::ClientError;
use self::clients::{Client, Clients, HEAD_MAX_BYTES, HEADERS_MAX};
use self::encoding::Decoded;
use self::failure::Failure;
use self::long_answers::LongAnswers;
use self::metered::Usage;
pub use self::names::{Lookup, Resolved};
use self::sigv4::{Signed, is_of_signature};
pub use self::tls::TlsError;
use crate::machine::Machine;

/// The default `User-Agent` of requests.
pub const AGENT: &str = concat!("lastmile/", env!("CARGO_PKG_VERSION"));
/// Maximum number of bytes of response headers that are kept for display.
const HEADERS_KEPT_MAX_BYTES: usize = 16 * 1_024;
/// Time limit for a body that is only shown to people. The status alone determines the result.
const BODY_WAIT: Duration = Duration::from_secs(5);

/// The network of a sender: name resolution, and trusted certificates.
#[derive(Clone)]
pub struct Network {
    /// The function that resolves names.
    pub lookup: Lookup,
    /// Certificate authorities that are trusted in addition to those of the machine.
    pub authorities: Vec<Certificate<'static>>,
}

/// Sends HTTP requests. Each request uses a client that checks addresses by the rules of its
/// [`ClientKind`].
#[derive(Debug, Clone)]
pub struct HttpSender {
    policy: Arc<AddressPolicy>,
    clients: Arc<Clients>,
    /// Limits concurrent reading of responses longer than [`ANSWER_MAX_BYTES`].
    long_answers: Arc<LongAnswers>,
    keeps_headers: bool,
    /// A server that receives requests for AWS targets in place of AWS, such as an emulator.
    aws_endpoint: Option<Url>,
}

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

/// A request that passed all checks: its client kind, headers and signature.
struct Admitted {
    kind: ClientKind,
    headers: HeaderMap,
    signed: Option<Signed>,
}

/// A response whose body has not been read yet.
struct Answer {
    head: Parts,
    body: Incoming,
    usage: Usage,
}

impl HttpSender {
    /// Creates a sender that connects only to addresses that the policy allows.
    ///
    /// # Errors
    /// Fails if the cryptography provider supports none of the required TLS versions.
    pub fn new(policy: AddressPolicy) -> Result<Self, TlsError> {
        Self::on(&Network::default(), policy)
    }

    /// Creates a sender on a network other than the machine's.
    ///
    /// # Errors
    /// Fails as [`HttpSender::new`] does. Invalid authorities of the network are reported at the
    /// first request.
    pub fn on(network: &Network, policy: AddressPolicy) -> Result<Self, TlsError> {
        let policy = Arc::new(policy);
        let clients = Arc::new(Clients::new(network, Arc::clone(&policy))?);
        Ok(Self {
            policy,
            clients,
            long_answers: Arc::default(),
            keeps_headers: false,
            aws_endpoint: None,
        })
    }

    /// Keeps all headers of responses, for commands that show them. Deployments do not need this.
    #[must_use]
    pub fn keeping_headers(self) -> Self {
        Self { keeps_headers: true, ..self }
    }

    /// Sends requests for AWS targets to `aws_endpoint` in place of AWS.
    #[must_use]
    pub fn with_aws_endpoint(self, aws_endpoint: Option<Url>) -> Self {
        Self { aws_endpoint, ..self }
    }

    /// Replaces the address of a request to AWS by `aws_endpoint`, if one is set.
    fn addressed<'r>(&self, request: &'r Request) -> Cow<'r, Request> {
        match (&self.aws_endpoint, request.needs) {
            (Some(server), Needs::Service(_)) => {
                let mut url = server.clone();
                url.set_path(request.url.path());
                url.set_query(request.url.query());
                Cow::Owned(Request { url, ..request.clone() })
            }
            (Some(_) | None, Needs::Status | Needs::Body | Needs::Reply | Needs::Service(_)) => {
                Cow::Borrowed(request)
            }
        }
    }

    /// Checks and prepares a request. If the request is refused, returns the exchange with the
    /// reason.
    fn admit(&self, request: &Request) -> Result<Admitted, Box<Exchange>> {
        let blocked = |refusal| Exchange::new(TransportResult::Blocked, 0, 0).with_detail(refusal);
        // Check here as well as in the resolver, because the resolver never sees an IP address in a
        // URL.
        let kind = self.policy.admit(&request.url).map_err(blocked)?;
        let unsendable =
            |problem| Exchange::new(TransportResult::Unsendable, 0, 0).with_detail(problem);
        let signed = request.signer.as_ref();
        let signed = signed.map(|signer| Signed::sign(request, signer, Machine.now_ms()));
        let signed = signed.transpose().map_err(unsendable)?;
        let of_signature = signed.iter().flat_map(|signed| &signed.headers);
        let is_own = |name: &str| signed.is_none() || !is_of_signature(name);
        let own = request.headers.iter().filter(|(name, _)| is_own(name));
        let mut headers = header_map(own.chain(of_signature)).map_err(unsendable)?;
        if request.body.is_empty()
            && matches!(request.method, Method::Post | Method::Put | Method::Patch)
        {
            // RFC 9110, 8.6: send the length of an empty body too; some front ends respond 411
            // without it.
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let basic = basic_authorization(&request.url).map(|value| (AUTHORIZATION, value));
        // Without `Accept-Encoding`, any coding of the response is acceptable (RFC 9110, 12.5.3).
        let usual = [(ACCEPT, "*/*"), (USER_AGENT, AGENT), (ACCEPT_ENCODING, "identity")]
            .map(|(name, value)| (name, HeaderValue::from_static(value)));
        for (name, value) in usual.into_iter().chain(basic) {
            headers.entry(name).or_insert(value);
        }
        Ok(Admitted { kind, headers, signed })
    }

    /// Sends a request and returns the head of the response. If the endpoint has not processed the
    /// request, sends it once more; the retry is not reported (RFC 9113, 8.7).
    async fn head(
        &self,
        request: &Request,
        headers: HeaderMap,
        kind: ClientKind,
    ) -> Result<Answer, Failure> {
        let client = self.clients.client(kind, &request.tls)?;
        match ask(&client, request, headers.clone()).await {
            Err(failure) if failure::is_unprocessed(&failure) => {
                ask(&client, request, headers).await
            }
            answer => answer,
        }
    }

    /// Completes the exchange by reading the body, within the remaining time.
    async fn rest(
        &self,
        answer: Result<Answer, Failure>,
        request: &Request,
        left: Option<Duration>,
    ) -> Exchange {
        let Answer { head, body: incoming, usage } = match answer {
            Ok(answer) => answer,
            Err(failure) => return failed(&failure),
        };
        let needs_body = needs_body(request.needs, &head);
        let limit = match needs_body {
            true => left,
            false => Some(left.map_or(BODY_WAIT, |left| left.min(BODY_WAIT))),
        };
        let max_bytes = match needs_body {
            true => request.answer_max_bytes,
            false => request.answer_max_bytes.min(ANSWER_MAX_BYTES),
        };
        let mut body = Vec::new();
        let reading = self.read_body(&mut body, incoming, (&request.url, max_bytes), &usage);
        let read = match limit {
            Some(limit) => timeout(limit, reading).await.ok(),
            None => Some(reading.await),
        };
        let status = head.status.as_u16();
        let unread = |exchange| Exchange { unread_status: Some(status), ..exchange };
        let whole = match read {
            Some(Ok(whole)) => whole,
            Some(Err(_)) | None if !needs_body => false,
            Some(Err(failure)) => return unread(failed(&failure)),
            None => return unread(timed_out(request)),
        };
        if whole {
            usage.read_whole();
        }
        let Decoded { body, whole } = match encoding::decode(&head.headers, body, whole, max_bytes)
        {
            Ok(decoded) => decoded,
            Err(error) if needs_body => return unread(failed(&error.into())),
            Err(error) => Decoded { body: error.body, whole: false },
        };
        let retry_after = head.headers.get(RETRY_AFTER).and_then(text);
        let result = TransportResult::Answered { status, retry_after, body };
        let content = Some(self.content(request.needs, &head, whole));
        Exchange { content, ..Exchange::new(result, 0, 0) }
    }

    /// Extracts the headers that describe the body. For AWS services, for failures and for a sender
    /// that keeps headers, adds all headers. `whole` is true if the whole body was read.
    fn content(&self, needs: Needs, head: &Parts, whole: bool) -> Content {
        let content_type = head.headers.get(CONTENT_TYPE);
        let needs_headers = matches!(needs, Needs::Service(_)) || !head.status.is_success();
        Content {
            content_type: content_type.map(|value| header_text(value.as_bytes())),
            attributes: headers_with_prefix("ce-", &head.headers),
            webhook: headers_with_prefix("webhook-", &head.headers),
            headers: match self.keeps_headers || needs_headers {
                true => all_headers(&head.headers),
                false => Vec::new(),
            },
            whole,
        }
    }

    /// Reads the beginning of the body, up to a limit. Returns true if the whole body was read.
    /// `body` contains the bytes read, even if the future fails or is dropped.
    async fn read_body(
        &self,
        body: &mut Vec<u8>,
        mut incoming: Incoming,
        (url, max_bytes): (&Url, usize),
        usage: &Usage,
    ) -> Result<bool, Failure> {
        let mut turn = None;
        while body.len() < max_bytes {
            if body.len() >= ANSWER_MAX_BYTES && turn.is_none() {
                // Keep the turn until the body is read.
                turn = self.long_answers.turn(url).await;
            }
            let frame = match &turn {
                Some(turn) => turn.next(incoming.frame()).await?,
                None => incoming.frame().await,
            };
            let Some(frame) = frame else { return Ok(true) };
            // Frames without data are trailers, which are ignored.
            let chunk = frame?.into_data().unwrap_or_default();
            usage.extend(chunk.len());
            if let Some(turn) = &mut turn {
                turn.brought(chunk.len());
            }
            let taken = &chunk[..chunk.len().min(max_bytes - body.len())];
            make_room(body, taken.len(), max_bytes);
            body.extend_from_slice(taken);
        }
        // A body of exactly this length counts as cut: only another read could show its end.
        Ok(false)
    }
}

/// Sends a request once, and waits for the head of the response.
async fn ask(client: &Client, request: &Request, headers: HeaderMap) -> Result<Answer, Failure> {
    let mut sent = http::Request::new(Full::new(request.body.clone()));
    *sent.method_mut() = match request.method {
        Method::Post => http::Method::POST,
        Method::Put => http::Method::PUT,
        Method::Patch => http::Method::PATCH,
        Method::Delete => http::Method::DELETE,
        Method::Get => http::Method::GET,
        Method::Options => http::Method::OPTIONS,
    };
    *sent.uri_mut() = uri(&request.url).ok_or(Failure::Url)?;
    *sent.headers_mut() = headers;
    let mut usage = Usage::new(capture_connection(&mut sent));
    let mut responding = client.request(sent);
    let response = poll_fn(|context| {
        let polled = Pin::new(&mut responding).poll(context);
        usage.notice(&polled);
        polled
    });
    let (head, body) = response.await?.into_parts();
    let lengths = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
    if head.headers.len() > HEADERS_MAX || lengths.sum::<usize>() > HEAD_MAX_BYTES {
        return Err(Failure::Head);
    }
    Ok(Answer { head, body, usage })
}

/// True if the body must be read to decide whether a response with this head is a success.
fn needs_body(needs: Needs, head: &Parts) -> bool {
    let header = |name: HeaderName| head.headers.get(name).and_then(text);
    match needs {
        Needs::Status => false,
        Needs::Body | Needs::Service(_) => true,
        Needs::Reply => declares_reply(
            head.status.as_u16(),
            header(CONTENT_TYPE).as_deref(),
            head.headers.contains_key("ce-specversion"),
        ),
    }
}

/// Creates the exchange for a failure.
fn failed(failure: &Failure) -> Exchange {
    Exchange::new(failure::result(failure), 0, 0).with_detail(failure::detail(failure))
}

/// Redacts the signature of the request in an exchange.
fn hidden(signed: Option<&Signed>, exchange: Exchange) -> Exchange {
    match signed {
        Some(signed) => signed.hide_in(exchange),
        None => exchange,
    }
}

impl SendHttp for HttpSender {
    async fn exchange(&self, request: &Request) -> Exchange {
        let request = &*self.addressed(request);
        let started_ms = Machine.now_ms();
        let Admitted { kind, headers, signed } = match self.admit(request) {
            Ok(admitted) => admitted,
            Err(exchange) => return timed(*exchange, started_ms),
        };
        let head = self.head(request, headers, kind);
        let exchange = match timeout(Duration::from_millis(request.timeout_ms), head).await {
            Ok(answer) => self.rest(answer, request, Some(left(request, started_ms))).await,
            Err(_) => timed_out(request),
        };
        timed(hidden(signed.as_ref(), exchange), started_ms)
    }

    async fn exchange_or_late(&self, request: &Request) -> (Exchange, Option<Late>) {
        let request = &*self.addressed(request);
        let started_ms = Machine.now_ms();
        let Admitted { kind, headers, signed } = match self.admit(request) {
            Ok(admitted) => admitted,
            Err(exchange) => return (timed(*exchange, started_ms), None),
        };
        // Limit the size of late responses, so that none has to wait for a turn of `long_answers`.
        let answer_max_bytes = request.answer_max_bytes.min(ANSWER_MAX_BYTES);
        let (sender, cut) = (self.clone(), Request { answer_max_bytes, ..request.clone() });
        let (of_head, owned) = (self.clone(), cut.clone());
        let mut head = Box::pin(async move { of_head.head(&owned, headers, kind).await });
        let ended = move |exchange| timed(hidden(signed.as_ref(), exchange), started_ms);
        match timeout(Duration::from_millis(request.timeout_ms), &mut head).await {
            Ok(answer) => {
                let left = Some(left(request, started_ms));
                (ended(self.rest(answer, &cut, left).await), None)
            }
            Err(_) => {
                let exchange = timed(timed_out(request), started_ms);
                let late = async move { ended(sender.rest(head.await, &cut, None).await) };
                (exchange, Some(Box::pin(late)))
            }
        }
    }
}

fn timed(exchange: Exchange, started_ms: u64) -> Exchange {
    // Saturating, because the clock may be set back during the exchange.
    Exchange { started_ms, duration_ms: Machine.now_ms().saturating_sub(started_ms), ..exchange }
}

/// Returns the remaining time of an exchange that began at `started_ms`.
fn left(request: &Request, started_ms: u64) -> Duration {
    // Saturating, because the clock may be set back during the exchange.
    let spent_ms = Machine.now_ms().saturating_sub(started_ms);
    Duration::from_millis(request.timeout_ms.saturating_sub(spent_ms))
}

fn timed_out(request: &Request) -> Exchange {
    Exchange::new(TransportResult::TimedOut, 0, 0)
        .with_detail(format_args!("no complete response within {}", seconds(request.timeout_ms)))
}

/// Formats a timeout in seconds, and in milliseconds only if it is not a whole number of seconds.
fn seconds(timeout_ms: u64) -> String {
    match timeout_ms % SECOND_MS {
        0 => format!("{} s", timeout_ms / SECOND_MS),
        _ => format!("{timeout_ms} ms"),
    }
}

/// Converts the URL for the client. Removes user and password, which become a header.
fn uri(url: &Url) -> Option<Uri> {
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    if url.username().is_empty() && url.password().is_none() {
        return url.as_str().parse().ok();
    }
    let mut url = url.clone();
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    url.as_str().parse().ok()
}

/// Returns the `Authorization` header for the user and password of a URL (RFC 7617).
fn basic_authorization(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let decoded = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
    let (user, password) = (decoded(url.username()), decoded(url.password().unwrap_or_default()));
    let text = format!("Basic {}", STANDARD.encode([&user[..], b":", &password].concat()));
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Converts headers for the client. Refuses an invalid header, which could split the request. The
/// error contains only the name of the header, because its value may be a secret.
fn header_map<'a>(
    headers: impl Iterator<Item = &'a (String, String)>,
) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::with_capacity(headers.size_hint().0);
    for (name, value) in headers {
        let (Ok(known), Ok(mut value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value))
        else {
            return Err(format!(
                "the header {name:?} cannot be sent: its name or value is invalid"
            ));
        };
        // Any value may be a secret, so none may enter the HTTP/2 header tables.
        value.set_sensitive(true);
        // `append` panics when a map is full, at 32,768 entries.
        map.try_append(known, value).map_err(|_| "the request has too many headers".to_owned())?;
    }
    Ok(map)
}

/// Returns the value of a header; `None` if it is not text.
fn text(value: &HeaderValue) -> Option<String> {
    value.to_str().ok().map(ToOwned::to_owned)
}

/// Returns the headers whose names have this prefix, keyed by the rest of the name.
fn headers_with_prefix(prefix: &str, headers: &HeaderMap) -> Vec<(String, String)> {
    let matching = headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().strip_prefix(prefix)?, value)));
    matching.map(|(name, value)| (name.to_owned(), header_text(value.as_bytes()))).collect()
}

/// Returns all headers, up to [`HEADERS_KEPT_MAX_BYTES`].
fn all_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let mut bytes = 0;
    let texts = headers.iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let kept = texts.take_while(|(name, value)| {
        bytes += name.len() + value.len();
        bytes <= HEADERS_KEPT_MAX_BYTES
    });
    kept.collect()
}

/// Grows the buffer of a body in few steps. Each reallocation holds the old and the new buffer at
/// once, so doubling repeatedly would need more memory.
fn make_room(body: &mut Vec<u8>, bytes: usize, max_bytes: usize) {
    let needed = body.len() + bytes;
    if needed <= body.capacity() {
        return;
    }
    let capacity = match needed {
        _ if body.is_empty() => needed,
        ..=ANSWER_MAX_BYTES => max_bytes.min(ANSWER_MAX_BYTES),
        _ => max_bytes,
    };
    body.reserve_exact(capacity - body.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_or_a_password_alone_is_enough_for_an_authorization() {
        for (url, expected) in [
            ("https://example.com/", None),
            ("https://user:pass%20word@example.com/", Some("user:pass word")),
            ("https://token@example.com/", Some("token:")),
            ("https://:password@example.com/", Some(":password")),
        ] {
            let expected = expected.map(|text| format!("Basic {}", STANDARD.encode(text)));
            let value = basic_authorization(&url.parse().expect("a URL"));
            assert_eq!(
                value.as_ref().map(HeaderValue::as_bytes),
                expected.as_deref().map(str::as_bytes)
            );
        }
    }

    #[test]
    fn all_headers_are_kept_up_to_a_limit_also_those_that_are_no_ascii() {
        let mut headers = HeaderMap::new();
        headers.append("x-a", HeaderValue::from_bytes("größe".as_bytes()).expect("a value"));
        headers.append("x-a", HeaderValue::from_static("again"));
        let long = HeaderValue::from_str(&"v".repeat(HEADERS_KEPT_MAX_BYTES)).expect("a value");
        headers.append("x-long", long);
        headers.append("x-behind", HeaderValue::from_static("it"));
        let kept = all_headers(&headers);
        let kept: Vec<_> = kept.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(kept, [("x-a", "größe"), ("x-a", "again")]);
    }

    #[test]
    fn a_body_grows_three_times_at_most_and_never_beyond_what_is_read_of_it() {
        const LONG: usize = 4 * ANSWER_MAX_BYTES;
        for (max_bytes, expected) in [
            (LONG, &[1_000, ANSWER_MAX_BYTES, LONG][..]),
            (ANSWER_MAX_BYTES - 1, &[1_000, ANSWER_MAX_BYTES - 1]),
        ] {
            let (mut body, mut capacities) = (Vec::new(), Vec::new());
            while body.len() < max_bytes {
                let bytes = 1_000.min(max_bytes - body.len());
                make_room(&mut body, bytes, max_bytes);
                capacities.push(body.capacity());
                body.resize(body.len() + bytes, b' ');
            }
            capacities.dedup();
            assert_eq!(capacities, expected);
        }
    }
}
