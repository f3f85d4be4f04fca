//! Measures the latency from an event's queue to its destination, for `bench/latency`.
//!
//! Events are sent at fixed times, even if earlier ones have not arrived (an open loop). A delay
//! behind a slow event therefore counts in full. Queues, event source mappings and functions behave
//! as on AWS, but without the delays of a network:
//!
//! - A mapping passes up to ten messages to one of several processes of dispatch, immediately or
//!   after its window.
//! - A message that is sent with a delay becomes visible when the delay ends.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Collected};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use crate::child::Function;
use crate::clock;
use crate::cloud::{Cloud, Sent};
use crate::contenders::{self, DISPATCH};
use crate::events::{self, Subscriptions};
use crate::http::{Body, respond};
use crate::measure::wait_until_ready;
use crate::runtime_api::Invoker;
use crate::server::Server;

/// The number of destinations, and of topics with one subscription each. Events go to them in turn.
const DESTINATIONS: usize = 10;
/// Maximum number of messages per invocation.
const BATCH: usize = 10;
/// The queues that dispatch reads, with the number of processes per queue. Messages to other queues
/// are dropped.
const MAPPINGS: [(&str, usize); 4] = [("events", 10), ("retry", 2), ("slow", 2), ("isolation", 2)];
/// Duration of the warm-up at the beginning of a case. Events that are due during the warm-up are
/// not counted.
const WARM_UP: Duration = Duration::from_secs(5);
const MEASURED: Duration = Duration::from_secs(20);
/// The time after the last send within which all events must arrive.
const LIMIT: Duration = Duration::from_secs(60);

/// A measured case, which is one row of the table.
struct Case {
    per_second: u32,
    window: Duration,
    /// Number of destinations that accept requests and never respond.
    hanging: usize,
}

/// The time of the first arrival of each event at a responding destination, by event number.
type Arrivals = Arc<Mutex<BTreeMap<usize, Instant>>>;

/// The messages of one queue.
#[derive(Default)]
struct Queue {
    records: Mutex<VecDeque<Value>>,
    added: Notify,
}

type Queues = Arc<BTreeMap<&'static str, Queue>>;

/// Measures all cases and returns the table.
pub(crate) async fn measure(binaries: &Path) -> anyhow::Result<String> {
    let mut table = String::from(
        "| events a second | window | hanging destinations, of ten | half | 99 % | 99.9 % | slowest | events |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for hanging in [0, 1] {
        for window in [0, 1] {
            for per_second in [10, 100, 1_000] {
                let case = Case { per_second, window: Duration::from_secs(window), hanging };
                let mut waits = run(&case, binaries).await?;
                waits.sort();
                let at = |part: f64| {
                    let index = (waits.len() as f64 * part).ceil() as usize;
                    waits[index.clamp(1, waits.len()) - 1].as_secs_f64() * 1e3
                };
                writeln!(
                    table,
                    "| {per_second} | {window} s | {hanging} | {:.1} ms | {:.1} ms | {:.1} ms | {:.1} ms | {} |",
                    at(0.5),
                    at(0.99),
                    at(0.999),
                    at(1.0),
                    waits.len()
                )?;
                eprintln!("{table}");
            }
        }
    }
    Ok(table)
}

/// Runs a case. Returns the latency of each counted event, measured from its due time.
async fn run(case: &Case, binaries: &Path) -> anyhow::Result<Vec<Duration>> {
    let arrivals = Arrivals::default();
    let mut tasks = JoinSet::new();
    let subscriber = subscriber(case.hanging, Arc::clone(&arrivals), &mut tasks).await?;
    let (sent, receiver) = mpsc::unbounded_channel();
    let queues: Queues =
        Arc::new(MAPPINGS.into_iter().map(|(name, _)| (name, Queue::default())).collect());
    tasks.spawn(receive(receiver, Arc::clone(&queues)));
    let dispatch = contenders::all(binaries, &PathBuf::new());
    let dispatch =
        dispatch.into_iter().find(|contender| contender.name == DISPATCH).context("dispatch")?;
    let mut processes = Vec::new();
    for (queue, count) in MAPPINGS {
        for _ in 0..count {
            let make = |_| Cloud::new(subscriptions(subscriber)).sending(sent.clone());
            let (server, mut invoker) = Server::start_of(0, make).await?;
            let function = Function::start(&dispatch, &server)?;
            wait_until_ready(&mut invoker, &dispatch).await?;
            processes.push((server, function));
            let window = if queue == "events" { case.window } else { Duration::ZERO };
            tasks.spawn(read(queue, Arc::clone(&queues), window, invoker));
        }
    }
    let due = send(case, &queues["events"]).await;
    arrived(&arrivals, &due).await?;
    ensure!(tasks.try_join_next().is_none(), "a task of the bench ended");
    let arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(due.iter().map(|(number, due)| arrivals[number] - *due).collect())
}

/// Sends the events of a case. Returns the due time of each counted event. Events that are due
/// during the warm-up, or that go to a hanging destination, are not counted.
async fn send(case: &Case, queue: &Queue) -> BTreeMap<usize, Instant> {
    let started = clock::now();
    let mut counted = BTreeMap::new();
    for number in 0.. {
        let after = Duration::from_secs(1) * number / case.per_second;
        if after >= WARM_UP + MEASURED {
            break;
        }
        let due = started + after;
        tokio::time::sleep_until(due.into()).await;
        let number = number as usize;
        let topic = number % DESTINATIONS;
        let attributes = json!({"topic": events::attribute(&format!("shop/topic{topic}"))});
        queue.add(events::record("events", number, &events::event(number), &attributes));
        if after >= WARM_UP && topic >= case.hanging {
            counted.insert(number, due);
        }
    }
    counted
}

/// Waits until all events in `due` have arrived.
async fn arrived(arrivals: &Arrivals, due: &BTreeMap<usize, Instant>) -> anyhow::Result<()> {
    let have_all = || {
        let arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        due.keys().all(|number| arrivals.contains_key(number))
    };
    let all = async {
        while !have_all() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(LIMIT, all).await.context("events did not arrive")
}

impl Queue {
    fn add(&self, record: Value) {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).push_back(record);
        self.added.notify_one();
    }

    fn len(&self) -> usize {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Waits for a message, then for a full batch or the end of the window. Returns at most
    /// [`BATCH`] messages.
    async fn next(&self, window: Duration) -> Vec<Value> {
        loop {
            while self.len() == 0 {
                self.added.notified().await;
            }
            let full = async {
                while self.len() < BATCH {
                    self.added.notified().await;
                }
            };
            // The end of the window and a full batch both end the wait.
            let _ = tokio::time::timeout(window, full).await;
            let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
            let count = records.len().min(BATCH);
            let batch: Vec<Value> = records.drain(..count).collect();
            if !records.is_empty() {
                self.added.notify_one();
            }
            if !batch.is_empty() {
                return batch;
            }
        }
    }
}

/// Receives the messages that the functions send. Adds each to its queue when its delay ends.
async fn receive(mut sent: mpsc::UnboundedReceiver<Sent>, queues: Queues) {
    let mut index = 1_000_000;
    while let Some(message) = sent.recv().await {
        index += 1;
        let queues = Arc::clone(&queues);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(message.delay_seconds)).await;
            let Some(queue) = queues.get(message.queue.as_str()) else { return };
            let attributes = message.attributes.as_object().into_iter().flatten();
            let attributes: serde_json::Map<String, Value> = attributes
                .map(|(name, value)| {
                    let text = value["StringValue"].as_str().unwrap_or_default();
                    (name.clone(), events::attribute(text))
                })
                .collect();
            queue.add(events::record(&message.queue, index, &message.body, &attributes.into()));
        });
    }
}

/// Passes the messages of a queue to one process, as an event source mapping does.
async fn read(name: &'static str, queues: Queues, window: Duration, mut invoker: Invoker) {
    let queue = &queues[name];
    loop {
        let batch = queue.next(window).await;
        let event = Bytes::from(json!({ "Records": batch }).to_string());
        // A failed record would be retried, and its latency would distort the table. Therefore a
        // failure ends this reader.
        let response = invoker.invoke(event).await;
        let response =
            response.and_then(|response| Ok(serde_json::from_slice::<Value>(&response)?));
        match response {
            Ok(response) if response["batchItemFailures"].as_array().is_none_or(Vec::is_empty) => {}
            failed => {
                eprintln!("{name}: {failed:?}");
                return;
            }
        }
    }
}

fn subscriptions(subscriber: SocketAddr) -> Subscriptions {
    let mut all = Subscriptions::default();
    for number in 0..DESTINATIONS {
        let (topic, url) = (format!("topic{number}"), format!("http://{subscriber}/{number}"));
        all.add((&topic, "s"), &url, json!({}), None);
    }
    all
}

/// Starts the destinations `/0`, `/1` and so on. The first `hanging` of them never respond.
async fn subscriber(
    hanging: usize,
    arrivals: Arrivals,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let arrivals = Arc::clone(&arrivals);
            tokio::spawn(async move {
                let service = service_fn(|request| answer(request, hanging, &arrivals));
                let served = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                // A function that is killed breaks its connections.
                let _ = served.await;
            });
        }
    });
    Ok(address)
}

async fn answer(
    request: Request<Incoming>,
    hanging: usize,
    arrivals: &Arrivals,
) -> Result<Response<Body>, Infallible> {
    let number = request.uri().path().trim_start_matches('/').parse().unwrap_or(0);
    if hanging > number {
        std::future::pending::<()>().await;
    }
    let body = request.into_body().collect().await.map(Collected::to_bytes).unwrap_or_default();
    let event: Value = serde_json::from_slice(&body).unwrap_or_default();
    let id = event["id"].as_str().and_then(|id| id.strip_prefix("order-"));
    if let Some(number) = id.and_then(|id| id.parse().ok()) {
        let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        arrivals.entry(number).or_insert_with(clock::now);
    }
    Ok(respond(StatusCode::NO_CONTENT, "text/plain", Bytes::new()))
}
