//! The listeners for all services that a function uses: the Runtime API, SQS and S3, and the
//! subscriber.
//!
//! The bench serves all of them itself, and routes requests by path and header. Therefore only the
//! function runs beside the bench, and all counters are in one process. The subscriber has a port
//! of its own, because dispatch refuses to deliver to the port of the Runtime API. Responses are
//! the shortest that each client accepts.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::clock;
use crate::cloud::Cloud;
use crate::events;
use crate::http::{Body, respond};
use crate::runtime_api::{self, Invoker, RuntimeApi, runtime_api};

/// The path prefix of the subscriber: `/hook/<status>` responds with that status.
const HOOK: &str = "/hook/";

/// All services that one function process uses.
pub(crate) struct Server {
    /// The address of the Runtime API, SQS and S3.
    pub(crate) aws: SocketAddr,
    /// The address of the subscriber.
    pub(crate) subscriber: SocketAddr,
    /// SQS and S3 with their counters.
    pub(crate) cloud: Arc<Cloud>,
    arrivals: Arc<Arrivals>,
    /// A dropped `JoinSet` aborts its tasks, so they end with the server.
    _serving: JoinSet<()>,
}

impl Server {
    /// Listens on free ports of the loopback address. The returned `Invoker` invokes the function.
    pub(crate) async fn start() -> anyhow::Result<(Self, Invoker)> {
        Self::start_with(0).await
    }

    /// Starts a server whose subscriber has this port; 0 selects a free port.
    pub(crate) async fn start_with(subscriber: u16) -> anyhow::Result<(Self, Invoker)> {
        Self::start_of(subscriber, |subscriber| Cloud::new(events::subscriptions(subscriber))).await
    }

    /// Starts a server with the services that `cloud` makes for the subscriber's address.
    pub(crate) async fn start_of(
        subscriber: u16,
        cloud: impl FnOnce(SocketAddr) -> Cloud,
    ) -> anyhow::Result<(Self, Invoker)> {
        let listen = async |port| {
            // An ended server occupies its port until its tasks are dropped.
            for _ in 0..50 {
                match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
                    Err(error) if error.kind() == ErrorKind::AddrInUse => {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    bound => return bound,
                }
            }
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
        };
        let (aws, subscriber) = (listen(0).await?, listen(subscriber).await?);
        let addresses = (aws.local_addr()?, subscriber.local_addr()?);
        let cloud = Arc::new(cloud(addresses.1));
        let (runtime_api, invoker) = runtime_api();
        let arrivals = Arc::<Arrivals>::default();
        let services = Services { runtime_api: Arc::new(runtime_api), cloud, arrivals };
        let serving = [aws, subscriber].map(|listener| accept(listener, services.clone()));
        let _serving = JoinSet::from_iter(serving);
        let Services { cloud, arrivals, .. } = services;
        let (aws, subscriber) = addresses;
        Ok((Self { aws, subscriber, cloud, arrivals, _serving }, invoker))
    }

    /// Returns the time of the first request for this path of the subscriber.
    pub(crate) fn arrival(&self, path: &str) -> Option<Instant> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).get(path).copied()
    }
}

/// The first arrival at each path of the subscriber.
type Arrivals = Mutex<BTreeMap<String, Instant>>;

/// The services behind both ports.
#[derive(Clone)]
struct Services {
    runtime_api: Arc<RuntimeApi>,
    cloud: Arc<Cloud>,
    arrivals: Arc<Arrivals>,
}

async fn accept(listener: TcpListener, services: Services) {
    while let Ok((stream, _)) = listener.accept().await {
        // Nagle's algorithm and delayed ACKs would add up to 40 ms to a small response.
        let _ = stream.set_nodelay(true);
        let services = services.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| handle(&services, request));
            let served = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            // Killing the function at the end of a run breaks its connections, which is no error.
            let _ = served.await;
        });
    }
}

fn note_arrival(arrivals: &Arrivals, path: &str) {
    let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
    arrivals.entry(path.to_owned()).or_insert_with(clock::now);
}

async fn handle(
    Services { runtime_api, cloud, arrivals }: &Services,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path();
    let response = if path.starts_with(runtime_api::PREFIX) {
        runtime_api.handle(request).await
    } else if path.starts_with(runtime_api::EXTENSIONS) {
        Ok(runtime_api::extension(path).await)
    } else if let Some(status) = path.strip_prefix(HOOK) {
        let status = status.parse().unwrap_or(StatusCode::NOT_FOUND);
        note_arrival(arrivals, path);
        let read = request.into_body().collect().await;
        read.map(|_| respond(status, "text/plain", Bytes::new())).map_err(Into::into)
    } else {
        cloud.handle(request).await
    };
    Ok(response.unwrap_or_else(|error| {
        respond(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", Bytes::from(error.to_string()))
    }))
}
