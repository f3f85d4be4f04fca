//! One destination of twenty never answers: what the others notice, and what becomes of its own
//! deliveries.
//!
//! Separate from the simulation of the same name, whose time is virtual: here are real processes, with
//! few invocations at once. Each run has a deployment of its own. Figures: `docs/testing.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::stack::{Stack, free_port};
use crate::subscriber::{Arrival, Scripts, Subscriber};
use crate::{event, event_id, now};

/// Each has a topic and a path of its own; the first one hangs.
const DESTINATIONS: usize = 20;
const HANGING: &str = "/neighbours/00";

/// To all topics in turn.
const EVENTS: usize = 500;
const EVENTS_EACH: usize = EVENTS / DESTINATIONS;
const PUBLISHED_WITHIN: Duration = Duration::from_secs(15);

/// Few invocations at once, and a visibility timeout of six times the functions' timeout.
const PARAMETERS: [&str; 4] =
    ["EventsConcurrency=4", "RetryConcurrency=2", "DispatchTimeout=60", "VisibilityTimeout=360"];

/// Within this, 95 of 100 events arrive at the destinations that do not hang, and all of them.
const MOST_WITHIN: Duration = Duration::from_secs(10);
const ALL_WITHIN: Duration = Duration::from_secs(40);

/// How long everything is waited for: until the events of the hanging destination are dead letters.
const LIMIT: Duration = Duration::from_secs(900);

#[test]
#[ignore = "takes minutes; run by hand"]
fn one_destination_of_twenty_that_hangs_delays_the_others_by_seconds_at_most() {
    let runtime = Runtime::new().expect("a runtime starts");
    let alone = runtime.block_on(Run::with(false));
    let beside = runtime.block_on(Run::with(true));
    println!("{}", Table { alone: &alone, beside: &beside });
    for run in [&alone, &beside] {
        assert!(run.left.is_empty(), "did not drain: {:?}", run.left);
        assert_eq!(run.delays.len(), EVENTS - EVENTS_EACH, "each healthy delivery arrives");
        assert!(run.delay(95) <= MOST_WITHIN && run.delay(100) <= ALL_WITHIN, "{:?}", run.delays);
    }
    assert_eq!(beside.hanging.len(), EVENTS_EACH, "each delivery of the one that hangs ends");
    for (id, account) in &beside.hanging {
        assert_eq!(account.broken(), None, "{id}: {account:?}");
    }
}

/// What one run showed.
struct Run {
    /// From sending an event to its arrival at a destination that does not hang, the shortest first.
    delays: Vec<Duration>,
    /// Requests to those destinations.
    requests: usize,
    /// From the first event to its last arrival there.
    lasted: Duration,
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
    async fn with(hangs: bool) -> Self {
        let paths = (0..DESTINATIONS).map(|number| &*path(number).leak());
        let scripts: Scripts = paths.map(|path| (path, [200].as_slice())).collect();
        let subscriber = Subscriber::start(scripts).await;
        if hangs {
            subscriber.hold(HANGING);
        }
        let (port, file) = (free_port(), subscriptions(subscriber.address));
        let stack = Arc::new(Stack::deploy_at(port, port, &PARAMETERS, file).await);
        let started = now();
        let sent = publish(&stack).await;
        let ended = |ids: &BTreeSet<String>| ids.len() == EVENTS;
        while !ended(&ended_ids(&subscriber, &stack).await) && started.elapsed() < LIMIT {
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        let left = stack.drained(LIMIT).await;
        let healthy = |arrival: &Arrival| arrival.path != HANGING;
        let mut arrivals = subscriber.arrivals("/neighbours/");
        arrivals.retain(healthy);
        let mut first: BTreeMap<String, Instant> = BTreeMap::new();
        for arrival in &arrivals {
            first.entry(event_id(arrival)).or_insert(arrival.at);
        }
        let mut delays: Vec<Duration> =
            first.iter().map(|(id, at)| at.duration_since(sent[id])).collect();
        delays.sort();
        let last = first.values().max().expect("an event arrived");
        Self {
            delays,
            requests: arrivals.len(),
            lasted: last.duration_since(started),
            drained: started.elapsed(),
            processes: stack.dispatch_processes(),
            hanging: if hangs { accounts(&subscriber, &stack).await } else { BTreeMap::new() },
            left,
        }
    }

    /// The delay that so many in a hundred do not exceed.
    fn delay(&self, percent: usize) -> Duration {
        self.delays[(self.delays.len() * percent).div_ceil(100) - 1]
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
            Some("delivery.attempted") => {
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

/// Both runs, as the table of `docs/testing.md`.
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
        row("deliveries to the other 19", &|run| run.delays.len().to_string())?;
        row("requests to them", &|run| run.requests.to_string())?;
        for (name, percent) in [("half", 50), ("95 %", 95), ("99 %", 99), ("last", 100)] {
            let name = format!("from sending to arrival, {name}, ms");
            row(&name, &|run| run.delay(percent).as_millis().to_string())?;
        }
        row("throughput of the 19, per second", &|run| {
            format!("{:.1}", run.delays.len() as f64 / run.lasted.as_secs_f64())
        })?;
        row("deliveries to the one that hangs", &|run| run.hanging.len().to_string())?;
        row("requests to it", &|run| accounts(run, |account| account.requests))?;
        row("of these abandoned", &|run| accounts(run, |account| account.abandoned))?;
        row("of these counted", &|run| accounts(run, |account| account.counted.len()))?;
        row("its dead letters", &|run| accounts(run, |account| account.dead_letters.len()))?;
        row("processes of dispatch", &|run| run.processes.to_string())?;
        row("until every queue was empty, seconds", &|run| run.drained.as_secs().to_string())
    }
}
