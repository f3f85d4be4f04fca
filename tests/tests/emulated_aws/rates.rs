//! A rate, and a number of requests at once, that several processes keep together.
//!
//! Separate from the rules' own tests and from the simulation: here real processes contend for one
//! item of the table, and messages are delayed by a queue. Figures: `docs/reference/figures/emulated-aws.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use delivery::time::duration::{MINUTE_MS, SECOND_MS};
use lastmile_tests::emulated::ReservedPort;
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::campaign::gateway::Gateway;
use crate::campaign::table_calls::TableCall;
use crate::processes::function_at;
use crate::stack::Stack;
use crate::subscriber::{Arrival, Manner, Scripts, Subscriber};
use crate::{event, event_id, now};

/// How many events are published without the variable `EVENTS`, and how many invocations for new events and
/// for retries may run at once without `CONCURRENCY`.
const EVENTS: usize = 2_000;
const CONCURRENCY: usize = 20;
const TOPIC: &str = "shop/limited";
const PATH: &str = "/limited";
const PER_SECOND: usize = 20;

/// The same for a destination that takes so many requests at once, each for so long.
const EVENTS_AT_ONCE: usize = 400;
const AT_ONCE: usize = 3;
const TAKES: Duration = Duration::from_millis(500);

/// With the visibility timeout that belongs to it.
const TIMEOUT: &str = "DispatchTimeout=60";
/// So many processes at least have to share the rate.
const PROCESSES: usize = 4;

/// In a minute, 20 a second within a tenth.
const PER_MINUTE: RangeInclusive<usize> = 1_080..=1_320;
/// In a second of the clock: a slot may be used a second late.
const PER_SECOND_MAX: usize = 2 * PER_SECOND;

/// What is left once all events have arrived.
const DRAIN_LIMIT: Duration = Duration::from_secs(60);

#[test]
#[ignore = "takes minutes; run by hand"]
fn processes_keep_the_rate_of_a_destination_together() {
    let limit = Limit::PerSecond;
    let run = limit.run(EVENTS);
    println!("{}", Table { limit, run: &run });
    assert_complete(&run);
    let (minutes, most) = (run.minutes(), run.most_in_a_second());
    // Without the first one, and the last, which is no whole one. The default number of events has none
    // between them, so it is all of them as well that may take a tenth longer at most.
    for in_minute in minutes.iter().take(minutes.len() - 1).skip(1) {
        assert!(PER_MINUTE.contains(in_minute), "{in_minute} requests in a minute");
    }
    assert!(run.most_within(MINUTE_MS) <= *PER_MINUTE.end());
    let ideal_ms = run.published as u64 * SECOND_MS / PER_SECOND as u64;
    assert!(run.lasted_ms() * 10 <= ideal_ms * 11, "{} ms, not {ideal_ms}", run.lasted_ms());
    assert!(most <= PER_SECOND_MAX, "{most} in a second");
}

#[test]
#[ignore = "takes a minute; run by hand"]
fn processes_keep_the_requests_at_once_of_a_destination_together() {
    let limit = Limit::AtOnce;
    let run = limit.run(EVENTS_AT_ONCE);
    println!("{}", Table { limit, run: &run });
    assert_complete(&run);
    // One more: that is a probe, or cannot wait.
    assert!(run.most_at_once <= AT_ONCE + 1, "{} at once", run.most_at_once);
}

/// Nothing was lost, and enough processes took part.
fn assert_complete(run: &Run) {
    assert!(run.left.is_empty(), "did not drain: {:?}", run.left);
    assert_eq!(run.ids, run.published, "every event arrives");
    assert_eq!(run.dead_letters, 0);
    assert!(run.processes.len() >= PROCESSES, "{:?}", run.processes);
}

/// What a destination allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    PerSecond,
    AtOnce,
}

impl Limit {
    /// A run with the environment's number of events, or this one.
    fn run(self, events: usize) -> Run {
        let number = |name, default| match std::env::var(name) {
            Ok(number) => number.parse().expect("a number"),
            Err(_) => default,
        };
        let (events, concurrency) = (number("EVENTS", events), number("CONCURRENCY", CONCURRENCY));
        let runtime = Runtime::new().expect("a runtime starts");
        runtime.block_on(Run::with(self, events, concurrency))
    }

    /// As a file says it.
    fn text(self) -> String {
        match self {
            Self::PerSecond => format!("maxPerSecond: {PER_SECOND}"),
            Self::AtOnce => format!("maxConcurrency: {AT_ONCE}"),
        }
    }

    /// How long so many events take if nothing is wasted.
    fn ideal(self, events: usize) -> Duration {
        match self {
            Self::PerSecond => Duration::from_secs((events / PER_SECOND) as u64),
            Self::AtOnce => TAKES * u32::try_from(events.div_ceil(AT_ONCE)).expect("few events"),
        }
    }
}

/// What a run showed.
struct Run {
    published: usize,
    /// From the first call that publishes to the end of the last one.
    publishing: Duration,
    /// Distinct events that arrived.
    ids: usize,
    /// The time of the clock when each request arrived, the first one first.
    arrived_ms: Vec<u64>,
    most_at_once: usize,
    dead_letters: usize,
    /// Those whose connections to the subscriber were seen.
    processes: BTreeSet<String>,
    started_processes: usize,
    /// Calls for documents that all processes share.
    table_calls: BTreeMap<TableCall, usize>,
    /// Log lines, by message.
    lines: BTreeMap<String, usize>,
    left: Vec<(String, usize)>,
}

impl Run {
    async fn with(limit: Limit, events: usize, concurrency: usize) -> Self {
        let subscriber = Subscriber::start(Scripts::from([(PATH, [200].as_slice())])).await;
        if limit == Limit::AtOnce {
            subscriber.differ(PATH, Manner::Takes(TAKES));
        }
        let port = ReservedPort::take();
        let gateway = Gateway::start(port.number, 0).await;
        gateway.calm();
        let stack = deployed(limit, concurrency, &subscriber, port, &gateway).await;
        let (started, started_ms) = (now(), Machine.now_ms());
        let at_ms = |at: Instant| {
            let since_ms = at.duration_since(started).as_millis();
            started_ms + u64::try_from(since_ms).expect("a test ends")
        };
        let all: Vec<String> =
            (0..events).map(|number| event(&format!("limited-{number}"))).collect();
        stack.publish_all(TOPIC, &all).await;
        let publishing = started.elapsed();
        let limit = limit.ideal(events) * 3 / 2 + Duration::from_secs(60);
        let processes = processes_until_all_arrived(&subscriber, events, started, limit).await;
        let left = stack.drained(DRAIN_LIMIT).await;
        let arrivals = subscriber.arrivals(PATH);
        let mut arrived_ms: Vec<u64> = arrivals.iter().map(|arrival| at_ms(arrival.at)).collect();
        arrived_ms.sort_unstable();
        let mut lines = BTreeMap::new();
        for line in stack.log_lines() {
            if let Some(message) = line["message"].as_str() {
                *lines.entry(message.to_owned()).or_default() += 1;
            }
        }
        Self {
            published: events,
            publishing,
            ids: arrivals.iter().map(event_id).collect::<BTreeSet<_>>().len(),
            arrived_ms,
            most_at_once: subscriber.most_at_once(PATH),
            dead_letters: stack.dead_letters("").await.len(),
            processes,
            started_processes: stack.dispatch_processes(),
            table_calls: gateway.table_calls(),
            lines,
            left,
        }
    }

    /// From the first request to the last.
    fn lasted_ms(&self) -> u64 {
        match self.arrived_ms[..] {
            [first, .., last] => last - first,
            [] | [_] => 0,
        }
    }

    /// How many requests arrived in each minute from the first request on.
    fn minutes(&self) -> Vec<usize> {
        let whole = usize::try_from(self.lasted_ms() / MINUTE_MS).expect("few minutes");
        let mut minutes = vec![0; whole + 1];
        for at_ms in &self.arrived_ms {
            let minute = (at_ms - self.arrived_ms[0]) / MINUTE_MS;
            minutes[usize::try_from(minute).expect("few minutes")] += 1;
        }
        minutes
    }

    /// The most requests that arrived in a second of the clock, as the slots count them.
    fn most_in_a_second(&self) -> usize {
        let seconds = self.arrived_ms.chunk_by(|one, next| one / SECOND_MS == next / SECOND_MS);
        seconds.map(<[u64]>::len).max().unwrap_or_default()
    }

    /// The most requests that arrived within so long, beginning at any of them.
    fn most_within(&self, length_ms: u64) -> usize {
        let from = |(first, first_ms): (usize, &u64)| {
            let rest = &self.arrived_ms[first..];
            rest.partition_point(|at_ms| *at_ms < first_ms + length_ms)
        };
        self.arrived_ms.iter().enumerate().map(from).max().unwrap_or_default()
    }
}

/// The application on the emulated AWS, with one destination that has this limit.
async fn deployed(
    limit: Limit,
    concurrency: usize,
    subscriber: &Subscriber,
    port: ReservedPort,
    gateway: &Gateway,
) -> Stack {
    let file = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
         metadata: {{namespace: shop, topic: limited, name: all}}\n\
         spec:\n  destination: {{url: \"http://{}{PATH}\", {}}}\n",
        subscriber.address,
        limit.text()
    );
    let concurrency = format!("Concurrency={concurrency}");
    let stack = Stack::deploy_at(port, gateway.port, &[&concurrency, TIMEOUT], file).await;
    stack.poll_often().await;
    stack
}

/// The processes that make the requests, once all events have arrived, or after this limit.
async fn processes_until_all_arrived(
    subscriber: &Subscriber,
    events: usize,
    started: Instant,
    limit: Duration,
) -> BTreeSet<String> {
    let (mut seen, mut processes) = (BTreeSet::new(), BTreeSet::new());
    while started.elapsed() < limit {
        let arrivals = subscriber.arrivals(PATH);
        // The newest ones: their connections are open.
        for Arrival { from, .. } in arrivals.iter().rev().take(2 * PER_SECOND) {
            if seen.insert(*from) {
                processes.extend(function_at(*from, subscriber.address));
            }
        }
        if arrivals.iter().map(event_id).collect::<BTreeSet<_>>().len() == events {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    processes
}

/// A run, as the table of `docs/reference/figures/emulated-aws.md`.
struct Table<'a> {
    limit: Limit,
    run: &'a Run,
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = self.run;
        writeln!(f, "\n| | |\n|---|---|")?;
        let mut row = |name: &str, value: &dyn fmt::Display| writeln!(f, "| {name} | {value} |");
        row("events published", &run.published)?;
        row("publishing, seconds", &format!("{:.1}", run.publishing.as_secs_f64()))?;
        row("events that arrived", &run.ids)?;
        row("requests", &run.arrived_ms.len())?;
        row("dead letters", &run.dead_letters)?;
        row("from the first request to the last, seconds", &(run.lasted_ms() / SECOND_MS))?;
        match self.limit {
            Limit::AtOnce => row("most requests at once", &run.most_at_once)?,
            Limit::PerSecond => {
                for (minute, count) in (1..).zip(run.minutes()) {
                    row(&format!("requests in minute {minute}"), &count)?;
                }
                row("most requests within 60 s", &run.most_within(MINUTE_MS))?;
                row("most requests in a second of the clock", &run.most_in_a_second())?;
                row("most requests within 1,000 ms", &run.most_within(SECOND_MS))?;
            }
        }
        row("processes that made requests", &run.processes.len())?;
        row("processes of dispatch that were started", &run.started_processes)?;
        for ((operation, kind, status), count) in &run.table_calls {
            row(&format!("`{operation}` of {kind}, answered {status}"), count)?;
        }
        for (message, count) in &run.lines {
            row(&format!("log lines `{message}`"), count)?;
        }
        Ok(())
    }
}
