//! The HTTP clients of the sender. There is one client for each combination of a [`ClientKind`],
//! which determines the allowed addresses, and the TLS identity and authorities of a subscription
//! (`tls.rs`). Therefore requests with different identities never share a connection.
//!
//! Separate from the sender, because this module sets the limits of a connection: connect timeout,
//! idle time, size of a response head, flow-control windows. The total number of bytes is limited
//! in `metered.rs`. reqwest uses the same components, but does not allow wrapping its connections,
//! so its callers cannot count the bytes read or close a connection.
//!
//! Promises: keeps at most [`CLIENTS_MAX`] clients.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use delivery::address::{AddressPolicy, ClientKind};
use delivery::request::tls::RequestTls;
use delivery::subscription::Concurrency;
use http::Uri;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use thiserror::Error;
use tower_service::Service;

use super::Network;
use super::metered::MeteredStream;
use super::names::CheckingResolver;
use super::recent::Recent;
use super::tls::{TlsConfigs, TlsError};

/// Maximum number of clients. Beyond this number the least recently used client is removed, and
/// closes after its last exchange. Only TLS identities and authorities of subscriptions can lead to
/// many clients.
const CLIENTS_MAX: usize = 256;
/// Timeout of connecting, including TLS. The deadline of the request may be earlier.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// `TCP_USER_TIMEOUT`: closes a connection whose peer does not acknowledge data, even if the
/// connection was dropped with unsent data. Only Linux has this option.
#[cfg(target_os = "linux")]
const UNSENT_MAX: Duration = Duration::from_secs(30);
/// TCP keep-alive: idle time before the first probe, and interval between probes.
const TCP_KEEPALIVE: Duration = Duration::from_secs(15);
/// TCP keep-alive: number of unanswered probes after which the connection is closed.
const TCP_KEEPALIVE_RETRIES: u32 = 3;
/// Idle timeout of pooled connections. A longer timeout would keep connections that the peer closed
/// while the function was frozen.
const POOL_IDLE: Duration = Duration::from_secs(5);
/// Maximum number of idle connections per host: the default concurrency of a subscription. With
/// fewer, a subscription at that concurrency would constantly open new connections.
const POOL_PER_HOST_MAX: usize = Concurrency::DEFAULT.most as usize;
/// Maximum number of header fields of a response. A response with more is a failure.
pub(super) const HEADERS_MAX: usize = 1_000;
/// Maximum size of the head of a response. A longer head is a failure. The client stops reading
/// shortly after this limit.
pub(super) const HEAD_MAX_BYTES: usize = 256 * 1_024;
/// HTTP/2 stream window: the unread bytes of one body that a peer may send. Equal to the size above
/// which a response counts as long.
const HTTP2_STREAM_WINDOW_BYTES: u32 = 64 * 1_024;
/// HTTP/2 connection window: the maximum of the protocol, because stream windows already limit each
/// body. With a smaller window, exchanges that wait for their turn to read a long response could
/// block those that read.
const HTTP2_CONNECTION_WINDOW_BYTES: u32 = (1 << 31) - 1;
/// HTTP/2 maximum frame size: the minimum of the protocol, which is also its default.
const HTTP2_FRAME_MAX_BYTES: u32 = 16 * 1_024;

/// The reason why no HTTP client can be built on this machine.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The TLS configuration could not be built.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The HTTP client could not be built.
    #[error("the HTTP client cannot be built")]
    Http(#[from] reqwest::Error),
}

/// An HTTP client with its connection pool.
pub(super) type Client = hyper_util::client::legacy::Client<Connector, Full<Bytes>>;

/// The HTTP clients of a sender, each built on first use.
#[derive(Debug)]
pub(super) struct Clients {
    network: Network,
    policy: Arc<AddressPolicy>,
    tls: TlsConfigs,
    recent: Mutex<Recent<Use, Client>>,
}

/// The key of a client: its kind, and the fingerprint of its TLS identity and authorities, if any.
type Use = (ClientKind, Option<[u8; 32]>);

impl Clients {
    /// Prepares the TLS configurations, but builds no client. Clients are built on first use.
    pub(super) fn new(network: &Network, policy: Arc<AddressPolicy>) -> Result<Self, TlsError> {
        let (network, tls) = (network.clone(), TlsConfigs::new(network)?);
        Ok(Self { network, policy, tls, recent: Mutex::new(Recent::new(CLIENTS_MAX)) })
    }

    /// Returns the client for requests of this kind with these TLS requirements.
    pub(super) fn client(&self, kind: ClientKind, tls: &RequestTls) -> Result<Client, TlsError> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.get_or_insert(&(kind, tls.fingerprint()), || {
            let tls = match kind.in_clear {
                true if tls.identity.is_some() => {
                    return Err(TlsError::Identity("it can be sent over https only".to_owned()));
                }
                true => self.tls.in_clear(),
                false => self.tls.config(tls)?,
            };
            let (lookup, policy) = (Arc::clone(&self.network.lookup), Arc::clone(&self.policy));
            Ok(client(CheckingResolver { lookup, policy, kind }, tls))
        })
    }
}

fn client(resolver: CheckingResolver, tls: Arc<ClientConfig>) -> Client {
    let in_clear = resolver.kind.in_clear;
    let mut tcp = HttpConnector::new_with_resolver(resolver);
    // The layer above adds TLS.
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(TCP_KEEPALIVE));
    tcp.set_keepalive_interval(Some(TCP_KEEPALIVE));
    tcp.set_keepalive_retries(Some(TCP_KEEPALIVE_RETRIES));
    // The connector divides this time among the addresses of a name.
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(UNSENT_MAX));
    let mut connector = HttpsConnector::from((MeteredConnector(tcp), tls));
    if !in_clear {
        connector.enforce_https();
    }
    hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_PER_HOST_MAX)
        .http1_max_headers(HEADERS_MAX)
        .http1_max_buf_size(HEAD_MAX_BYTES)
        .http2_initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES)
        .http2_initial_connection_window_size(HTTP2_CONNECTION_WINDOW_BYTES)
        .http2_max_frame_size(HTTP2_FRAME_MAX_BYTES)
        .http2_max_header_list_size(HEAD_MAX_BYTES as u32)
        .build(Connector(connector))
}
type Connecting<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;
type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Opens connections within [`CONNECT_TIMEOUT`], with TLS for `https` URLs.
#[derive(Clone)]
pub(super) struct Connector(HttpsConnector<MeteredConnector>);

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<MeteredStream>>;
    type Error = AnyError;
    type Future = Connecting<Self::Response, AnyError>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), AnyError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = tokio::time::timeout(CONNECT_TIMEOUT, self.0.call(uri));
        Box::pin(async move {
            let late =
                |_| io::Error::new(io::ErrorKind::TimedOut, "the connection attempt timed out");
            connecting.await.map_err(late)?
        })
    }
}

/// Opens connections without TLS, and counts their bytes.
#[derive(Clone)]
struct MeteredConnector(HttpConnector<CheckingResolver>);

impl Service<Uri> for MeteredConnector {
    type Response = TokioIo<MeteredStream>;
    type Error = <HttpConnector<CheckingResolver> as Service<Uri>>::Error;
    type Future = Connecting<Self::Response, Self::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.0.call(uri);
        Box::pin(
            async move { Ok(TokioIo::new(MeteredStream::new(connecting.await?.into_inner()))) },
        )
    }
}
