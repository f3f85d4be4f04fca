//! A subscriber whose reaction to each request a test selects: late, with a body, or depending on
//! the request.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adapters::machine::Machine;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use delivery::ports::Clock as _;
use local::subscriber::Received;
use tokio::net::TcpListener;

/// The reaction to one request.
pub(crate) struct Reaction {
    status: u16,
    content_type: &'static str,
    body: String,
    after: Duration,
}

/// An empty response with this status.
pub(crate) fn answers(status: u16) -> Reaction {
    Reaction { status, content_type: "text/plain", body: String::new(), after: Duration::ZERO }
}

/// A response that is a structured CloudEvent.
pub(crate) fn replies(event: &str) -> Reaction {
    Reaction {
        content_type: "application/cloudevents+json",
        body: event.to_owned(),
        ..answers(200)
    }
}

impl Reaction {
    /// Delays the response by this time.
    pub(crate) fn after(self, after: Duration) -> Self {
        Self { after, ..self }
    }
}

/// Listens and responds until the test ends, and records the requests. Returns the port.
pub(crate) async fn serve(
    react: impl Fn(usize, &Received) -> Reaction + Send + Sync + 'static,
    keep: Arc<Mutex<Vec<Received>>>,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = listener.local_addr().expect("it listens").port();
    let shared = Arc::new((react, keep, AtomicUsize::new(0)));
    let answer = async move |request: Request| {
        let (react, keep, counter) = &*shared;
        let received = read(request).await;
        let reaction = react(counter.fetch_add(1, Ordering::Relaxed), &received);
        keep.lock().unwrap_or_else(PoisonError::into_inner).push(received);
        tokio::time::sleep(reaction.after).await;
        let status = StatusCode::from_u16(reaction.status).expect("a status");
        (status, [("content-type", reaction.content_type)], reaction.body)
    };
    tokio::spawn(axum::serve(listener, Router::new().fallback(answer)).into_future());
    port
}

async fn read(request: Request) -> Received {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.expect("a whole request");
    let path = head.uri.path().to_owned();
    Received { at_ms: Machine.now_ms(), method: head.method, path, headers: head.headers, body }
}
