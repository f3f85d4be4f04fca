//! The clients of the sender: one for each kind, which decides which addresses may be reached, and for what
//! TLS needs of its own (`tls.rs`). Whoever has another identity has another client, and so connections of its own.
//!
//! Separate from the sender, because each limit of a connection is set here: how long connecting may
//! take, how long the connection may be idle, how much a head or a window may hold. What it may send
//! altogether is in `metered.rs`. reqwest, which is built of the same parts, lets nobody wrap its
//! connections, so that nothing above it can count what is read of one, or close it.
//!
//! Promises: at most [`CLIENTS_MAX`] are kept.

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

/// So many clients are kept; with one more, the least recently used one is dropped with the last of its
/// exchanges. Only those with an identity or authorities of their own are many.
const CLIENTS_MAX: usize = 256;
/// Connecting, TLS included, takes no longer; the request's own deadline may be shorter.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection whose other side takes no bytes is closed after this time, even if it was dropped
/// before: its last bytes must be sent first. Other systems than Linux have no such limit.
#[cfg(target_os = "linux")]
const UNSENT_MAX: Duration = Duration::from_secs(30);
/// Silence on a connection is broken by a probe of TCP after this time, and so often.
const TCP_KEEPALIVE: Duration = Duration::from_secs(15);
/// So many probes without an answer end a connection.
const TCP_KEEPALIVE_RETRIES: u32 = 3;
/// A connection that was idle for longer is closed: the other side may have closed it while the
/// function was frozen.
const POOL_IDLE: Duration = Duration::from_secs(5);
/// How many connections to one host may be idle: the default concurrency of a subscription. With
/// fewer, a subscription at that concurrency would open new connections all the time.
const POOL_PER_HOST_MAX: usize = Concurrency::DEFAULT.most as usize;
/// A response with more headers is a failure.
pub(super) const HEADERS_MAX: usize = 1_000;
/// A response with a longer head is a failure. The client stops reading soon after.
pub(super) const HEAD_MAX_BYTES: usize = 256 * 1_024;
/// An HTTP/2 peer may send this much of a body that is not read yet: as much as is read at most.
const HTTP2_STREAM_WINDOW_BYTES: u32 = 64 * 1_024;
/// The same for all bodies of a connection: as much as the protocol allows, since the windows of its streams bound
/// them already. Exchanges that wait for their turn to read a long answer would use up a smaller one, and
/// those that read would get no more.
const HTTP2_CONNECTION_WINDOW_BYTES: u32 = (1 << 31) - 1;
/// The protocol's minimum, which is its default.
const HTTP2_FRAME_MAX_BYTES: u32 = 16 * 1_024;

/// Why no client can be built on this machine.
#[derive(Debug, Error)]
pub enum ClientError {
    /// Without a TLS configuration.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// For another reason.
    #[error("no HTTP client can be built")]
    Http(#[from] reqwest::Error),
}

/// A client with its pool of connections.
pub(super) type Client = hyper_util::client::legacy::Client<Connector, Full<Bytes>>;

/// The clients, built at first use.
#[derive(Debug)]
pub(super) struct Clients {
    network: Network,
    policy: Arc<AddressPolicy>,
    tls: TlsConfigs,
    recent: Mutex<Recent<Use, Client>>,
}

/// What the requests of one client have in common: its kind, and what TLS needs if that is more than for others.
type Use = (ClientKind, Option<[u8; 32]>);

impl Clients {
    /// No clients yet, but all they need of the machine.
    pub(super) fn new(network: &Network, policy: Arc<AddressPolicy>) -> Result<Self, TlsError> {
        let (network, tls) = (network.clone(), TlsConfigs::new(network)?);
        Ok(Self { network, policy, tls, recent: Mutex::new(Recent::new(CLIENTS_MAX)) })
    }

    /// The client that checks addresses by the rules of this kind, for requests that need this of TLS.
    pub(super) fn of(&self, kind: ClientKind, tls: &RequestTls) -> Result<Client, TlsError> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.get_or_insert(&(kind, tls.fingerprint()), || {
            let tls = match kind.in_clear {
                true if tls.identity.is_some() => {
                    return Err(TlsError::Identity("it is shown by https only".to_owned()));
                }
                true => self.tls.in_clear(),
                false => self.tls.of(tls)?,
            };
            let (lookup, policy) = (Arc::clone(&self.network.lookup), Arc::clone(&self.policy));
            Ok(client(CheckingResolver { lookup, policy, kind }, tls))
        })
    }
}

fn client(resolver: CheckingResolver, tls: Arc<ClientConfig>) -> Client {
    let in_clear = resolver.kind.in_clear;
    let mut tcp = HttpConnector::new_with_resolver(resolver);
    // The layer above it adds TLS.
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(TCP_KEEPALIVE));
    tcp.set_keepalive_interval(Some(TCP_KEEPALIVE));
    tcp.set_keepalive_retries(Some(TCP_KEEPALIVE_RETRIES));
    // Divided among the addresses of a name.
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

/// Connects, with TLS if the URL asks for it, in [`CONNECT_TIMEOUT`].
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
            let late = |_| io::Error::new(io::ErrorKind::TimedOut, "connecting takes too long");
            connecting.await.map_err(late)?
        })
    }
}

/// Connects without TLS, and counts what is read.
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
