//! A sample subscriber: prints what it receives and answers as told.
//!
//! What a destination looks like from the other side, for trying things out. It answers every path
//! and method, and it consents to everything: a question for consent uses up no answer.

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

/// How a subscriber answers.
pub trait Answers: Send + Sync + 'static {
    /// The status for this request, and how long to wait before giving it.
    fn answer(&self, received: &Received) -> (StatusCode, u64);
}

/// One received request.
#[derive(Debug, Clone)]
pub struct Received {
    /// When it came.
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
    /// One line for people, and the body below it.
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

/// A list of statuses, the last of which repeats, each after the same delay.
#[derive(Debug)]
pub struct Told {
    statuses: Vec<StatusCode>,
    delay_ms: u64,
    given: AtomicUsize,
}

impl Told {
    /// Answers these in turn; an empty list is 200.
    #[must_use]
    pub fn new(statuses: Vec<StatusCode>, delay_ms: u64) -> Self {
        Self { statuses, delay_ms, given: AtomicUsize::new(0) }
    }
}

impl Answers for Told {
    fn answer(&self, _: &Received) -> (StatusCode, u64) {
        let turn = self.given.fetch_add(1, Ordering::Relaxed);
        let status =
            self.statuses.get(turn).or(self.statuses.last()).copied().unwrap_or(StatusCode::OK);
        (status, self.delay_ms)
    }
}

/// A subscriber that listens, not yet serving.
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
    /// When the machine does not say.
    pub fn port(&self) -> std::io::Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    /// Answers until the future is dropped; `seen` hears of each request and its status.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(
        self,
        answers: impl Answers,
        seen: impl Fn(&Received, StatusCode) + Send + Sync + 'static,
    ) -> std::io::Result<()> {
        let state: Arc<Desk> = Arc::new(Desk { answers: Box::new(answers), seen: Box::new(seen) });
        axum::serve(self.listener, Router::new().fallback(receive).with_state(state)).await
    }
}

struct Desk {
    answers: Box<dyn Answers>,
    #[expect(clippy::type_complexity, reason = "one callback, named by its field")]
    seen: Box<dyn Fn(&Received, StatusCode) + Send + Sync>,
}

async fn receive(
    State(desk): State<Arc<Desk>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let received =
        Received { at_ms: Machine.now_ms(), method, path: uri.path().to_owned(), headers, body };
    if let Some(consent) = consent(&received) {
        (desk.seen)(&received, StatusCode::OK);
        return consent;
    }
    let (status, delay_ms) = desk.answers.answer(&received);
    (desk.seen)(&received, status);
    if delay_ms > 0 {
        Machine.sleep(delay_ms).await;
    }
    status.into_response()
}

/// The answer to a question for consent: to CloudEvents' OPTIONS, or to Event Grid's validation
/// event.
fn consent(received: &Received) -> Option<Response> {
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
