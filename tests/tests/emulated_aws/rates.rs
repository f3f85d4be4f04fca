//! A rate that several processes keep together.
//!
//! Separate from the rule's own tests and from the simulation: here real processes contend for one
//! document in storage, and messages are delayed by a queue. Figures: `docs/testing.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use delivery::time::duration::{MINUTE_MS, SECOND_MS};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::campaign::gateway::{Gateway, SharedCall};
use crate::processes::function_at;
use crate::stack::{Stack, free_port};
use crate::subscriber::{Arrival, Scripts, Subscriber};
use crate::{event, event_id, now};

/// How many events are published without the variable `EVENTS`, and how many invocations for new events and
/// for retries may run at once without `CONCURRENCY`.
const EVENTS: usize = 2_000;
const CONCURRENCY: usize = 8;
const TOPIC: &str = "shop/limited";
const PATH: &str = "/limited";
const PER_SECOND: usize = 20;

/// A visibility timeout of six times the functions' timeout.
const TIMEOUTS: [&str; 2] = ["DispatchTimeout=60", "VisibilityTimeout=360"];
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
    let number = |name, default| match std::env::var(name) {
        Ok(number) => number.parse().expect("a number"),
        Err(_) => default,
    };
    let (events, concurrency) = (number("EVENTS", EVENTS), number("CONCURRENCY", CONCURRENCY));
    let runtime = Runtime::new().expect("a runtime starts");
    let run = runtime.block_on(Run::with(events, concurrency));
    println!("{run}");
    assert!(run.left.is_empty(), "did not drain: {:?}", run.left);
    assert_eq!(run.ids, run.published, "every event arrives");
    assert_eq!(run.dead_letters, 0);
    assert!(run.processes.len() >= PROCESSES, "{:?}", run.processes);
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

/// What a run showed.
struct Run {
    published: usize,
    /// From the first call that publishes to the end of the last one.
    publishing: Duration,
    /// Distinct events that arrived.
    ids: usize,
    /// The time of the clock when each request arrived, the first one first.
    arrived_ms: Vec<u64>,
    dead_letters: usize,
    /// Those whose connections to the subscriber were seen.
    processes: BTreeSet<String>,
    started_processes: usize,
    /// Calls for documents that all processes share.
    documents: BTreeMap<SharedCall, usize>,
    /// Log lines, by message.
    lines: BTreeMap<String, usize>,
    left: Vec<(String, usize)>,
}

impl Run {
    async fn with(events: usize, concurrency: usize) -> Self {
        let subscriber = Subscriber::start(Scripts::from([(PATH, [200].as_slice())])).await;
        let port = free_port();
        let gateway = Gateway::start(port, 0).await;
        gateway.calm();
        let file = format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
             metadata: {{namespace: shop, topic: limited, name: all}}\n\
             spec:\n  destination: {{url: \"http://{}{PATH}\", maxPerSecond: {PER_SECOND}}}\n",
            subscriber.address
        );
        let limits = ["Events", "Retry"].map(|of| format!("{of}Concurrency={concurrency}"));
        let parameters: Vec<&str> = limits.iter().map(|it| &**it).chain(TIMEOUTS).collect();
        let stack = Stack::deploy_at(port, gateway.port, &parameters, file).await;
        stack.poll_often().await;
        let (started, started_ms) = (now(), Machine.now_ms());
        let at_ms = |at: Instant| {
            let since_ms = at.duration_since(started).as_millis();
            started_ms + u64::try_from(since_ms).expect("a test ends")
        };
        let all: Vec<String> =
            (0..events).map(|number| event(&format!("limited-{number}"))).collect();
        stack.publish_all(TOPIC, &all).await;
        let publishing = started.elapsed();
        let processes = processes_until_all_arrived(&subscriber, events, started).await;
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
            dead_letters: stack.dead_letters("").await.len(),
            processes,
            started_processes: stack.dispatch_processes(),
            documents: gateway.shared_documents(),
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

/// The processes that make the requests, once all events have arrived, or after half as long again as
/// the rate takes and a minute.
async fn processes_until_all_arrived(
    subscriber: &Subscriber,
    events: usize,
    started: Instant,
) -> BTreeSet<String> {
    let ideal = Duration::from_secs((events / PER_SECOND) as u64);
    let limit = ideal * 3 / 2 + Duration::from_secs(60);
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

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n| | |\n|---|---|")?;
        let mut row = |name: &str, value: &dyn fmt::Display| writeln!(f, "| {name} | {value} |");
        row("events published", &self.published)?;
        row("publishing, seconds", &format!("{:.1}", self.publishing.as_secs_f64()))?;
        row("events that arrived", &self.ids)?;
        row("requests", &self.arrived_ms.len())?;
        row("dead letters", &self.dead_letters)?;
        for (minute, count) in (1..).zip(self.minutes()) {
            row(&format!("requests in minute {minute}"), &count)?;
        }
        row("from the first request to the last, seconds", &(self.lasted_ms() / SECOND_MS))?;
        row("most requests within 60 s", &self.most_within(MINUTE_MS))?;
        row("most requests in a second of the clock", &self.most_in_a_second())?;
        row("most requests within 1,000 ms", &self.most_within(SECOND_MS))?;
        row("processes that made requests", &self.processes.len())?;
        row("processes of dispatch that were started", &self.started_processes)?;
        for ((method, kind, status), count) in &self.documents {
            row(&format!("`{method}` of a {kind} document, answered {status}"), count)?;
        }
        for (message, count) in &self.lines {
            row(&format!("log lines `{message}`"), count)?;
        }
        Ok(())
    }
}
