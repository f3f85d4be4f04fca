//! Waits for SIGTERM. Before Lambda ends a sandbox, it sends SIGTERM to processes with a registered
//! extension, and waits half a second. In this time, a function writes the metrics of the last half
//! minute, which it would lose otherwise.
//!
//! Separate from `runtime`, because it uses Lambda's Extensions API. The extension registers for no
//! events, so no invocation waits for it. Where that API is missing, the function works, but ends
//! without a signal.
//! <https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html#runtimes-lifecycle-shutdown>

use std::future;
use std::time::Duration;

use ::http::{Request, Uri};
use futures::future::BoxFuture;
use lambda_runtime_api_client::PooledClient;
use lambda_runtime_api_client::body::Body;
use tokio::signal::unix::{SignalKind, signal};

use crate::settings::AWS_LAMBDA_RUNTIME_API;
use crate::telemetry;

/// Path of the registration in the Extensions API.
/// <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-extensions-api.html>
const REGISTER: &str = "/2020-01-01/extension/register";
const NEXT: &str = "/2020-01-01/extension/event/next";
const NAME: &str = "lastmile-stop";
const ID_HEADER: &str = "lambda-extension-identifier";
/// Timeout of the registration. Short, because the start of the function waits for it.
const REGISTER_WITHIN: Duration = Duration::from_secs(1);

/// Registers the extension. Must be called before the first invocation is requested. The returned
/// future completes at SIGTERM.
pub async fn announced() -> impl Future<Output = ()> {
    let registered = tokio::time::timeout(REGISTER_WITHIN, register()).await;
    let waiting = match registered.unwrap_or_else(|_| Err("no response".to_owned())) {
        Ok(waiting) => Some(waiting),
        Err(problem) => {
            telemetry::stop_unannounced(&problem);
            None
        }
    };
    async move {
        tokio::select! {
            () = terminated() => {}
            () = never(waiting) => {}
        }
    }
}

/// Waits for extension events, which never come. Lambda completes a start only when every extension
/// waits for events.
async fn never(waiting: Option<BoxFuture<'static, ()>>) {
    if let Some(waiting) = waiting {
        waiting.await;
    }
    future::pending::<()>().await;
}

async fn terminated() {
    match signal(SignalKind::terminate()) {
        Ok(mut signals) => {
            signals.recv().await;
        }
        Err(_) => future::pending().await,
    }
}

/// Registers for no events. Returns a future that requests the next event.
async fn register() -> Result<BoxFuture<'static, ()>, String> {
    let api = std::env::var(AWS_LAMBDA_RUNTIME_API).map_err(|error| error.to_string())?;
    let endpoint: Uri =
        format!("http://{api}").parse().map_err(|_| format!("{api} is not a host and port"))?;
    let client = PooledClient::builder().with_endpoint(endpoint).build();
    let register = Request::post(REGISTER).header("lambda-extension-name", NAME);
    let register =
        register.body(Body::from(r#"{"events":[]}"#)).map_err(|error| error.to_string())?;
    let response = client.call(register).await.map_err(|error| error.to_string())?;
    let id = response.headers().get(ID_HEADER).filter(|_| response.status().is_success());
    let id = id.ok_or_else(|| {
        format!(
            "the registration responded with status {}; expected success and the header {ID_HEADER}",
            response.status()
        )
    })?;
    let next = Request::get(NEXT).header(ID_HEADER, id).body(Body::empty());
    let next = client.call(next.map_err(|error| error.to_string())?);
    Ok(Box::pin(async move {
        // Ignore the response: only the signal ends the process.
        let _ = next.await;
    }))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn an_answer_to_the_extension_stops_nothing() {
        assert_eq!(never(Some(future::ready(()).boxed())).now_or_never(), None);
        assert_eq!(never(None).now_or_never(), None);
    }
}
