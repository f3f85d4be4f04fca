//! The whole application on an emulated AWS. The template and the binaries are those of a
//! deployment, and the queues, event source mappings and buckets are real. Tests kill processes.
//!
//! These tests are separate from the simulation, which covers every rule but has no processes. They
//! show that the simulated application is the one that runs. They need Linux and Python, but no
//! Docker. The first run installs the tools.
#![cfg(target_os = "linux")]

mod aws_targets;
mod campaign;
mod crashing;
mod credentials;
mod doctor;
mod foreign_writers;
mod freshness;
mod github;
mod ingress;
mod neighbours;
mod new_account;
mod notify;
mod observability;
mod paused;
mod permissions;
mod processes;
mod publishers;
mod rates;
mod rollback;
mod smoke;
mod stack;
mod subscriber;
mod table_troubles;
mod topics;
mod trace;
mod trust;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

use lastmile_tests::emulated::ReservedPort;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use campaign::gateway::Gateway;
use credentials::Peers;
use processes::kill_the_function_at;
use stack::{Stack, has_tools, script};
use subscriber::{Arrival, Scripts, Subscriber};

/// Enough for a cold start and a few messages on a busy machine.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(60);

/// The waits before the second and the third attempt. They exceed a second, so the deliveries wait
/// in the retry queue.
const WAITS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(3)];

/// The number of events that the kill test publishes.
const KILLED_EVENTS: usize = 50;
const KILLED_SUBSCRIPTIONS: [&str; 2] = ["left", "right"];
const KILLS: usize = 3;

/// The number of tests that use the environment concurrently. With more tests, the emulated AWS is
/// too slow.
const TESTS_AT_ONCE: u32 = 2;

/// A killed function's messages are redelivered after 30 s, and the next kill may hit them too. On
/// a busy machine, attempts time out while responses are held, and the destination is put on
/// probation. A delivery is then deferred by up to fifteen minutes.
const KILLED_LIMIT: Duration = Duration::from_secs(16 * 60);

#[test]
fn the_templates_pass_the_linters_of_sam_and_cloudformation() {
    if has_tools() {
        script("lint.sh", &[]);
    }
}

#[test]
#[ignore = "compiles the functions once more, for minutes; runs every night"]
fn sam_build_makes_a_program_of_each_function() {
    if has_tools() {
        let programs = script("sam-build.sh", &[]);
        let is_built = |function: &str| programs.lines().any(|line| line.contains(function));
        assert!(
            ["DispatchFunction", "DeadLetterFunction", "IngressFunction"].into_iter().all(is_built),
            "{programs}"
        );
    }
}

#[test]
fn an_event_reaches_its_subscriber_byte_for_byte() {
    on_deployment(|deployment| async move {
        // The event has everything that re-serializing would change: order, spaces, escapes, and
        // large and precise numbers.
        let event = "{ \"type\":\"order.created\",\"specversion\":\"1.0\",\n  \"source\": \"/shop\", \"id\":\"exact-1\",\
                     \"time\":\"2026-11-20T07:00:00.1234567+01:00\",\"data\":{\"b\":1.50,\"a\":12345678901234567890123,\
                     \"text\":\"gr\\u00fc\\u00dfe, grüße \\/ 🦀\"}\t}";
        deployment.stack.publish("shop/orders", event).await;
        let arrivals = deployment
            .subscriber
            .arrived("/good", ARRIVAL_LIMIT, |arrivals| !arrivals.is_empty())
            .await;
        assert_eq!(std::str::from_utf8(&arrivals[0].body), Ok(event));
        assert_eq!(arrivals[0].content_type, "application/cloudevents+json; charset=utf-8");
    });
}

#[test]
fn an_event_refused_with_400_becomes_one_dead_letter_with_the_reason() {
    on_deployment(|deployment| async move {
        deployment.stack.publish("shop/refused", &event("refused-1")).await;
        let letters = deployment.dead_letters("shop/refused/", 1).await;
        let [(key, letter)] = letters.as_slice() else {
            panic!("one dead letter is expected: {letters:#?}")
        };
        assert_key(key, "shop/refused/refuser/");
        assert_eq!(
            letter["deadletterProperties"]["deadletterreasoncode"],
            "UndeliverableDueToHttpBadRequest"
        );
        assert_eq!(
            letter["event"],
            serde_json::from_str::<Value>(&event("refused-1")).expect("an event is JSON")
        );
        assert_eq!(
            deployment.subscriber.arrivals("/refuses").len(),
            1,
            "a refused event is not retried"
        );
    });
}

#[test]
fn an_event_refused_with_503_is_retried_through_the_retry_queue_and_never_early() {
    on_deployment(|deployment| async move {
        deployment.stack.publish("shop/retried", &event("retried-1")).await;
        deployment
            .subscriber
            .arrived("/busy-twice", ARRIVAL_LIMIT, |arrivals| !arrivals.is_empty())
            .await;
        deployment.seen_in_the_retry_queue().await;
        let arrivals = deployment
            .subscriber
            .arrived("/busy-twice", ARRIVAL_LIMIT, |arrivals| answers(arrivals).len() == 3)
            .await;
        assert_eq!(answers(&arrivals), [503, 503, 200]);
        for (pair, wait) in arrivals.windows(2).zip(WAITS) {
            let waited = pair[1].at.duration_since(pair[0].at);
            assert!(waited >= wait, "retried after {waited:?} instead of {wait:?}");
        }
        assert!(deployment.stack.dead_letters("shop/retried/").await.is_empty());
    });
}

#[test]
fn no_event_is_lost_when_functions_are_killed_while_they_wait_for_a_response() {
    on_deployment(|deployment| async move {
        let ids: Vec<String> =
            (0..KILLED_EVENTS).map(|number| format!("killed-{number}")).collect();
        for wave in ids.chunks(KILLED_EVENTS.div_ceil(KILLS)) {
            deployment.publish_and_kill(wave).await;
        }
        let deadline = now() + KILLED_LIMIT;
        let mut missing = deployment.missing(&ids).await;
        while !missing.is_empty() && now() < deadline {
            tokio::time::sleep(Duration::from_secs(1)).await;
            missing = deployment.missing(&ids).await;
        }
        assert!(
            missing.is_empty(),
            "neither delivered nor dead-lettered after {KILLED_LIMIT:?}: {missing:?}"
        );
        let arrivals = deployment.subscriber.arrivals("/killed/").len();
        let duplicates = arrivals.saturating_sub(KILLED_EVENTS * KILLED_SUBSCRIPTIONS.len());
        // The test harness captures standard output of passing tests, but not this.
        let figures = format!(
            "{KILLED_EVENTS} events, {KILLS} kills, {arrivals} requests, {duplicates} duplicates"
        );
        writeln!(std::io::stderr(), "{figures}").expect("standard error is writable");
    });
}

/// The shared environment of all tests: the deployed application, the gateway that its functions
/// call instead of the emulated AWS, and the subscriber.
struct Deployment {
    stack: Stack,
    gateway: Gateway,
    subscriber: Subscriber,
    peers: Peers,
}

/// Runs a test in the shared environment, beside at most one other test.
fn on_deployment<Test: Future<Output = ()>>(test: impl FnOnce(&'static Deployment) -> Test) {
    run_with(1, test);
}

/// Runs a test while no other test uses the environment. Other tests kill functions, which loses
/// their counts.
fn alone_on_deployment<Test: Future<Output = ()>>(test: impl FnOnce(&'static Deployment) -> Test) {
    run_with(TESTS_AT_ONCE, test);
}

/// Runs a test that uses this many places in the environment. All tests share one runtime, because
/// the subscriber and the clients' connections must outlive the first test.
fn run_with<Test: Future<Output = ()>>(
    places: u32,
    test: impl FnOnce(&'static Deployment) -> Test,
) {
    static PLACES: Semaphore = Semaphore::const_new(TESTS_AT_ONCE as usize);
    static DEPLOYMENT: OnceLock<(Runtime, Deployment)> = OnceLock::new();
    if !has_tools() {
        return;
    }
    let (runtime, deployment) = DEPLOYMENT.get_or_init(|| {
        let runtime = Runtime::new().expect("a runtime starts");
        let deployment = runtime.block_on(Deployment::set());
        (runtime, deployment)
    });
    runtime.block_on(async {
        let _permit = PLACES.acquire_many(places).await.expect("nobody closes it");
        test(deployment).await;
    });
    permissions::assert_no_call_was_denied(&deployment.stack);
}

impl Deployment {
    async fn set() -> Self {
        let subscriber = Subscriber::start(Scripts::from([
            ("/good", [200].as_slice()),
            ("/refuses", [400].as_slice()),
            ("/busy-twice", [503, 503, 200].as_slice()),
            ("/counted/takes", [200].as_slice()),
            ("/counted/busy-once", [503, 200].as_slice()),
            ("/counted/refuses", [400].as_slice()),
            ("/told/busy-once", [503, 200].as_slice()),
            ("/told/refuses", [400].as_slice()),
            ("/traced/busy-once", [503, 200].as_slice()),
            ("/traced/takes", [200].as_slice()),
            ("/traced/refuses", [400].as_slice()),
            ("/aws", [200].as_slice()),
            ("/samples", [503, 200].as_slice()),
            ("/forged", [200].as_slice()),
            ("/over-http", [200].as_slice()),
            ("/crashing", [200].as_slice()),
            ("/beside", [200].as_slice()),
            ("/doctored", [200].as_slice()),
            ("/doctored-refuses", [401].as_slice()),
            ("/killed/left", [200].as_slice()),
            ("/killed/right", [200].as_slice()),
        ]))
        .await;
        let peers = Peers::start().await;
        let all = [subscriptions(subscriber.address), peers.subscriptions()].join("---\n");
        let port = ReservedPort::take();
        let gateway = Gateway::start(port.number, 0).await;
        gateway.calm();
        let stack = Stack::deploy_at(port, gateway.port, &[], all.clone()).await;
        // These subscriptions need outputs of the deployment, and are applied before any event.
        let of_aws = credentials::of_aws::subscriptions(&stack, &peers);
        stack.put_subscriptions([all, of_aws].join("---\n")).await;
        Self { stack, gateway, subscriber, peers }
    }

    /// Waits for this many dead letters under a prefix.
    async fn dead_letters(&self, prefix: &str, count: usize) -> Vec<(String, Value)> {
        let deadline = now() + ARRIVAL_LIMIT;
        loop {
            let letters = self.stack.dead_letters(prefix).await;
            if letters.len() >= count || now() >= deadline {
                return letters;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits until a message waits in the retry queue.
    async fn seen_in_the_retry_queue(&self) {
        let seen = async {
            while self.stack.waiting_retries().await == 0 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(ARRIVAL_LIMIT, seen).await.expect("a retry waits in the retry queue");
    }

    /// Publishes while the subscriber holds its responses, and kills the function that waits for
    /// one of these events.
    async fn publish_and_kill(&self, ids: &[String]) {
        self.subscriber.hold("/killed/");
        for id in ids {
            self.stack.publish("shop/killed", &event(id)).await;
        }
        let waits =
            |arrival: &Arrival| arrival.answered.is_none() && ids.contains(&event_id(arrival));
        let arrivals = self
            .subscriber
            .arrived("/killed/", ARRIVAL_LIMIT, |arrivals| arrivals.iter().any(waits))
            .await;
        let held = arrivals.iter().rfind(|arrival| waits(arrival)).expect("a response is held");
        kill_the_function_at(held.from, self.subscriber.address);
        self.subscriber.release("/killed/");
    }

    /// Returns the deliveries that were neither answered nor dead-lettered.
    async fn missing(&self, ids: &[String]) -> Vec<String> {
        let answered = self.subscriber.arrivals("/killed/");
        let answered = answered.iter().filter(|arrival| arrival.answered.is_some());
        let mut ended: BTreeSet<String> =
            answered.map(|arrival| format!("{} {}", arrival.path, event_id(arrival))).collect();
        for (key, letter) in self.stack.dead_letters("shop/killed/").await {
            let subscription = key.split('/').nth(2).expect("a key names its subscription");
            let id = letter["event"]["id"].as_str().expect("a dead letter holds its event");
            ended.insert(format!("/killed/{subscription} {id}"));
        }
        let expected = ids
            .iter()
            .flat_map(|id| KILLED_SUBSCRIPTIONS.map(|name| format!("/killed/{name} {id}")));
        expected.filter(|delivery| !ended.contains(delivery)).collect()
    }
}

fn subscriptions(subscriber: SocketAddr) -> String {
    let subscription = |topic: &str, name: &str, path: &str, more: &str| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
             metadata: {{namespace: shop, topic: {topic}, name: {name}}}\n\
             spec:\n  destination: {{url: \"http://{subscriber}{path}\"}}\n{more}"
        )
    };
    let [first, second] = WAITS.map(|wait| wait.as_secs());
    let retry = format!(
        "  retry: {{schedule: {{kind: waits, waits: [PT{first}S, PT{second}S]}}, jitterPercent: 0}}\n"
    );
    [
        subscription("orders", "billing", "/good", ""),
        subscription("refused", "refuser", "/refuses", ""),
        subscription("retried", "busy", "/busy-twice", &retry),
        subscription("killed", KILLED_SUBSCRIPTIONS[0], "/killed/left", &retry),
        subscription("killed", KILLED_SUBSCRIPTIONS[1], "/killed/right", &retry),
        subscription("forged", "all", "/forged", ""),
        subscription("over-http", "all", "/over-http", ""),
        subscription("crashing", "all", "/crashing", ""),
        subscription("beside", "all", "/beside", ""),
        subscription("samples", "reader", "/samples", &retry),
        subscription("counted", "takes", "/counted/takes", ""),
        subscription("counted", "busy", "/counted/busy-once", &retry),
        subscription("counted", "refuses", "/counted/refuses", ""),
        subscription("counted", "picky", "/counted/takes", "  filter: {exact: {type: never}}\n"),
        subscription("told", "busy", "/told/busy-once", &retry),
        subscription("told", "refuses", "/told/refuses", ""),
        subscription("traced", "busy", "/traced/busy-once", &retry),
        subscription("traced", "takes", "/traced/takes", ""),
        subscription("traced", "refuses", "/traced/refuses", ""),
        publishers::SAMPLES_TOPIC.to_owned(),
        publishers::page_subscription(subscriber),
    ]
    .join("---\n")
}

fn event(id: &str) -> String {
    json!({"specversion": "1.0", "type": "order.created", "source": "/shop", "id": id, "data": {"amount": 7}})
        .to_string()
}

fn event_id(arrival: &Arrival) -> String {
    let event: Value = serde_json::from_slice(&arrival.body).expect("an event is JSON");
    event["id"].as_str().expect("an event has an id").to_owned()
}

fn answers(arrivals: &[Arrival]) -> Vec<u16> {
    arrivals.iter().filter_map(|arrival| arrival.answered).collect()
}

/// Checks the form `<prefix><yyyy>/<M>/<d>/<H>/<guid>.json`, with numbers without leading zeros.
fn assert_key(key: &str, prefix: &str) {
    let rest =
        key.strip_prefix(prefix).unwrap_or_else(|| panic!("{key} does not start with {prefix}"));
    let segments: Vec<&str> = rest.split('/').collect();
    let [year, month, day, hour, file] = segments.as_slice() else {
        panic!("{key} has other segments")
    };
    for (text, range) in [(year, 2026..=9999), (month, 1..=12), (day, 1..=31), (hour, 0..=23)] {
        let number: u16 = text.parse().unwrap_or_else(|_| panic!("{text} in {key} is no number"));
        assert!(range.contains(&number) && **text == number.to_string(), "{text} in {key}");
    }
    let guid = file.strip_suffix(".json").unwrap_or_else(|| panic!("{key} is no .json"));
    assert!(uuid::Uuid::parse_str(guid).is_ok(), "{guid} in {key} is no GUID");
}

#[expect(clippy::disallowed_methods, reason = "what is tested here runs in real time")]
fn now() -> Instant {
    Instant::now()
}
