//! The listener: accepts connections and routes each request to its service.
//!
//! Separate so that the services are independent of each other. Requests from web pages are refused
//! before routing. A request is for SQS if its `X-Amz-Target` begins with `AmazonSQS.`, and for
//! DynamoDB if it begins with `DynamoDB_`. A request in the old query protocol is refused with the
//! reason. All other requests are for S3.
//!
//! Promises: aborting the task of the server closes every connection. Does not support HTTP/2 or
//! TLS.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::TokioIo;
use rustack_sqs_http::service::{SqsHttpConfig, SqsHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::sqs::Queues;
use super::{dynamodb, s3};
use crate::guard::Hosts;

/// Prefix of the header `X-Amz-Target` in every SQS call of the JSON protocol.
const SQS_TARGET_PREFIX: &str = "AmazonSQS.";
/// Prefix of the header `X-Amz-Target` in every DynamoDB call.
const DYNAMODB_TARGET_PREFIX: &str = "DynamoDB_";

/// Pause after a failed accept. Without the pause, a lack of file descriptors would cause a busy
/// loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Error response for clients of the old query protocol, which expect XML.
const QUERY_PROTOCOL_ERROR: &str = "<ErrorResponse><Error><Type>Sender</Type><Code>UnsupportedProtocol</Code><Message>This server supports only the JSON protocol of SQS. Update the client: the AWS CLI and boto3 support it since the end of 2023.</Message></Error></ErrorResponse>";

type BodyError = Box<dyn std::error::Error + Send + Sync>;
type Body = UnsyncBoxBody<Bytes, BodyError>;

/// The services to which requests are routed.
#[derive(Clone)]
pub(super) struct Services {
    sqs: SqsHttpService<Queues>,
    dynamodb: dynamodb::Service,
    s3: s3::Service,
}

impl Services {
    pub(super) fn new(queues: Arc<Queues>, dynamodb: dynamodb::Service, s3: s3::Service) -> Self {
        Self { sqs: SqsHttpService::new(queues, SqsHttpConfig::default()), dynamodb, s3 }
    }
}

/// Accepts and serves connections until the task is aborted.
pub(super) async fn serve(listener: TcpListener, services: Services) {
    let mut connections = JoinSet::new();
    loop {
        // Join finished tasks; otherwise they would stay in the set.
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(connection(stream, services.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection to the local AWS was not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one connection until the client closes it.
async fn connection(stream: TcpStream, services: Services) {
    let service = service_fn(|request| route(&services, request));
    let served = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection to the local AWS was lost");
    }
}

/// Passes one request to its service.
async fn route(
    services: &Services,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    if let Err(refusal) = Hosts::default().check(request.headers(), request.uri()) {
        return Ok(refuse(refusal.status, "text/plain", refusal.text.into()));
    }
    if has_target(&request, SQS_TARGET_PREFIX) {
        return services.sqs.call(request).await.map(boxed);
    }
    if has_target(&request, DYNAMODB_TARGET_PREFIX) {
        return services.dynamodb.call(request).await.map(boxed);
    }
    if is_query_protocol(&request) {
        return Ok(refuse(
            StatusCode::BAD_REQUEST,
            "text/xml",
            Bytes::from_static(QUERY_PROTOCOL_ERROR.as_bytes()),
        ));
    }
    services.s3.call(request).await.map(boxed)
}

fn has_target(request: &Request<Incoming>, prefix: &str) -> bool {
    let target = request.headers().get("x-amz-target").map(http::HeaderValue::as_bytes);
    target.is_some_and(|target| target.starts_with(prefix.as_bytes()))
}

/// True if the request uses the old query protocol of SQS: a form, or a query with an `Action`.
fn is_query_protocol(request: &Request<Incoming>) -> bool {
    let content_type =
        request.headers().get(http::header::CONTENT_TYPE).map(http::HeaderValue::as_bytes);
    // S3 never receives such a form: browsers upload to it as multipart/form-data.
    let form =
        content_type.is_some_and(|value| value.starts_with(b"application/x-www-form-urlencoded"));
    let query = request.uri().query().unwrap_or_default();
    (form && request.method() == http::Method::POST)
        || query.split('&').any(|pair| pair.starts_with("Action="))
}

fn refuse(status: StatusCode, content_type: &'static str, text: Bytes) -> Response<Body> {
    let mut response = boxed(Response::new(Full::new(text)));
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(http::header::CONTENT_TYPE, content_type);
    response
}

/// Converts the response body of a service to the common body type.
fn boxed<B>(response: Response<B>) -> Response<Body>
where
    B: hyper::body::Body<Data = Bytes, Error: Into<BodyError>> + Send + 'static,
{
    response.map(|body| body.map_err(Into::into).boxed_unsync())
}
