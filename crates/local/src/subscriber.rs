//! A sample subscriber: reports each request it receives and responds with configured statuses.
//!
//! It is the other end of a delivery, for trying things out. It accepts every path and method, and
//! it consents to every validation request; those do not consume a configured status.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use adapters::machine::Machine;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use delivery::machine::consent::{ALLOWED_ORIGIN, ALLOWED_RATE, REQUEST_RATE};
use delivery::ports::Clock as _;
use delivery::request::REQUEST_ORIGIN;
use delivery::time::moment;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// How a subscriber responds.
pub trait Answers: Send + Sync + 'static {
    /// The status for this request, and the delay before the response, in milliseconds.
    fn answer(&self, received: &Received) -> (StatusCode, u64);
}

/// A received request.
#[derive(Debug, Clone)]
pub struct Received {
    /// When it was received.
    pub at_ms: u64,
    /// Its method.
    pub method: Method,
    /// Its path.
    pub path: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

impl Received {
    /// A line for people, followed by the body.
    #[must_use]
    pub fn describe(&self, status: StatusCode) -> String {
        let content_type =
            self.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or("-");
        let (at, bytes) = (moment::rfc3339(self.at_ms), self.body.len());
        let body = String::from_utf8_lossy(&self.body);
        format!(
            "{at} {} {} {content_type} {bytes} bytes -> {}\n{body}",
            self.method,
            self.path,
            status.as_u16()
        )
    }
}

/// A sequence of statuses, each after the same delay; the last one repeats.
#[derive(Debug)]
pub struct StatusSequence {
    statuses: Vec<StatusCode>,
    delay_ms: u64,
    answered: AtomicUsize,
}

impl StatusSequence {
    /// Responds with these in turn; an empty list means 200.
    #[must_use]
    pub fn new(statuses: Vec<StatusCode>, delay_ms: u64) -> Self {
        Self { statuses, delay_ms, answered: AtomicUsize::new(0) }
    }
}

impl Answers for StatusSequence {
    fn answer(&self, _: &Received) -> (StatusCode, u64) {
        let index = self.answered.fetch_add(1, Ordering::Relaxed);
        let status =
            self.statuses.get(index).or(self.statuses.last()).copied().unwrap_or(StatusCode::OK);
        (status, self.delay_ms)
    }
}

/// A subscriber that listens but does not serve yet.
#[derive(Debug)]
pub struct Subscriber {
    listener: TcpListener,
}

impl Subscriber {
    /// Listens on this port of 127.0.0.1; 0 takes any free one.
    ///
    /// # Errors
    /// When the port is taken.
    pub async fn listen(port: u16) -> std::io::Result<Self> {
        Ok(Self { listener: TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await? })
    }

    /// The port it listens on.
    ///
    /// # Errors
    /// When the operating system does not return the address.
    pub fn port(&self) -> std::io::Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    /// Serves until the future is dropped; calls `on_request` with each request and its status.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(
        self,
        answers: impl Answers,
        on_request: impl Fn(&Received, StatusCode) + Send + Sync + 'static,
    ) -> std::io::Result<()> {
        let state = Arc::new(SubscriberState {
            answers: Box::new(answers),
            on_request: Box::new(on_request),
        });
        axum::serve(self.listener, Router::new().fallback(receive).with_state(state)).await
    }
}

struct SubscriberState {
    answers: Box<dyn Answers>,
    #[expect(clippy::type_complexity, reason = "one callback, named by its field")]
    on_request: Box<dyn Fn(&Received, StatusCode) + Send + Sync>,
}

async fn receive(
    State(state): State<Arc<SubscriberState>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let received =
        Received { at_ms: Machine.now_ms(), method, path: uri.path().to_owned(), headers, body };
    if let Some(response) = consent_response(&received) {
        (state.on_request)(&received, StatusCode::OK);
        return response;
    }
    let (status, delay_ms) = state.answers.answer(&received);
    // Before the delay, so that a request whose sender gives up is seen too.
    (state.on_request)(&received, status);
    if delay_ms > 0 {
        Machine.sleep(delay_ms).await;
    }
    status.into_response()
}

/// The response to a validation request: CloudEvents' `OPTIONS`, or Event Grid's validation event.
/// `None` for any other request.
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
