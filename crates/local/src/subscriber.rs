//! A sample subscriber: reports each request that it receives, and responds with configured
//! statuses.
//!
//! The subscriber is a destination for trials. It accepts every path and method, and consents to
//! every validation request. Validation requests do not consume a configured status.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use adapters::machine::Machine;
use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use delivery::machine::consent::{ALLOWED_ORIGIN, ALLOWED_RATE, REQUEST_RATE};
use delivery::ports::Clock as _;
use delivery::request::REQUEST_ORIGIN;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::guard::Hosts;

/// A request that the subscriber received.
#[derive(Debug, Clone)]
pub struct Received {
    /// Time of receipt, in milliseconds since 1970.
    pub at_ms: u64,
    /// The HTTP method of the request.
    pub method: Method,
    /// The path of the request's URL.
    pub path: String,
    /// The header fields of the request.
    pub headers: HeaderMap,
    /// The complete body of the request.
    pub body: Bytes,
}

impl Received {
    /// True if the request asks for consent and delivers nothing.
    #[must_use]
    pub fn is_handshake(&self) -> bool {
        consent_response(self).is_some()
    }
}

/// Returns a function that responds with these statuses in turn, each after the same delay. The
/// last status repeats, and an empty list means 200.
pub fn status_sequence(
    statuses: Vec<StatusCode>,
    delay_ms: u64,
) -> impl Fn(&Received) -> (StatusCode, u64) + Send + Sync + 'static {
    let answered = AtomicUsize::new(0);
    move |_| {
        let index = answered.fetch_add(1, Ordering::Relaxed);
        let status = statuses.get(index).or(statuses.last()).copied();
        (status.unwrap_or(StatusCode::OK), delay_ms)
    }
}

/// A subscriber that listens but does not serve requests yet.
#[derive(Debug)]
pub struct Subscriber {
    listener: TcpListener,
    hosts: Hosts,
}

impl Subscriber {
    /// Listens on this port of 127.0.0.1; 0 selects any free port.
    ///
    /// # Errors
    /// Fails if the port is in use.
    pub async fn listen(port: u16) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        Ok(Self { listener, hosts: Hosts::default() })
    }

    /// Sets the hosts for which requests are accepted, such as the name of a tunnel.
    #[must_use]
    pub fn answering_for(self, hosts: Hosts) -> Self {
        Self { hosts, ..self }
    }

    /// Returns the port on which the subscriber listens.
    ///
    /// # Errors
    /// Fails if the operating system does not return the address.
    pub fn port(&self) -> std::io::Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    /// Serves requests until the future is dropped. `answer` returns the status for a request, and
    /// the delay before the response in milliseconds. `on_request` is called with each request and
    /// its status.
    ///
    /// # Errors
    /// Fails if the listener fails.
    pub async fn serve(
        self,
        answer: impl Fn(&Received) -> (StatusCode, u64) + Send + Sync + 'static,
        on_request: impl Fn(&Received, StatusCode) + Send + Sync + 'static,
    ) -> std::io::Result<()> {
        let callbacks = Arc::new((answer, on_request));
        let handler = async move |method, uri: Uri, headers, body| {
            let (at_ms, path) = (Machine.now_ms(), uri.path().to_owned());
            let received = Received { at_ms, method, path, headers, body };
            respond(&received, &callbacks.0, &callbacks.1).await
        };
        axum::serve(self.listener, self.hosts.guard(Router::new().fallback(handler))).await
    }
}

async fn respond(
    received: &Received,
    answer: impl Fn(&Received) -> (StatusCode, u64),
    on_request: impl Fn(&Received, StatusCode),
) -> Response {
    if let Some(response) = consent_response(received) {
        on_request(received, StatusCode::OK);
        return response;
    }
    let (status, delay_ms) = answer(received);
    // Call this before the delay, so that a request whose sender gives up is reported too.
    on_request(received, status);
    if delay_ms > 0 {
        Machine.sleep(delay_ms).await;
    }
    status.into_response()
}

/// Returns the response to a validation request: CloudEvents' `OPTIONS`, or Event Grid's validation
/// event. Returns `None` for any other request.
fn consent_response(received: &Received) -> Option<Response> {
    let header = |name: &str| received.headers.get(name).cloned();
    if let Some(origin) = header(REQUEST_ORIGIN).filter(|_| received.method == Method::OPTIONS) {
        let rate = header(REQUEST_RATE).unwrap_or(HeaderValue::from_static("*"));
        return Some([(ALLOWED_ORIGIN, origin), (ALLOWED_RATE, rate)].into_response());
    }
    header("aeg-event-type").filter(|kind| kind == "SubscriptionValidation")?;
    let events: Value = serde_json::from_slice(&received.body).ok()?;
    let code = events.pointer("/0/data/validationCode")?;
    Some(Json(json!({ "validationResponse": code })).into_response())
}
