//! The destinations of a campaign. They accept events, respond slowly, fail, refuse or do not
//! respond, and count accepted events.
//!
//! This module is separate from [`crate::subscriber`], which keeps every request: a campaign has
//! too many.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::{StatusCode, Uri};
use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::Value;
use tokio::net::TcpListener;

/// A delivery: the path of its subscription, and the id of its event.
pub(super) type Delivered = (String, String);

/// The behaviour of a destination.
#[derive(Debug, Clone, Copy)]
pub(super) enum Behaviour {
    /// Responds with 200, almost at once.
    Takes,
    /// Responds with 200 after up to three seconds.
    IsSlow,
    /// Responds with 503 to two requests in five.
    IsBusy,
    /// Responds with 503 to every request.
    IsDown,
    /// Responds with 400 to one event in three.
    Refuses,
    /// Does not respond to three requests in ten.
    Hangs,
}

/// Longer than the response timeout of every subscription.
const SILENCE: Duration = Duration::from_secs(8);

/// The running destinations.
pub(super) struct Destinations {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    behaviours: BTreeMap<String, Behaviour>,
    random: Mutex<StdRng>,
    requests: AtomicUsize,
    taken: Mutex<HashMap<Delivered, usize>>,
    /// The addresses of callers that wait for a response, by the number of the request.
    waiting: Mutex<BTreeMap<usize, SocketAddr>>,
}

impl Destinations {
    /// Starts one server for all paths.
    pub(super) async fn start(behaviours: BTreeMap<String, Behaviour>, seed: u64) -> Self {
        let listener =
            TcpListener::bind("127.0.0.1:0").await.expect("this machine has a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared {
            behaviours,
            random: Mutex::new(StdRng::seed_from_u64(seed)),
            requests: AtomicUsize::new(0),
            taken: Mutex::default(),
            waiting: Mutex::default(),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, service).await });
        Self { address, shared }
    }

    /// The number of requests that arrived.
    pub(super) fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// The number of 200 responses per delivery.
    pub(super) fn taken(&self) -> HashMap<Delivered, usize> {
        self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The function processes that wait for a response.
    pub(super) fn waiting(&self) -> Vec<SocketAddr> {
        let waiting = self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.values().copied().collect()
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    uri: Uri,
    body: Bytes,
) -> StatusCode {
    let waits = Waits::new(&shared, from);
    let event: Value = serde_json::from_slice(&body).expect("an event is JSON");
    let id = event["id"].as_str().expect("an event has an id").to_owned();
    let (status, after) = shared.decide(uri.path(), &id);
    tokio::time::sleep(after).await;
    // The server drops this future when the caller disconnects, so only sent responses are counted.
    drop(waits);
    if status == StatusCode::OK {
        let mut taken = shared.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *taken.entry((uri.path().to_owned(), id)).or_default() += 1;
    }
    status
}

impl Shared {
    /// Returns the response to a request, and its delay.
    fn decide(&self, path: &str, id: &str) -> (StatusCode, Duration) {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let soon = Duration::from_millis(random.random_range(0..200));
        match self.behaviours.get(path) {
            None => (StatusCode::NOT_FOUND, soon),
            Some(Behaviour::Takes) => (StatusCode::OK, soon),
            Some(Behaviour::IsSlow) => {
                (StatusCode::OK, Duration::from_millis(random.random_range(500..3_000)))
            }
            Some(Behaviour::IsBusy) if random.random_ratio(2, 5) => {
                (StatusCode::SERVICE_UNAVAILABLE, soon)
            }
            Some(Behaviour::IsDown) => (StatusCode::SERVICE_UNAVAILABLE, soon),
            // Refuses a duplicate of a refused event too, because a refused event is not retried.
            Some(Behaviour::Refuses) if id.bytes().map(u64::from).sum::<u64>() % 3 == 0 => {
                (StatusCode::BAD_REQUEST, soon)
            }
            Some(Behaviour::Hangs) if random.random_ratio(3, 10) => (StatusCode::OK, SILENCE),
            Some(Behaviour::IsBusy | Behaviour::Refuses | Behaviour::Hangs) => {
                (StatusCode::OK, soon)
            }
        }
    }
}

/// A request that waits for its response.
struct Waits<'a> {
    shared: &'a Shared,
    number: usize,
}

impl<'a> Waits<'a> {
    fn new(shared: &'a Shared, from: SocketAddr) -> Self {
        let number = shared.requests.fetch_add(1, Ordering::Relaxed);
        shared.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(number, from);
        Self { shared, number }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}
