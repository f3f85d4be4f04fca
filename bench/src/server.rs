//! The listeners for everything a function talks to: the Runtime API, SQS and S3, and the
//! subscriber.
//!
//! One process, told apart by path and header, so that nothing else runs beside the function and
//! its counters stand in one place. The subscriber has a port of its own, because dispatch delivers
//! nothing to the port of the Runtime API. Answers are the shortest that each client takes.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::cloud::Cloud;
use crate::runtime_api::{self, RuntimeApi};

/// What answers are made of.
pub(crate) type Body = Full<Bytes>;

/// Where the subscriber is: `/hook/<status>` answers with that status.
const HOOK: &str = "/hook/";

/// Everything that one function process talks to.
pub(crate) struct Server {
    /// Where Lambda and AWS are.
    pub(crate) aws: SocketAddr,
    /// Where the subscriber is.
    pub(crate) subscriber: SocketAddr,
    /// SQS and S3, with their counters.
    pub(crate) cloud: Arc<Cloud>,
    serving: [AbortHandle; 2],
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.iter().for_each(AbortHandle::abort);
    }
}

impl Server {
    /// Listens on free ports of the loopback address; the subscriptions are made for the address of
    /// the subscriber.
    pub(crate) async fn start(
        runtime_api: RuntimeApi,
        subscriptions: impl FnOnce(SocketAddr) -> String,
    ) -> anyhow::Result<Self> {
        let listen = async || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let (aws, subscriber) = (listen().await?, listen().await?);
        let addresses = (aws.local_addr()?, subscriber.local_addr()?);
        let cloud = Arc::new(Cloud::new(subscriptions(addresses.1)));
        let runtime_api = Arc::new(runtime_api);
        let serving = [aws, subscriber].map(|listener| {
            tokio::spawn(accept(listener, Arc::clone(&runtime_api), Arc::clone(&cloud)))
                .abort_handle()
        });
        Ok(Self { aws: addresses.0, subscriber: addresses.1, cloud, serving })
    }
}

async fn accept(listener: TcpListener, runtime_api: Arc<RuntimeApi>, cloud: Arc<Cloud>) {
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let (runtime_api, cloud) = (Arc::clone(&runtime_api), Arc::clone(&cloud));
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(&runtime_api, &cloud, request));
            let served = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer);
            // A function that is killed breaks its connections.
            let _ = served.await;
        });
    }
}

async fn answer(
    runtime_api: &RuntimeApi,
    cloud: &Cloud,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path();
    let answer = if path.starts_with(runtime_api::PREFIX) {
        runtime_api.answer(request).await
    } else if let Some(status) = path.strip_prefix(HOOK) {
        let status = status.parse().unwrap_or(StatusCode::NOT_FOUND);
        swallow(request).await.map(|()| respond(status, "text/plain", Bytes::new()))
    } else {
        cloud.answer(request).await
    };
    Ok(answer.unwrap_or_else(|error| {
        respond(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", Bytes::from(error.to_string()))
    }))
}

/// Reads a body to its end.
pub(crate) async fn swallow(request: Request<Incoming>) -> anyhow::Result<()> {
    let mut body = request.into_body();
    while let Some(frame) = body.frame().await {
        frame?;
    }
    Ok(())
}

/// An answer.
pub(crate) fn respond(
    status: StatusCode,
    content_type: &'static str,
    body: Bytes,
) -> Response<Body> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
