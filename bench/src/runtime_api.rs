//! The Lambda Runtime API, for one function process at a time.
//!
//! Separate because it is the one road on which work goes in and answers come back: `next` waits
//! until there is an invocation, `response` and `error` end it. The moment of each `next` is told,
//! for the first one ends the start.
//! <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>
//!
//! Does not time out an invocation; who waits for the answer does.

use std::time::Instant;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::{Mutex, mpsc};

use crate::server::{Body, respond};

/// What the paths begin with.
pub(crate) const PREFIX: &str = "/2018-06-01/runtime/";
/// The longest an invocation may take, as the function is told.
const INVOCATION_MAX_MS: u128 = 120_000;
const FUNCTION_ARN: &str = "arn:aws:lambda:us-east-1:000000000000:function:bench";

/// What a function says.
enum Said {
    Next(Instant),
    Answer(Bytes),
    Error(Bytes),
}

/// The side of the function.
pub(crate) struct RuntimeApi {
    invocations: Mutex<mpsc::Receiver<Bytes>>,
    said: mpsc::Sender<Said>,
}

/// The side of the bench.
pub(crate) struct Invoker {
    invocations: mpsc::Sender<Bytes>,
    said: mpsc::Receiver<Said>,
}

/// Both sides.
pub(crate) fn runtime_api() -> (RuntimeApi, Invoker) {
    let (invocations, work) = mpsc::channel(1);
    let (said, hearing) = mpsc::channel(8);
    (RuntimeApi { invocations: Mutex::new(work), said }, Invoker { invocations, said: hearing })
}

impl RuntimeApi {
    /// Answers one request of the function.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> anyhow::Result<Response<Body>> {
        let path = request.uri().path()[PREFIX.len()..].to_owned();
        if request.method() == Method::GET && path == "invocation/next" {
            return self.next().await;
        }
        let body = request.into_body().collect().await?.to_bytes();
        let said = if path.ends_with("/response") { Said::Answer(body) } else { Said::Error(body) };
        self.said.send(said).await?;
        Ok(respond(StatusCode::ACCEPTED, "application/json", Bytes::new()))
    }

    async fn next(&self) -> anyhow::Result<Response<Body>> {
        self.said.send(Said::Next(crate::clock::now())).await?;
        let body = self.invocations.lock().await.recv().await.context("there is no more work")?;
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
    /// Waits until the function asks for work; says when it did.
    pub(crate) async fn ready(&mut self) -> anyhow::Result<Instant> {
        match self.said.recv().await.context("the server has ended")? {
            Said::Next(at) => Ok(at),
            Said::Answer(body) | Said::Error(body) => {
                bail!("instead of asking: {}", String::from_utf8_lossy(&body))
            }
        }
    }

    /// One invocation of a function that has asked for it; returns its answer once it asks for the
    /// next one.
    pub(crate) async fn invoke(&mut self, event: Bytes) -> anyhow::Result<Bytes> {
        self.invocations.send(event).await?;
        let answer = match self.said.recv().await.context("the server has ended")? {
            Said::Answer(body) => body,
            Said::Error(body) => bail!("the invocation failed: {}", String::from_utf8_lossy(&body)),
            Said::Next(_) => bail!("the function asked for more without an answer"),
        };
        self.ready().await?;
        Ok(answer)
    }
}
