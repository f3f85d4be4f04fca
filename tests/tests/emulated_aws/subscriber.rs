//! A subscriber with scripted responses that records the requests it receives.
//!
//! This module is separate because every test needs it. Scripts belong to paths, so one server
//! stands for all subscribers. The subscriber records every request that it has read completely,
//! even if the caller disconnects before the response. A path may also be slow or fail for a while,
//! regardless of its script.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::Instant;

/// The statuses with which a path responds, in order. The last status repeats.
pub(crate) type Scripts = BTreeMap<&'static str, &'static [u16]>;

/// A deviation of a path from its script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Delays each response by this time.
    Takes(Duration),
    /// Always responds with this status.
    Answers(u16),
    /// Responds with 503 for this period from this time on, then as scripted for the same period,
    /// and so on.
    Flaps(Instant, Duration),
}

/// A completely read request.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) path: String,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
    pub(crate) at: Instant,
    pub(crate) from: SocketAddr,
    /// The status of the response. `None` while the response is held, and forever if the caller
    /// disconnected.
    pub(crate) answered: Option<u16>,
}

/// The running subscriber.
#[derive(Clone)]
pub(crate) struct Subscriber {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    scripts: Scripts,
    arrivals: watch::Sender<Vec<Arrival>>,
    held: watch::Sender<BTreeSet<&'static str>>,
    manners: Mutex<BTreeMap<String, Manner>>,
    open: Mutex<BTreeMap<String, Open>>,
}

/// Requests to one path that have no response yet.
#[derive(Debug, Default, Clone, Copy)]
struct Open {
    now: usize,
    /// The highest number of concurrent requests.
    most: usize,
}

impl Subscriber {
    /// Starts on a free port of this machine.
    pub(crate) async fn start(scripts: Scripts) -> Self {
        let listener =
            TcpListener::bind("127.0.0.1:0").await.expect("this machine has a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let arrivals = watch::Sender::new(Vec::new());
        let shared = Arc::new(Shared {
            scripts,
            arrivals,
            held: watch::Sender::default(),
            manners: Mutex::default(),
            open: Mutex::default(),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, service).await });
        Self { address, shared }
    }

    /// Returns the requests so far to this path or below it, in order.
    pub(crate) fn arrivals(&self, path: &str) -> Vec<Arrival> {
        at_path(&self.shared.arrivals.borrow(), path)
    }

    /// Waits until the requests to this path meet the condition, and returns them.
    ///
    /// # Panics
    /// If the condition is not met within the limit, with the requests so far.
    pub(crate) async fn arrived(
        &self,
        path: &str,
        limit: Duration,
        condition: impl Fn(&[Arrival]) -> bool,
    ) -> Vec<Arrival> {
        let mut changes = self.shared.arrivals.subscribe();
        let reached = changes.wait_for(|all| condition(&at_path(all, path)));
        let in_time = tokio::time::timeout(limit, reached).await.is_ok();
        let arrivals = self.arrivals(path);
        assert!(
            in_time,
            "the expected requests to {path} did not arrive within {limit:?}: {arrivals:#?}"
        );
        arrivals
    }

    /// Holds the responses at or below this path until [`Subscriber::release`].
    pub(crate) fn hold(&self, path: &'static str) {
        self.shared.held.send_if_modified(|held| held.insert(path));
    }

    /// Sends the held responses of this path, and later responses at once.
    pub(crate) fn release(&self, path: &'static str) {
        self.shared.held.send_if_modified(|held| held.remove(path));
    }

    /// Makes this path deviate from its script.
    pub(crate) fn differ(&self, path: &str, manner: Manner) {
        locked(&self.shared.manners).insert(path.to_owned(), manner);
    }

    /// Returns the highest number of concurrent requests to this path.
    pub(crate) fn most_at_once(&self, path: &str) -> usize {
        locked(&self.shared.open).get(path).map_or(0, |open| open.most)
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn at_path(arrivals: &[Arrival], path: &str) -> Vec<Arrival> {
    arrivals.iter().filter(|arrival| arrival.path.starts_with(path)).cloned().collect()
}

/// Records the request, waits while its path is held, and responds. The server drops this future
/// when the caller disconnects, so a response counts only if it could be sent.
async fn answer(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let path = uri.path().to_owned();
    let content_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let arrival = Arrival {
        path: path.clone(),
        content_type: content_type.to_owned(),
        body,
        at: now(),
        from,
        answered: None,
    };
    let (index, earlier_requests) = shared.record(arrival);
    let _waits = Waits::new(&shared, &path);
    let mut held = shared.held.subscribe();
    let released = held.wait_for(|held| !held.iter().any(|held| path.starts_with(held))).await;
    released.expect("the sender lives as long as this server");
    let script = shared.scripts.get(path.as_str()).copied().unwrap_or(&[404]);
    let scripted = script.get(earlier_requests).or(script.last()).copied().unwrap_or(404);
    let status = shared.with_manner(&path, scripted).await;
    shared.arrivals.send_modify(|arrivals| arrivals[index].answered = Some(status));
    StatusCode::from_u16(status).expect("scripts hold statuses")
}

impl Shared {
    /// Returns the index of this request among all, and the number of earlier requests to its path.
    fn record(&self, arrival: Arrival) -> (usize, usize) {
        let mut index = (0, 0);
        self.arrivals.send_modify(|arrivals| {
            let before = arrivals.iter().filter(|earlier| earlier.path == arrival.path).count();
            index = (arrivals.len(), before);
            arrivals.push(arrival);
        });
        index
    }

    /// Returns the status after the deviation of this path, with its delay.
    async fn with_manner(&self, path: &str, scripted: u16) -> u16 {
        let manner = locked(&self.manners).get(path).copied();
        match manner {
            None => scripted,
            Some(Manner::Answers(status)) => status,
            Some(Manner::Takes(long)) => {
                tokio::time::sleep(long).await;
                scripted
            }
            Some(Manner::Flaps(since, period)) => {
                let fails = since.elapsed().as_millis() / period.as_millis() % 2 == 0;
                if fails { 503 } else { scripted }
            }
        }
    }
}

/// A request that waits until it has a response or the caller disconnects.
struct Waits<'a> {
    shared: &'a Shared,
    path: &'a str,
}

impl<'a> Waits<'a> {
    fn new(shared: &'a Shared, path: &'a str) -> Self {
        let mut all = locked(&shared.open);
        let open = all.entry(path.to_owned()).or_default();
        open.now += 1;
        open.most = open.most.max(open.now);
        Self { shared, path }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        if let Some(open) = locked(&self.shared.open).get_mut(self.path) {
            open.now -= 1;
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a subscriber is a machine of its own, with its own clock"
)]
fn now() -> Instant {
    Instant::now()
}
