//! The Lambda Runtime API, for one function process at a time.
//!
//! The API is the only channel to the function: `next` waits for an invocation, and `response` or
//! `error` ends it. Each `next` is reported with its time, because the first one ends the start.
//! <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>
//!
//! The API does not time out an invocation; the caller that waits for the response does.

use std::time::Instant;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::{Mutex, mpsc};

use crate::http::{Body, respond};

/// The prefix of every path of the Runtime API.
pub(crate) const PREFIX: &str = "/2018-06-01/runtime/";
/// The prefix of every path of the Extensions API. A function registers with that API to be
/// notified before Lambda ends it.
/// <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-extensions-api.html>
pub(crate) const EXTENSIONS: &str = "/2020-01-01/extension/";
/// The time limit of an invocation, as reported to the function.
const INVOCATION_MAX_MS: u128 = 120_000;
const FUNCTION_ARN: &str = "arn:aws:lambda:us-east-1:000000000000:function:bench";

/// A call by the function.
enum Call {
    Next(Instant),
    Response(Bytes),
    Error(Bytes),
}

/// The server side of the API, which the function calls.
pub(crate) struct RuntimeApi {
    invocations: Mutex<mpsc::Receiver<Bytes>>,
    calls: mpsc::Sender<Call>,
}

/// The bench's side of the API, which invokes the function.
pub(crate) struct Invoker {
    invocations: mpsc::Sender<Bytes>,
    calls: mpsc::Receiver<Call>,
}

/// Creates the two connected sides of the API.
pub(crate) fn runtime_api() -> (RuntimeApi, Invoker) {
    // Lambda gives a process one invocation at a time.
    let (invocations, queued) = mpsc::channel(1);
    let (calls, received) = mpsc::channel(8);
    (
        RuntimeApi { invocations: Mutex::new(queued), calls },
        Invoker { invocations, calls: received },
    )
}

/// Answers the calls of an extension. Registration succeeds, and `next` waits forever.
pub(crate) async fn extension(path: &str) -> Response<Body> {
    if path.ends_with("/next") {
        std::future::pending::<()>().await;
    }
    let mut registered = respond(StatusCode::OK, "application/json", Bytes::from_static(b"{}"));
    let id = http::HeaderValue::from_static("bench");
    registered.headers_mut().insert("lambda-extension-identifier", id);
    registered
}

impl RuntimeApi {
    pub(crate) async fn handle(
        &self,
        request: Request<Incoming>,
    ) -> anyhow::Result<Response<Body>> {
        let path = request.uri().path()[PREFIX.len()..].to_owned();
        if request.method() == Method::GET && path == "invocation/next" {
            return self.next().await;
        }
        let body = request.into_body().collect().await?.to_bytes();
        let call =
            if path.ends_with("/response") { Call::Response(body) } else { Call::Error(body) };
        self.calls.send(call).await?;
        Ok(respond(StatusCode::ACCEPTED, "application/json", Bytes::new()))
    }

    async fn next(&self) -> anyhow::Result<Response<Body>> {
        self.calls.send(Call::Next(crate::clock::now())).await?;
        let invocation = self.invocations.lock().await.recv().await;
        let body = invocation.context("the bench has no more invocations")?;
        let mut response = respond(StatusCode::OK, "application/json", body);
        let deadline_ms = crate::clock::unix_ms() + INVOCATION_MAX_MS;
        let headers = response.headers_mut();
        headers.insert(
            "lambda-runtime-aws-request-id",
            "8476a536-e9f4-11e8-9739-2dfe598c3fcd".parse()?,
        );
        headers.insert("lambda-runtime-deadline-ms", deadline_ms.to_string().parse()?);
        headers.insert("lambda-runtime-invoked-function-arn", FUNCTION_ARN.parse()?);
        headers
            .insert("lambda-runtime-trace-id", "Root=1-5759e988-bd862e3fe1be46a994272793".parse()?);
        Ok(response)
    }
}

impl Invoker {
    /// Waits for the function's next request for an invocation and returns its time.
    pub(crate) async fn ready(&mut self) -> anyhow::Result<Instant> {
        match self.calls.recv().await.context("the server has ended")? {
            Call::Next(at) => Ok(at),
            Call::Response(body) | Call::Error(body) => {
                bail!(
                    "the function sent a response before it requested work: {}",
                    String::from_utf8_lossy(&body)
                )
            }
        }
    }

    /// Invokes a function that has requested work. Returns its response after it requests the next
    /// invocation.
    pub(crate) async fn invoke(&mut self, event: Bytes) -> anyhow::Result<Bytes> {
        self.invocations.send(event).await?;
        let response = match self.calls.recv().await.context("the server has ended")? {
            Call::Response(body) => body,
            Call::Error(body) => bail!("the invocation failed: {}", String::from_utf8_lossy(&body)),
            Call::Next(_) => bail!("the function requested more work without a response"),
        };
        // Work after the response, such as flushing a log, is part of the cost.
        self.ready().await?;
        Ok(response)
    }
}
