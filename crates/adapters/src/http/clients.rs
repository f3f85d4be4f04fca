//! The clients of the sender: one for each origin, which is a kind of client, a host and a port, and what
//! TLS needs for it.
//!
//! A client keeps idle connections and cannot close one of them: it can only be dropped with all of
//! them. An endpoint that sends frames without end keeps such a connection busy long after its
//! exchange. So an exchange that was sent and ends without an answer retires the client of its origin: the next
//! exchange gets a new one, and the old one is dropped with the last of its exchanges. An exchange
//! that is kept open for a late answer has not ended. Other origins notice nothing. What is not
//! noticed either is an endpoint that answers and then sends frames without end: its connection is
//! closed once nobody has used it for [`POOL_IDLE`].
//!
//! Requests with an identity or authorities of their own have clients of their own, and so connections of their own (`tls.rs`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use delivery::address::{AddressPolicy, ClientKind};
use delivery::request::tls::RequestTls;
use delivery::subscription::MAX_CONCURRENCY;
use reqwest::{Client, redirect};
use thiserror::Error;
use url::{Position, Url};

use super::recent::Recent;
use super::tls::TlsConfigs;
use super::{Network, names};

/// So many origins have a client; with one more, the least recently used client is retired. A
/// client without connections takes 2.5 KiB, and less than 20 µs to build.
const CLIENTS_MAX: usize = 1_024;
/// Connecting, TLS included, takes no longer; the request's own deadline may be shorter.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection whose other side takes no bytes is closed after this time, even if it was dropped
/// before: its last bytes must be sent first. Other systems than Linux have no such limit.
#[cfg(target_os = "linux")]
const UNSENT_MAX: Duration = Duration::from_secs(30);
/// A connection that was idle for longer is closed: the other side may have closed it while the
/// function was frozen, or send frames without end after its answer.
const POOL_IDLE: Duration = Duration::from_secs(5);
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
/// The `user-agent` header of every request.
const USER_AGENT: &str = concat!("lastmile/", env!("CARGO_PKG_VERSION"));

/// Why no client can be built on this machine.
#[derive(Debug, Error)]
pub enum ClientError {
    /// Without a TLS configuration, for example because the machine has no certificates.
    #[error("no TLS configuration can be built")]
    Tls(#[from] rustls::Error),
    /// For another reason.
    #[error("no HTTP client can be built")]
    Http(#[from] reqwest::Error),
    /// The secrets of a subscription are no certificate and its key.
    #[error("the client certificate cannot be used: {0}")]
    Identity(String),
    /// A bundle of a subscription cannot be trusted.
    #[error("the caBundle cannot be used: {0}")]
    CaBundle(String),
}

/// The clients, built at first use.
#[derive(Debug)]
pub(super) struct Clients {
    network: Network,
    policy: Arc<AddressPolicy>,
    tls: TlsConfigs,
    recent: Mutex<Recent<Origin, Client>>,
}

/// What the requests of one client have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Origin {
    kind: ClientKind,
    /// The host, with the port unless it is that of the scheme.
    host: String,
    /// What TLS needs for it, if that is more than for others.
    tls: Option<[u8; 32]>,
}

/// The use of a client for one exchange. Unless it is [kept](Lease::keep), the client is retired with it.
#[derive(Debug)]
pub(super) struct Lease<'a> {
    clients: &'a Clients,
    origin: Origin,
    /// Which of the successive clients of this origin it is.
    number: u64,
    client: Client,
    is_kept: bool,
}

impl Clients {
    /// No clients yet, but all they need of the machine.
    pub(super) fn new(
        network: &Network,
        policy: Arc<AddressPolicy>,
    ) -> Result<Self, rustls::Error> {
        let (network, tls) = (network.clone(), TlsConfigs::new(network)?);
        Ok(Self { network, policy, tls, recent: Mutex::new(Recent::new(CLIENTS_MAX)) })
    }

    /// The client of a URL's origin, for requests that need this of TLS.
    pub(super) fn lease(
        &self,
        url: &Url,
        kind: ClientKind,
        tls: &RequestTls,
    ) -> Result<Lease<'_>, ClientError> {
        let host = url[Position::BeforeHost..Position::AfterPort].to_owned();
        let origin = Origin { kind, host, tls: tls.fingerprint() };
        let (client, number) = self.recent().get_or_insert(&origin, || self.client(kind, tls))?;
        Ok(Lease { clients: self, origin, number, client, is_kept: false })
    }

    fn recent(&self) -> MutexGuard<'_, Recent<Origin, Client>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client that checks addresses by the rules of this kind; one for plain HTTP trusts no
    /// certificate.
    fn client(&self, kind: ClientKind, tls: &RequestTls) -> Result<Client, ClientError> {
        let (lookup, policy) = (Arc::clone(&self.network.lookup), Arc::clone(&self.policy));
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
            .https_only(!kind.in_clear)
            .dns_resolver(names::CheckingResolver { lookup, policy, kind });
        #[cfg(target_os = "linux")]
        let builder = builder.tcp_user_timeout(UNSENT_MAX);
        let builder = match (kind.in_clear, &tls.identity) {
            (true, None) => builder.tls_certs_only([]),
            (true, Some(_)) => {
                return Err(ClientError::Identity("it is shown by https only".to_owned()));
            }
            (false, _) => builder.tls_backend_preconfigured(self.tls.of(tls)?),
        };
        Ok(builder.build()?)
    }
}

impl Lease<'_> {
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// The endpoint answered, or was never connected to: connections to it may be reused.
    pub(super) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            let retired = self.clients.recent().remove(&self.origin, self.number);
            // Here and not above, where the others would wait for it.
            drop(retired);
        }
    }
}
