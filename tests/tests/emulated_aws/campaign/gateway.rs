//! A proxy between the functions and the emulated AWS. It fails some of the sends, kills functions
//! in the middle of chosen calls, and makes the table unreachable, throttled or slow.
//!
//! The gateway is separate because an emulator does not refuse messages or lose responses by
//! itself. Publishers, event source mappings and the final checks bypass the gateway.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{
    HeaderMap, HeaderName, Method, Request, Response, StatusCode, header, request::Parts,
};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::table_calls::{SLOW, TableCall, TableCalls, Trouble, table_call, throttled};
use crate::now;
use crate::processes::{function_at, try_kill_the_function_at};

/// The shares of failed sends, by kind of failure.
const REFUSED_PERCENT: u32 = 2;
const CUT_BEFORE_PERCENT: u32 = 1;
const CUT_AFTER_PERCENT: u32 = 1;

/// Every minute, one queue refuses every send for a while. The outage is longer than a function's
/// retries.
const OUTAGES: [&[&str]; 4] =
    [&["RetryQueue"], &["DeadLetterQueue"], &["SlowQueue"], &["IsolationQueue"]];
const OUTAGE_EVERY: Duration = Duration::from_secs(60);
const OUTAGE: Duration = Duration::from_secs(10);

/// The moment of a call at which the function is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum During {
    /// Before the message is in the queue.
    Sending,
    /// After the message is in the queue, but before the function receives the response.
    Sent,
    /// Before the blob is stored.
    Storing,
    /// After the blob is stored, but before the function receives the response.
    Stored,
}

/// The treatment of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fate {
    Passed,
    /// The gateway responds with 503 and does not forward the call.
    Refused,
    /// The gateway closes the connection and does not forward the call.
    CutBefore,
    /// The gateway forwards the call and closes the connection.
    CutAfter,
    KilledBefore,
    KilledAfter,
}

/// A call that may fail.
enum Call {
    /// Messages to a queue.
    Send {
        queue: String,
    },
    /// A write of an object.
    Store,
    Other,
}

/// The running gateway.
pub(crate) struct Gateway {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    emulator: String,
    address: SocketAddr,
    client: reqwest::Client,
    started: Instant,
    calm: AtomicBool,
    random: Mutex<StdRng>,
    armed: Mutex<Option<During>>,
    kills: Mutex<usize>,
    sends: Mutex<BTreeMap<Fate, usize>>,
    table: TableCalls,
    topic_reads: Mutex<Vec<TopicRead>>,
}

/// A function's request for an object of the subscriptions.
#[derive(Debug, Clone)]
pub(crate) struct TopicRead {
    pub(crate) at: Instant,
    /// The calling process; `None` if it had ended already.
    pub(crate) process: Option<String>,
    pub(crate) key: String,
    pub(crate) status: u16,
}

/// Ends a connection without a response.
#[derive(Debug)]
struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection is cut")
    }
}

impl Error for Cut {}

impl Gateway {
    /// Starts the gateway in front of the emulated AWS on this port.
    pub(crate) async fn start(emulator: u16, seed: u64) -> Self {
        let listener =
            TcpListener::bind("127.0.0.1:0").await.expect("this machine has a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared {
            emulator: format!("http://127.0.0.1:{emulator}"),
            address,
            client: reqwest::Client::builder().no_proxy().build().expect("a client"),
            started: now(),
            calm: AtomicBool::new(false),
            random: Mutex::new(StdRng::seed_from_u64(seed)),
            armed: Mutex::default(),
            kills: Mutex::default(),
            sends: Mutex::default(),
            table: TableCalls::default(),
            topic_reads: Mutex::default(),
        });
        tokio::spawn(serve(listener, Arc::clone(&shared)));
        Self { port: address.port(), shared }
    }

    /// Ends all failures of sends.
    pub(crate) fn calm(&self) {
        self.shared.calm.store(true, Ordering::Relaxed);
    }

    /// Kills the function that makes the next call of this kind. Returns true if one did within the
    /// limit.
    pub(super) async fn kill_during(&self, during: During, limit: Duration) -> bool {
        let kills = || *self.shared.kills.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, deadline) = (kills(), now() + limit);
        *self.shared.armed.lock().unwrap_or_else(PoisonError::into_inner) = Some(during);
        while kills() == before && now() < deadline {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.shared.armed.lock().unwrap_or_else(PoisonError::into_inner).take();
        kills() > before
    }

    /// The functions' sends, counted by treatment.
    pub(super) fn sends(&self) -> BTreeMap<Fate, usize> {
        self.shared.sends.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The functions' requests for objects of the subscriptions since this time.
    pub(crate) fn topic_reads(&self, since: Instant) -> Vec<TopicRead> {
        let reads = self.shared.topic_reads.lock().unwrap_or_else(PoisonError::into_inner);
        reads.iter().filter(|read| read.at >= since).cloned().collect()
    }

    /// The functions' calls of the table, with their counts.
    pub(crate) fn table_calls(&self) -> BTreeMap<TableCall, usize> {
        self.shared.table.counts()
    }

    /// Starts a trouble of the table, which lasts until the returned value is dropped.
    pub(crate) fn disturb_table(&self, trouble: Trouble) -> Disturbance {
        self.shared.table.disturb(Some(trouble));
        Disturbance(Arc::clone(&self.shared))
    }
}

/// A trouble of the table. Dropping it ends the trouble.
pub(crate) struct Disturbance(Arc<Shared>);

impl Disturbance {
    /// The processes whose calls met this trouble. `None` stands for processes that were not found.
    pub(crate) fn processes(&self) -> BTreeSet<Option<String>> {
        self.0.table.disturbed()
    }
}

impl Drop for Disturbance {
    fn drop(&mut self) {
        self.0.table.disturb(None);
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, from)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        let service = service_fn(move |request| {
            let shared = Arc::clone(&shared);
            async move { shared.handle(from, request).await }
        });
        // An error of a connection means that the gateway cut it, or that its function was killed.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

impl Shared {
    async fn handle(
        &self,
        from: SocketAddr,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Cut> {
        let (head, body) = request.into_parts();
        let body = to_bytes(Body::new(body), usize::MAX).await.map_err(|_| Cut)?;
        let trouble = table_call(&head, &body).and_then(|_| self.table.trouble());
        if let Some(trouble) = trouble {
            return self.disturb(trouble, from, head, body).await;
        }
        let fate = self.fate(&Call::new(&head, &body));
        match fate {
            Fate::Passed => self.forward(from, head, body).await,
            Fate::Refused => Ok(refusal()),
            Fate::CutBefore => Err(Cut),
            Fate::CutAfter => self.forward(from, head, body).await.and(Err(Cut)),
            Fate::KilledBefore => self.kill(from),
            Fate::KilledAfter => {
                let _ = self.forward(from, head, body).await;
                self.kill(from)
            }
        }
    }

    /// Treats a call of the table as this trouble requires.
    async fn disturb(
        &self,
        trouble: Trouble,
        from: SocketAddr,
        head: Parts,
        body: Bytes,
    ) -> Result<Response<Body>, Cut> {
        self.table.note_disturbed(function_at(from, self.address));
        match trouble {
            Trouble::Unreachable => Err(Cut),
            Trouble::Throttled => Ok(throttled()),
            Trouble::Slow => {
                let answer = self.forward(from, head, body).await;
                tokio::time::sleep(SLOW).await;
                answer
            }
        }
    }

    fn fate(&self, call: &Call) -> Fate {
        let fate = match self.killed(call) {
            Some(fate) => fate,
            None => self.failed(call),
        };
        if let Call::Send { .. } = call {
            let mut sends = self.sends.lock().unwrap_or_else(PoisonError::into_inner);
            *sends.entry(fate).or_default() += 1;
        }
        fate
    }

    /// Returns the treatment if this call is the one in which its function is to be killed.
    fn killed(&self, call: &Call) -> Option<Fate> {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        let fate = match (call, (*armed)?) {
            (Call::Send { .. }, During::Sending) | (Call::Store, During::Storing) => {
                Fate::KilledBefore
            }
            (Call::Send { .. }, During::Sent) | (Call::Store, During::Stored) => Fate::KilledAfter,
            (Call::Send { .. } | Call::Store | Call::Other, _) => return None,
        };
        *armed = None;
        Some(fate)
    }

    /// Decides if this call fails by chance, or because its queue has an outage.
    fn failed(&self, call: &Call) -> Fate {
        let Call::Send { queue } = call else { return Fate::Passed };
        if self.calm.load(Ordering::Relaxed) {
            return Fate::Passed;
        }
        if self.is_out(queue) {
            return Fate::Refused;
        }
        let drawn = self.random.lock().unwrap_or_else(PoisonError::into_inner).random_range(0..100);
        match drawn {
            drawn if drawn < REFUSED_PERCENT => Fate::Refused,
            drawn if drawn < REFUSED_PERCENT + CUT_BEFORE_PERCENT => Fate::CutBefore,
            drawn if drawn < REFUSED_PERCENT + CUT_BEFORE_PERCENT + CUT_AFTER_PERCENT => {
                Fate::CutAfter
            }
            _ => Fate::Passed,
        }
    }

    /// Returns true if this queue has an outage now.
    fn is_out(&self, queue: &str) -> bool {
        let running = self.started.elapsed().as_secs();
        let (period, since) = (running / OUTAGE_EVERY.as_secs(), running % OUTAGE_EVERY.as_secs());
        let out = OUTAGES[usize::try_from(period).unwrap_or_default() % OUTAGES.len()];
        since < OUTAGE.as_secs() && out.iter().any(|out| queue.contains(out))
    }

    fn kill(&self, from: SocketAddr) -> Result<Response<Body>, Cut> {
        if try_kill_the_function_at(from, self.address) {
            *self.kills.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        }
        Err(Cut)
    }

    /// Forwards a call to the emulated AWS. The call completes even if its function is killed
    /// meanwhile.
    async fn forward(
        &self,
        from: SocketAddr,
        head: Parts,
        body: Bytes,
    ) -> Result<Response<Body>, Cut> {
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let of_table = table_call(&head, &body);
        let call = self.client.request(head.method.clone(), format!("{}{path}", self.emulator));
        let call = call.headers(end_to_end(&head.headers)).body(body).send();
        let answer = tokio::spawn(call).await.map_err(|_| Cut)?.map_err(|_| Cut)?;
        let (status, headers) = (answer.status(), end_to_end(answer.headers()));
        if let Some((operation, kind)) = of_table {
            self.table.count((operation, kind, status.as_u16()));
        }
        if let Some((_, key)) = head.uri.path().split_once("/subscriptions/") {
            let process = function_at(from, self.address);
            let (at, key, status) = (now(), key.to_owned(), status.as_u16());
            let read = TopicRead { at, process, key, status };
            self.topic_reads.lock().unwrap_or_else(PoisonError::into_inner).push(read);
        }
        let bytes = answer.bytes().await.map_err(|_| Cut)?;
        let mut response = Response::new(Body::from(bytes));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

impl Call {
    fn new(head: &Parts, body: &Bytes) -> Self {
        let target = head.headers.get("x-amz-target").and_then(|value| value.to_str().ok());
        if target.is_some_and(|target| target.contains(".SendMessage")) {
            let call: Value = serde_json::from_slice(body).unwrap_or_default();
            let queue = call["QueueUrl"].as_str().unwrap_or_default().to_owned();
            return Self::Send { queue };
        }
        if head.method == Method::PUT { Self::Store } else { Self::Other }
    }
}

/// The response of an unavailable SQS.
fn refusal() -> Response<Body> {
    let body = r#"{"__type": "com.amazonaws.sqs#ServiceUnavailable", "message": "the campaign"}"#;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

/// Returns the headers without hop-by-hop headers.
fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    // The host header stays, because it is signed.
    const OF_A_CONNECTION: [HeaderName; 4] =
        [header::CONNECTION, header::TRANSFER_ENCODING, header::CONTENT_LENGTH, header::EXPECT];
    let mut headers = headers.clone();
    OF_A_CONNECTION.iter().for_each(|name| drop(headers.remove(name)));
    headers
}
