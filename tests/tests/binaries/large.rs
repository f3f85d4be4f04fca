//! Large records through the binary of dispatch. Its messages are fed back to it until nothing is
//! left. Every delivery must then have been made exactly once.
//!
//! The test serves everything that the function uses: the Runtime API, SQS, and the subscribers.
//! The full sizes are run by hand, with a release binary, and print a line for
//! `docs/reference/figures/writers.md`:
//!
//! ```sh
//! LASTMILE_FUNCTIONS=$PWD/target/lambda \
//!     cargo test -p lastmile-tests --test binaries large -- --ignored --nocapture
//! ```

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adapters::machine::Machine;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use delivery::ports::Clock as _;
use delivery::wire::read_dead_letter;
use lastmile_tests::topics::apply_in;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::environment::{DISPATCH, environment};
use crate::records::record;

/// The most memory that a record may need, in MiB.
const MEMORY_MAX_MIB: u64 = 96;
/// The limit of open files of a function, as on Lambda.
const FILES_MAX: u32 = 1_024;
/// The limits of one invocation.
const RECORDS_MAX: usize = 10;
const PAYLOAD_MAX_BYTES: usize = 5 << 20;

/// The counts so far, and the records that wait.
#[derive(Default)]
struct Seen {
    /// Records that dispatch has not received yet.
    waiting: VecDeque<Value>,
    records: u64,
    /// True during an invocation.
    running: bool,
    invocations: u64,
    /// The most messages that one invocation sent.
    sent_at_once: u64,
    sent: u64,
    /// Records that were returned to their queue.
    returned: u64,
    /// The count of each request and of each dead letter.
    deliveries: HashMap<String, u32>,
    letters: HashMap<String, u32>,
}

#[derive(Default)]
struct Loop {
    seen: Mutex<Seen>,
    changed: Notify,
    /// Feeds messages to dispatch's queues back to dispatch.
    feeds_back: bool,
}

impl Loop {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The Runtime API: waits for records and returns the next invocation.
async fn next(State(state): State<Arc<Loop>>) -> Response {
    loop {
        let changed = state.changed.notified();
        if let Some(records) = take(&mut state.seen()) {
            let deadline_ms = Machine.now_ms() + 60_000;
            let headers = [
                ("lambda-runtime-aws-request-id", "1".to_owned()),
                ("lambda-runtime-deadline-ms", deadline_ms.to_string()),
                ("lambda-runtime-invoked-function-arn", "arn:aws:lambda:r:0:function:f".to_owned()),
            ];
            return (headers, json!({"Records": records}).to_string()).into_response();
        }
        changed.await;
    }
}

fn take(seen: &mut Seen) -> Option<Vec<Value>> {
    let (mut records, mut bytes) = (Vec::new(), 0);
    while let Some(next) = seen.waiting.front() {
        bytes += next["body"].as_str().map_or(0, str::len);
        if records.len() == RECORDS_MAX || (bytes > PAYLOAD_MAX_BYTES && !records.is_empty()) {
            break;
        }
        records.extend(seen.waiting.pop_front());
    }
    if records.is_empty() {
        return None;
    }
    seen.running = true;
    seen.invocations += 1;
    seen.sent = 0;
    Some(records)
}

async fn respond(State(state): State<Arc<Loop>>, uri: Uri, body: Bytes) -> StatusCode {
    assert!(uri.path().ends_with("/response"), "{uri}: {}", String::from_utf8_lossy(&body));
    let response: Value = serde_json::from_slice(&body).expect("JSON");
    let mut seen = state.seen();
    seen.returned += response["batchItemFailures"].as_array().map_or(0, Vec::len) as u64;
    seen.sent_at_once = seen.sent_at_once.max(seen.sent);
    seen.running = false;
    state.changed.notify_waiters();
    StatusCode::ACCEPTED
}

/// SQS: accepts every message and queues those for dispatch.
async fn sqs(State(state): State<Arc<Loop>>, headers: HeaderMap, body: Bytes) -> Response {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    assert_eq!(target, Some("AmazonSQS.SendMessageBatch"));
    let request: Value = serde_json::from_slice(&body).expect("JSON");
    let queue = request["QueueUrl"].as_str().and_then(|url| url.rsplit('/').next()).expect("a URL");
    let entries = request["Entries"].as_array().expect("entries");
    let mut seen = state.seen();
    seen.sent += entries.len() as u64;
    for entry in entries {
        let text = entry["MessageBody"].as_str().expect("a body");
        let attribute = |name: &str| entry["MessageAttributes"][name]["StringValue"].as_str();
        if queue == "dead-letter" {
            let letter = attribute("deadletter").expect("a dead letter");
            let letter = read_dead_letter(letter, &text.into()).expect("ours");
            *seen.letters.entry(letter.delivery.id.to_string()).or_default() += 1;
            continue;
        }
        let names = ["publication", "delivery", "topic"];
        let attributes: Vec<(&str, &str)> =
            names.into_iter().filter_map(|name| Some((name, attribute(name)?))).collect();
        seen.records += 1;
        let mut received = record(&format!("n{}", seen.records), queue, &attributes);
        received["body"] = text.into();
        if state.feeds_back {
            seen.waiting.push_back(received);
        }
    }
    let taken =
        |entry: &Value| json!({"Id": entry["Id"], "MessageId": "1", "MD5OfMessageBody": ""});
    let taken: Vec<Value> = entries.iter().map(taken).collect();
    state.changed.notify_waiters();
    json!({"Failed": [], "Successful": taken}).to_string().into_response()
}

async fn subscriber(State(state): State<Arc<Loop>>, uri: Uri, body: Bytes) -> StatusCode {
    let request = format!("{} {}", uri.path(), String::from_utf8_lossy(&body));
    *state.seen().deliveries.entry(request).or_default() += 1;
    StatusCode::NO_CONTENT
}

/// The result of a record.
struct Outcome {
    seen: Seen,
    peak_mib: u64,
    seconds: u64,
}

/// Passes this record to dispatch, with this many subscriptions of `shop/orders`. With
/// `feeds_back`, dispatch also receives its own messages until nothing is left.
async fn run(topic: &str, body: String, subscriptions: usize, feeds_back: bool) -> Outcome {
    let state = Arc::new(Loop { feeds_back, ..Loop::default() });
    let lambda = Router::new()
        .route("/2018-06-01/runtime/invocation/next", get(next))
        .route("/2018-06-01/runtime/{*rest}", post(respond))
        .route("/", post(sqs));
    let address = serve(lambda, &state).await;
    // The subscribers use another port, because dispatch refuses to deliver to the port of the
    // Runtime API.
    let subscribers = serve(Router::new().route("/{name}", post(subscriber)), &state).await;

    let folder = tempfile::tempdir().expect("a folder");
    let document = |number| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
             metadata: {{namespace: shop, topic: orders, name: s{number}}}\n\
             spec: {{destination: {{url: 'http://{subscribers}/{number}'}}}}\n"
        )
    };
    let documents: Vec<String> = (0..subscriptions).map(document).collect();
    apply_in(folder.path(), &documents.join("---\n")).await;

    let mut first = record("m1", "events", &[("topic", topic)]);
    first["body"] = body.into();
    state.seen().waiting.push_back(first);
    let began_ms = Machine.now_ms();
    let mut process = command(&address, &format!("file://{}/", folder.path().display()));
    let is_over = |seen: &Seen| seen.invocations > 0 && !seen.running && seen.waiting.is_empty();
    while !is_over(&state.seen()) {
        assert!(process.try_wait().expect("a process of ours").is_none(), "the function ended");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let seconds = (Machine.now_ms() - began_ms) / 1_000;
    let peak_mib = peak_mib(process.id());
    process.kill().expect("it runs");
    process.wait().expect("it ends");
    Outcome { seen: std::mem::take(&mut *state.seen()), peak_mib, seconds }
}

/// Serves these routes and returns `127.0.0.1:PORT`.
async fn serve(routes: Router<Arc<Loop>>, state: &Arc<Loop>) -> String {
    let routes = routes.layer(DefaultBodyLimit::disable()).with_state(Arc::clone(state));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

fn command(address: &str, subscriptions: &str) -> std::process::Child {
    let mut variables: BTreeMap<String, String> =
        environment(&DISPATCH, &format!("http://{address}"), address);
    variables.insert("SUBSCRIPTIONS_URI".to_owned(), subscriptions.to_owned());
    let limited = format!("ulimit -n {FILES_MAX}; exec \"$0\" \"$@\"");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &limited]).args(DISPATCH.command()).env_clear().envs(&variables);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("the binary starts")
}

/// Returns the peak memory of a process.
fn peak_mib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.split_whitespace().next()).and_then(|kib| kib.parse().ok());
    u64::div_ceil(kib.expect("Linux says it"), 1_024)
}

fn numbered(count: usize) -> String {
    let elements: Vec<String> = (0..count).map(|number| format!(r#"{{"n":{number}}}"#)).collect();
    format!("[{}]", elements.join(","))
}

fn ones(count: usize) -> String {
    format!("[{}]", vec!["1"; count].join(","))
}

/// Checks that every element arrived once at every subscription, that nothing was returned, and
/// that memory is bounded.
fn check(name: &str, outcome: &Outcome, deliveries: usize, letters: usize) {
    let Outcome { seen, peak_mib, seconds } = outcome;
    let _ = writeln!(
        std::io::stdout(),
        "| {name} | {} | {} | {} | {} | {} | {peak_mib} MiB | {seconds} s |",
        seen.deliveries.len(),
        seen.letters.len(),
        seen.records,
        seen.invocations,
        seen.sent_at_once
    );
    assert_eq!((seen.deliveries.len(), seen.letters.len()), (deliveries, letters));
    let twice = seen.deliveries.iter().chain(&seen.letters).find(|(_, times)| **times != 1);
    assert_eq!((twice, seen.returned), (None, 0));
    assert!(*peak_mib <= MEMORY_MAX_MIB, "{peak_mib} MiB");
}

#[tokio::test]
async fn a_large_record_is_delivered_once_within_bounded_memory() {
    let outcome = run("shop/orders", numbered(1_500), 2, true).await;
    check("1,500 elements, 2 subscriptions", &outcome, 3_000, 0);
    let outcome = run("shop/unknown", ones(1_500), 1, true).await;
    check("1,500 elements of an unknown topic", &outcome, 0, 1_500);
}

#[tokio::test]
async fn the_largest_record_is_divided_at_once_within_bounded_memory() {
    let Outcome { seen, peak_mib, .. } = run("shop/unknown", ones(524_287), 1, false).await;
    assert!((2..=300).contains(&seen.sent_at_once), "{} messages", seen.sent_at_once);
    assert_eq!((seen.deliveries.len(), seen.letters.len(), seen.returned), (0, 0, 0));
    assert!(peak_mib <= MEMORY_MAX_MIB, "{peak_mib} MiB");
}

#[tokio::test]
#[ignore = "takes minutes: by hand, with a release binary"]
async fn the_largest_records_are_delivered_once_within_bounded_memory() {
    for subscriptions in [2, 10] {
        let outcome = run("shop/orders", numbered(20_000), subscriptions, true).await;
        let name = format!("20,000 elements, {subscriptions} subscriptions");
        check(&name, &outcome, 20_000 * subscriptions, 0);
    }
    let outcome = run("shop/unknown", ones(524_287), 1, true).await;
    check("524,287 elements of an unknown topic", &outcome, 0, 524_287);
}
