//! A subscriber that answers by script and remembers what it was sent.
//!
//! It is separate because it is the other side of every test. Its paths are its scripts, so one
//! server plays all subscribers at once. It promises to remember every request it has read whole,
//! also one it never answers because the caller is gone.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::Instant;

/// The statuses a path answers with, one after another; the last one repeats.
pub(crate) type Scripts = BTreeMap<&'static str, &'static [u16]>;

/// One request that was read whole.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) path: String,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
    pub(crate) at: Instant,
    pub(crate) from: SocketAddr,
    /// The status it was answered with; none while it is held, and for ever when the caller went
    /// away meanwhile.
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
    held: watch::Sender<Option<&'static str>>,
}

impl Subscriber {
    /// Starts on a free port of this machine.
    pub(crate) async fn start(scripts: Scripts) -> Self {
        let listener =
            TcpListener::bind("127.0.0.1:0").await.expect("this machine has a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let arrivals = watch::Sender::new(Vec::new());
        let shared = Arc::new(Shared { scripts, arrivals, held: watch::Sender::new(None) });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, service).await });
        Self { address, shared }
    }

    /// Everything that arrived at this path, or below it, so far, in order.
    pub(crate) fn arrivals(&self, path: &str) -> Vec<Arrival> {
        at_path(&self.shared.arrivals.borrow(), path)
    }

    /// Waits until what arrived at this path is what is hoped for, and returns it.
    ///
    /// # Panics
    /// When that does not happen within the limit, with what did arrive.
    pub(crate) async fn arrived(
        &self,
        path: &str,
        limit: Duration,
        hoped: impl Fn(&[Arrival]) -> bool,
    ) -> Vec<Arrival> {
        let mut changes = self.shared.arrivals.subscribe();
        let hope = changes.wait_for(|all| hoped(&at_path(all, path)));
        let in_time = tokio::time::timeout(limit, hope).await.is_ok();
        let arrivals = self.arrivals(path);
        assert!(in_time, "not what was hoped for at {path} in {limit:?}: {arrivals:#?}");
        arrivals
    }

    /// From now on nothing at or below this path is answered, until [`Subscriber::release`].
    pub(crate) fn hold(&self, path: &'static str) {
        self.shared.held.send_replace(Some(path));
    }

    /// Gives the answers that were held, and later ones at once.
    pub(crate) fn release(&self) {
        self.shared.held.send_replace(None);
    }
}

fn at_path(arrivals: &[Arrival], path: &str) -> Vec<Arrival> {
    arrivals.iter().filter(|arrival| arrival.path.starts_with(path)).cloned().collect()
}

/// Remembers the request, waits while its path is held, and answers. The server drops this when the
/// caller hangs up, so only an answer that had somebody to go to is remembered as given.
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
    let (place, turn) = shared.remember(arrival);
    let mut held = shared.held.subscribe();
    let released = held.wait_for(|held| !held.is_some_and(|held| path.starts_with(held))).await;
    released.expect("the sender lives as long as this server");
    let script = shared.scripts.get(path.as_str()).copied().unwrap_or(&[404]);
    let status = script.get(turn).or(script.last()).copied().unwrap_or(404);
    shared.arrivals.send_modify(|arrivals| arrivals[place].answered = Some(status));
    StatusCode::from_u16(status).expect("scripts hold statuses")
}

impl Shared {
    /// Where this arrival stands among all, and how many of its path came before.
    fn remember(&self, arrival: Arrival) -> (usize, usize) {
        let mut place = (0, 0);
        self.arrivals.send_modify(|arrivals| {
            let before = arrivals.iter().filter(|earlier| earlier.path == arrival.path).count();
            place = (arrivals.len(), before);
            arrivals.push(arrival);
        });
        place
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a subscriber is a machine of its own, with its own clock"
)]
fn now() -> Instant {
    Instant::now()
}
