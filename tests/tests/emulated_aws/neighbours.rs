//! Some of twenty destinations are ill. The tests measure the effect on the others, and the end of
//! the deliveries to one that never responds.
//!
//! They are separate from the simulation of the same name, whose time is virtual: here are real
//! processes, with few concurrent invocations. Each run has its own deployment. Figures:
//! `docs/reference/figures/emulated-aws.md` and `bench/neighbours.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use lastmile_tests::emulated::ReservedPort;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::stack::Stack;
use crate::subscriber::{Manner, Scripts, Subscriber};
use crate::{event, event_id, now};

/// The number of destinations. Each has its own topic and path, and the first ones are ill.
const DESTINATIONS: usize = 20;
const HANGING: &str = "/neighbours/00";

/// The number of events, sent to all topics in turn.
const EVENTS: usize = 500;
const EVENTS_EACH: usize = EVENTS / DESTINATIONS;
const PUBLISHED_WITHIN: Duration = Duration::from_secs(15);

/// The parameters allow few concurrent invocations. The timeout has a matching visibility timeout.
const PARAMETERS: [&str; 2] = ["Concurrency=10", "DispatchTimeout=60"];

/// The longest delay of 95 in 100 events for destinations that do not hang, and of all of them.
const MOST_WITHIN: Duration = Duration::from_secs(10);
const ALL_WITHIN: Duration = Duration::from_secs(40);

/// The longest wait until the events of the hanging destination are dead letters.
const LIMIT: Duration = Duration::from_secs(900);
/// The longest wait for the events of the healthy destinations.
const HEALTHY_LIMIT: Duration = Duration::from_secs(120);

/// A fault of a destination.
#[derive(Debug, Clone, Copy)]
enum Illness {
    Hangs,
    IsSlow,
    Fails,
    /// Fails and recovers so often that the changes overlap with the publishing.
    Flaps,
}

const TAKES: Duration = Duration::from_secs(5);
const FLAPS: Duration = Duration::from_secs(5);

#[test]
#[ignore = "takes minutes; run by hand"]
fn one_destination_of_twenty_that_hangs_delays_the_others_by_seconds_at_most() {
    let runtime = Runtime::new().expect("a runtime starts");
    let alone = runtime.block_on(Run::with(false));
    let beside = runtime.block_on(Run::with(true));
    println!("{}", Table { alone: &alone, beside: &beside });
    for run in [&alone, &beside] {
        assert!(run.left.is_empty(), "did not drain: {:?}", run.left);
        let healthy = &run.healthy;
        assert_eq!(healthy.delays.len(), EVENTS - EVENTS_EACH, "each healthy delivery arrives");
        let is_soon = healthy.delay(95) <= MOST_WITHIN && healthy.delay(100) <= ALL_WITHIN;
        assert!(is_soon, "{:?}", healthy.delays);
    }
    assert_eq!(beside.hanging.len(), EVENTS_EACH, "each delivery of the one that hangs ends");
    for (id, account) in &beside.hanging {
        assert_eq!(account.broken(), None, "{id}: {account:?}");
    }
}

/// The longest delays if one destination hangs from the beginning and no process has detected it.
const MOST_BESIDE_ONE: Duration = Duration::from_secs(1);
const ALL_BESIDE_ONE: Duration = Duration::from_secs(3);

#[test]
#[ignore = "takes a minute; run by hand"]
fn of_the_events_beside_one_that_hangs_nearly_all_take_a_second_and_the_last_three() {
    let runtime = Runtime::new().expect("a runtime starts");
    let healthy = runtime.block_on(noticed_beside(1, Illness::Hangs));
    println!("{healthy}");
    assert_eq!(healthy.delays.len(), EVENTS - EVENTS_EACH, "each healthy delivery arrives");
    let is_soon = healthy.delay(95) <= MOST_BESIDE_ONE && healthy.delay(100) <= ALL_BESIDE_ONE;
    assert!(is_soon, "{:?}", healthy.delays);
}

/// Every fault, for two numbers of ill destinations: the rows of `bench/neighbours`.
#[test]
#[ignore = "prints a table; bench/neighbours runs it"]
fn table_of_neighbours_on_the_emulated_aws() {
    let kinds = [
        ("hang", Illness::Hangs),
        ("take 5 s", Illness::IsSlow),
        ("answer 503", Illness::Fails),
        ("answer 503 for 5 s, then 200 for 5 s", Illness::Flaps),
    ];
    let runtime = Runtime::new().expect("a runtime starts");
    let row = |name: &str, ill: usize, illness| {
        let noticed = runtime.block_on(noticed_beside(ill, illness));
        println!("| {name} | {noticed} |");
        assert_eq!(noticed.delays.len(), EVENTS - ill * EVENTS_EACH, "{name}: all arrive");
    };
    row("none", 0, Illness::Hangs);
    for (name, illness) in kinds {
        for ill in [1, 4] {
            row(&format!("{ill} of 20 {name}"), ill, illness);
        }
    }
}

/// Returns the observations of the healthy destinations beside `ill` others, after all of their
/// events arrived.
async fn noticed_beside(ill: usize, illness: Illness) -> Noticed {
    let begun = Begun::with(ill, illness).await;
    let wanted = EVENTS - ill * EVENTS_EACH;
    loop {
        let noticed = begun.noticed(ill);
        if noticed.delays.len() == wanted || begun.started.elapsed() >= HEALTHY_LIMIT {
            return noticed;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// A run whose events have been published.
struct Begun {
    subscriber: Subscriber,
    stack: Arc<Stack>,
    started: Instant,
    /// The time at which each event was sent.
    sent: BTreeMap<String, Instant>,
}

impl Begun {
    /// Publishes all events while the first `ill` destinations have this fault.
    async fn with(ill: usize, illness: Illness) -> Self {
        let paths: Vec<&'static str> =
            (0..DESTINATIONS).map(|number| &*path(number).leak()).collect();
        let scripts: Scripts = paths.iter().map(|path| (*path, [200].as_slice())).collect();
        let subscriber = Subscriber::start(scripts).await;
        let (port, file) = (ReservedPort::take(), subscriptions(subscriber.address));
        let number = port.number;
        let stack = Arc::new(Stack::deploy_at(port, number, &PARAMETERS, file).await);
        let started = now();
        for path in paths.iter().take(ill) {
            match illness {
                Illness::Hangs => subscriber.hold(path),
                Illness::IsSlow => subscriber.differ(path, Manner::Takes(TAKES)),
                Illness::Fails => subscriber.differ(path, Manner::Answers(503)),
                Illness::Flaps => subscriber.differ(path, Manner::Flaps(started, FLAPS)),
            }
        }
        let sent = publish(&stack).await;
        Self { subscriber, stack, started, sent }
    }

    /// Returns the observations so far of the destinations after the first `ill`.
    fn noticed(&self, ill: usize) -> Noticed {
        let mut arrivals = self.subscriber.arrivals("/neighbours/");
        let first_healthy = path(ill);
        arrivals.retain(|arrival| arrival.path >= first_healthy);
        let mut first: BTreeMap<String, Instant> = BTreeMap::new();
        for arrival in &arrivals {
            first.entry(event_id(arrival)).or_insert(arrival.at);
        }
        let mut delays: Vec<Duration> =
            first.iter().map(|(id, at)| at.duration_since(self.sent[id])).collect();
        delays.sort();
        let last = first.values().max().copied().unwrap_or(self.started);
        Noticed { delays, requests: arrivals.len(), lasted: last.duration_since(self.started) }
    }
}

/// The observations of healthy destinations.
struct Noticed {
    /// The time from sending an event to its arrival, in ascending order.
    delays: Vec<Duration>,
    /// Requests to the healthy destinations.
    requests: usize,
    /// The time from the first event to its last arrival.
    lasted: Duration,
}

impl Noticed {
    /// The delay that this percentage of events does not exceed.
    fn delay(&self, percent: usize) -> Duration {
        self.delays[(self.delays.len() * percent).div_ceil(100) - 1]
    }

    fn per_second(&self) -> f64 {
        self.delays.len() as f64 / self.lasted.as_secs_f64()
    }
}

/// Formats the observations as columns of the table of `bench/neighbours.md`.
impl fmt::Display for Noticed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for percent in [50, 95, 99, 100] {
            write!(f, "{} | ", self.delay(percent).as_millis())?;
        }
        write!(f, "{:.1}", self.per_second())
    }
}

/// The results of one run.
struct Run {
    /// The observations of all destinations but the first.
    healthy: Noticed,
    /// The time until nothing was left.
    drained: Duration,
    processes: usize,
    /// The deliveries to the hanging destination, by event.
    hanging: BTreeMap<String, Account>,
    /// Messages that remained, by queue.
    left: Vec<(String, usize)>,
}

/// One delivery to the hanging destination.
#[derive(Debug, Default)]
struct Account {
    /// Requests that the destination has received.
    requests: usize,
    /// The logged numbers of the counted attempts.
    counted: Vec<u64>,
    /// Attempts that were abandoned and moved to the slow lane.
    abandoned: usize,
    /// The attempts of each dead letter of the delivery.
    dead_letters: Vec<u64>,
}

impl Account {
    /// Returns the first inconsistency of this account.
    fn broken(&self) -> Option<&'static str> {
        let counted = self.counted.len();
        let in_order = (1..).zip(&self.counted).all(|(number, counted)| number == *counted);
        if !in_order {
            return Some("an attempt was lost or counted twice");
        }
        if !matches!(self.dead_letters[..], [attempts] if attempts == counted as u64) {
            return Some("it has not one dead letter with all attempts");
        }
        if self.abandoned > 1 {
            return Some("it was abandoned twice");
        }
        (self.requests != counted + self.abandoned)
            .then_some("a request was neither counted nor abandoned, or not made")
    }
}

impl Run {
    /// Runs until every event has ended. With `hangs`, the first destination never responds.
    async fn with(hangs: bool) -> Self {
        let begun = Begun::with(usize::from(hangs), Illness::Hangs).await;
        let Begun { subscriber, stack, started, .. } = &begun;
        let ended = |ids: &BTreeSet<String>| ids.len() == EVENTS;
        while !ended(&ended_ids(subscriber, stack).await) && started.elapsed() < LIMIT {
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        let left = stack.drained(LIMIT).await;
        Self {
            healthy: begun.noticed(1),
            drained: started.elapsed(),
            processes: stack.dispatch_processes(),
            hanging: if hangs { accounts(subscriber, stack).await } else { BTreeMap::new() },
            left,
        }
    }
}

/// Sends the events at equal intervals. Returns the time at which each was sent.
async fn publish(stack: &Arc<Stack>) -> BTreeMap<String, Instant> {
    let mut ticks = tokio::time::interval(PUBLISHED_WITHIN / u32::try_from(EVENTS).expect("few"));
    let (mut sent, mut sending) = (BTreeMap::new(), Vec::new());
    for number in 0..EVENTS {
        ticks.tick().await;
        let (id, stack) = (format!("neighbour-{number:03}"), Arc::clone(stack));
        sent.insert(id.clone(), now());
        let topic = topic(number % DESTINATIONS);
        sending.push(tokio::spawn(async move { stack.publish(&topic, &event(&id)).await }));
    }
    let published = join_all(sending).await;
    assert!(published.iter().all(Result::is_ok), "every event is sent");
    sent
}

/// Returns the events that were answered or are dead letters.
async fn ended_ids(subscriber: &Subscriber, stack: &Stack) -> BTreeSet<String> {
    let arrivals = subscriber.arrivals("/neighbours/");
    let answered = arrivals.iter().filter(|arrival| arrival.answered.is_some());
    let letters = stack.dead_letters(&topic(0)).await;
    let dead = letters.iter().filter_map(|(_, letter)| letter["event"]["id"].as_str());
    answered.map(event_id).chain(dead.map(ToOwned::to_owned)).collect()
}

/// Accounts for each event of the hanging destination, from its requests, the log lines and the
/// dead letters.
async fn accounts(subscriber: &Subscriber, stack: &Stack) -> BTreeMap<String, Account> {
    let mut accounts: BTreeMap<String, Account> = BTreeMap::new();
    for arrival in subscriber.arrivals(HANGING) {
        accounts.entry(event_id(&arrival)).or_default().requests += 1;
    }
    let subscription = format!("{}/all", topic(0));
    let is_its_own = |line: &Value| line["subscription"] == subscription.as_str();
    for line in stack.log_lines().into_iter().filter(is_its_own) {
        let Some(id) = line["event_id"].as_str() else { continue };
        let account = accounts.entry(id.to_owned()).or_default();
        match line["message"].as_str() {
            Some("delivery.attempted" | "delivery.delivered") => {
                account.counted.push(line["attempt"].as_u64().expect("a number"));
            }
            Some("delivery.abandoned") => account.abandoned += 1,
            _ => {}
        }
    }
    for (_, letter) in stack.dead_letters(&topic(0)).await {
        let id = letter["event"]["id"].as_str().expect("a dead letter holds its event");
        let attempts = letter["deadletterProperties"]["deliveryattempts"].as_u64();
        let account = accounts.entry(id.to_owned()).or_default();
        account.dead_letters.push(attempts.expect("a dead letter has a number of attempts"));
    }
    // Invocations may end in another order than they log.
    accounts.values_mut().for_each(|account| account.counted.sort_unstable());
    accounts
}

fn topic(number: usize) -> String {
    format!("shop/neighbour-{number:02}")
}

fn path(number: usize) -> String {
    format!("/neighbours/{number:02}")
}

/// Returns subscriptions with native defaults, and a time to live that soon ends deliveries to the
/// hanging destination.
fn subscriptions(subscriber: SocketAddr) -> String {
    let document = |number| {
        let (topic, path) = (topic(number).replace("shop/", ""), path(number));
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
             metadata: {{namespace: shop, topic: {topic}, name: all}}\n\
             spec:\n  destination: {{url: \"http://{subscriber}{path}\", timeout: PT30S}}\n  \
             retry: {{timeToLive: PT2M}}\n"
        )
    };
    (0..DESTINATIONS).map(document).collect::<Vec<_>>().join("---\n")
}

/// Formats both runs as the table of `docs/reference/figures/emulated-aws.md`.
struct Table<'a> {
    alone: &'a Run,
    beside: &'a Run,
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { alone, beside } = self;
        writeln!(f, "\n| | nobody hangs | one hangs |\n|---|---|---|")?;
        let mut row = |name: &str, value: &dyn Fn(&Run) -> String| {
            writeln!(f, "| {name} | {} | {} |", value(alone), value(beside))
        };
        let accounts = |run: &Run, count: fn(&Account) -> usize| {
            run.hanging.values().map(count).sum::<usize>().to_string()
        };
        row("deliveries to the other 19", &|run| run.healthy.delays.len().to_string())?;
        row("requests to them", &|run| run.healthy.requests.to_string())?;
        for (name, percent) in [("half", 50), ("95 %", 95), ("99 %", 99), ("last", 100)] {
            let name = format!("from sending to arrival, {name}, ms");
            row(&name, &|run| run.healthy.delay(percent).as_millis().to_string())?;
        }
        row("throughput of the 19, per second", &|run| format!("{:.1}", run.healthy.per_second()))?;
        row("deliveries to the one that hangs", &|run| run.hanging.len().to_string())?;
        row("requests to it", &|run| accounts(run, |account| account.requests))?;
        row("of these abandoned", &|run| accounts(run, |account| account.abandoned))?;
        row("of these counted", &|run| accounts(run, |account| account.counted.len()))?;
        row("its dead letters", &|run| accounts(run, |account| account.dead_letters.len()))?;
        row("processes of dispatch", &|run| run.processes.to_string())?;
        row("until every queue was empty, seconds", &|run| run.drained.as_secs().to_string())
    }
}
