//! Some destinations of twenty are ill: what the others notice, and what becomes of the deliveries of one
//! that never answers.
//!
//! Separate from the simulation of the same name, whose time is virtual: here are real processes, with
//! few invocations at once. Each run has a deployment of its own. Figures: `docs/reference/figures/emulated-aws.md` and
//! `bench/neighbours.md`.

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

/// Each has a topic and a path of its own; the first ones are ill.
const DESTINATIONS: usize = 20;
const HANGING: &str = "/neighbours/00";

/// To all topics in turn.
const EVENTS: usize = 500;
const EVENTS_EACH: usize = EVENTS / DESTINATIONS;
const PUBLISHED_WITHIN: Duration = Duration::from_secs(15);

/// Few invocations at once, and a timeout with the visibility timeout that belongs to it.
const PARAMETERS: [&str; 2] = ["Concurrency=10", "DispatchTimeout=60"];

/// Within this, 95 of 100 events arrive at the destinations that do not hang, and all of them.
const MOST_WITHIN: Duration = Duration::from_secs(10);
const ALL_WITHIN: Duration = Duration::from_secs(40);

/// How long everything is waited for: until the events of the hanging destination are dead letters.
const LIMIT: Duration = Duration::from_secs(900);
/// How long the events of the healthy destinations are waited for.
const HEALTHY_LIMIT: Duration = Duration::from_secs(120);

/// How a destination may be ill.
#[derive(Debug, Clone, Copy)]
enum Illness {
    Hangs,
    IsSlow,
    Fails,
    /// So often that some of it falls into the time of publication.
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

/// Beside one that hangs from the beginning, when no process knows it.
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

/// Every kind at two shares: the rows of `bench/neighbours`.
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

/// What the healthy ones noticed beside so many that are ill, once all of their events arrived.
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

/// A run whose events are published.
struct Begun {
    subscriber: Subscriber,
    stack: Arc<Stack>,
    started: Instant,
    /// When each event was sent.
    sent: BTreeMap<String, Instant>,
}

impl Begun {
    /// With so many of the first destinations ill.
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

    /// What the destinations behind the first ones have noticed so far.
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

/// What healthy destinations noticed.
struct Noticed {
    /// From sending an event to its arrival, the shortest first.
    delays: Vec<Duration>,
    /// Requests to them.
    requests: usize,
    /// From the first event to its last arrival.
    lasted: Duration,
}

impl Noticed {
    /// The delay that so many in a hundred do not exceed.
    fn delay(&self, percent: usize) -> Duration {
        self.delays[(self.delays.len() * percent).div_ceil(100) - 1]
    }

    fn per_second(&self) -> f64 {
        self.delays.len() as f64 / self.lasted.as_secs_f64()
    }
}

/// As columns of the table of `bench/neighbours.md`.
impl fmt::Display for Noticed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for percent in [50, 95, 99, 100] {
            write!(f, "{} | ", self.delay(percent).as_millis())?;
        }
        write!(f, "{:.1}", self.per_second())
    }
}

/// What one run showed.
struct Run {
    /// To those but the first one.
    healthy: Noticed,
    /// Until nothing was left, in all.
    drained: Duration,
    processes: usize,
    /// What happened to each event of the destination that hangs.
    hanging: BTreeMap<String, Account>,
    /// Messages that were left, by queue.
    left: Vec<(String, usize)>,
}

/// One delivery to the destination that hangs.
#[derive(Debug, Default)]
struct Account {
    /// Requests that the destination has read.
    requests: usize,
    /// The numbers of the attempts that were counted, as they were logged.
    counted: Vec<u64>,
    /// Attempts that were abandoned for the slow lane.
    abandoned: usize,
    /// The attempts of each of its dead letters.
    dead_letters: Vec<u64>,
}

impl Account {
    /// What is wrong with it.
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
    /// Until all has ended; whether the first destination hangs.
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

/// Sends the events at equal intervals; when each was sent.
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

/// The events that were answered or are dead letters.
async fn ended_ids(subscriber: &Subscriber, stack: &Stack) -> BTreeSet<String> {
    let arrivals = subscriber.arrivals("/neighbours/");
    let answered = arrivals.iter().filter(|arrival| arrival.answered.is_some());
    let letters = stack.dead_letters(&topic(0)).await;
    let dead = letters.iter().filter_map(|(_, letter)| letter["event"]["id"].as_str());
    answered.map(event_id).chain(dead.map(ToOwned::to_owned)).collect()
}

/// What happened to each event of the destination that hangs: what it saw itself, the log lines, and the
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
    // Invocations end in another order than they log.
    accounts.values_mut().for_each(|account| account.counted.sort_unstable());
    accounts
}

fn topic(number: usize) -> String {
    format!("shop/neighbour-{number:02}")
}

fn path(number: usize) -> String {
    format!("/neighbours/{number:02}")
}

/// With the native defaults; a time to live, so that what is sent to the one that hangs ends soon.
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

/// Both runs, as the table of `docs/reference/figures/emulated-aws.md`.
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
