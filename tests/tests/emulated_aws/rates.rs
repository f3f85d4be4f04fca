//! A rate and a maximum of concurrent requests that several processes share.
//!
//! These tests are separate from the rules' own tests and from the simulation. Here real processes
//! contend for one item of the table, and a queue delays messages. Figures:
//! `docs/reference/figures/emulated-aws.md`.

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

/// The number of events without the variable `EVENTS`. Without the variable `CONCURRENCY`,
/// [`CONCURRENCY`] limits the concurrent invocations, both for new events and for retries.
const EVENTS: usize = 2_000;
const CONCURRENCY: usize = 20;
const TOPIC: &str = "shop/limited";
const PATH: &str = "/limited";
const PER_SECOND: usize = 20;

/// The number of events for a destination with [`AT_ONCE`] concurrent requests of duration
/// [`TAKES`].
const EVENTS_AT_ONCE: usize = 400;
const AT_ONCE: usize = 3;
const TAKES: Duration = Duration::from_millis(500);

/// The timeout of dispatch, with its matching visibility timeout.
const TIMEOUT: &str = "DispatchTimeout=60";
/// The least number of processes that share the rate.
const PROCESSES: usize = 4;

/// The requests in a minute: 20 per second, within 10 %.
const PER_MINUTE: RangeInclusive<usize> = 1_080..=1_320;
/// The most requests in a second of the clock, because a slot may be used a second late.
const PER_SECOND_MAX: usize = 2 * PER_SECOND;

/// The longest wait for the queues to drain after all events have arrived.
const DRAIN_LIMIT: Duration = Duration::from_secs(60);

#[test]
#[ignore = "takes minutes; run by hand"]
fn processes_keep_the_rate_of_a_destination_together() {
    let limit = Limit::PerSecond;
    let run = limit.run(EVENTS);
    println!("{}", Table { limit, run: &run });
    assert_complete(&run);
    let (minutes, most) = (run.minutes(), run.most_in_a_second());
    // The first minute does not count, nor does the last, which is incomplete. The default number
    // of events has no minute between them, so the total duration may also be at most 10 % longer.
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
    // One more request may be a probe, or a request that cannot wait.
    assert!(run.most_at_once <= AT_ONCE + 1, "{} at once", run.most_at_once);
}

/// Checks that nothing was lost and that enough processes took part.
fn assert_complete(run: &Run) {
    assert!(run.left.is_empty(), "did not drain: {:?}", run.left);
    assert_eq!(run.ids, run.published, "every event arrives");
    assert_eq!(run.dead_letters, 0);
    assert!(run.processes.len() >= PROCESSES, "{:?}", run.processes);
}

/// The limit of a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    PerSecond,
    AtOnce,
}

impl Limit {
    /// Runs with the number of events of the environment, or with this number.
    fn run(self, events: usize) -> Run {
        let number = |name, default| match std::env::var(name) {
            Ok(number) => number.parse().expect("a number"),
            Err(_) => default,
        };
        let (events, concurrency) = (number("EVENTS", events), number("CONCURRENCY", CONCURRENCY));
        let runtime = Runtime::new().expect("a runtime starts");
        runtime.block_on(Run::with(self, events, concurrency))
    }

    /// The limit as a line of a subscription.
    fn text(self) -> String {
        match self {
            Self::PerSecond => format!("maxPerSecond: {PER_SECOND}"),
            Self::AtOnce => format!("maxConcurrency: {AT_ONCE}"),
        }
    }

    /// The shortest time in which this many events can be delivered.
    fn ideal(self, events: usize) -> Duration {
        match self {
            Self::PerSecond => Duration::from_secs((events / PER_SECOND) as u64),
            Self::AtOnce => TAKES * u32::try_from(events.div_ceil(AT_ONCE)).expect("few events"),
        }
    }
}

/// The results of a run.
struct Run {
    published: usize,
    /// The time from the first publishing call to the end of the last.
    publishing: Duration,
    /// Distinct events that arrived.
    ids: usize,
    /// The clock time of each request's arrival, in ascending order.
    arrived_ms: Vec<u64>,
    most_at_once: usize,
    dead_letters: usize,
    /// The processes whose connections to the subscriber were observed.
    processes: BTreeSet<String>,
    started_processes: usize,
    /// Calls for shared documents, by operation and status.
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

    /// The time from the first request to the last.
    fn lasted_ms(&self) -> u64 {
        match self.arrived_ms[..] {
            [first, .., last] => last - first,
            [] | [_] => 0,
        }
    }

    /// The requests in each minute, counted from the first request.
    fn minutes(&self) -> Vec<usize> {
        let whole = usize::try_from(self.lasted_ms() / MINUTE_MS).expect("few minutes");
        let mut minutes = vec![0; whole + 1];
        for at_ms in &self.arrived_ms {
            let minute = (at_ms - self.arrived_ms[0]) / MINUTE_MS;
            minutes[usize::try_from(minute).expect("few minutes")] += 1;
        }
        minutes
    }

    /// The most requests that arrived in one second of the clock, as slots count them.
    fn most_in_a_second(&self) -> usize {
        let seconds =
            self.arrived_ms.chunk_by(|previous, next| previous / SECOND_MS == next / SECOND_MS);
        seconds.map(<[u64]>::len).max().unwrap_or_default()
    }

    /// The most requests that arrived within a period of this length.
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

/// Waits until all events have arrived, or for this limit. Returns the processes that made the
/// requests.
async fn processes_until_all_arrived(
    subscriber: &Subscriber,
    events: usize,
    started: Instant,
    limit: Duration,
) -> BTreeSet<String> {
    let (mut seen, mut processes) = (BTreeSet::new(), BTreeSet::new());
    while started.elapsed() < limit {
        let arrivals = subscriber.arrivals(PATH);
        // Only the newest connections are open.
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

/// Formats a run as the table of `docs/reference/figures/emulated-aws.md`.
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
