//! Deliveries while the table is unreachable, throttled or slow.
//!
//! Separate from the simulation of the same, whose table is a value in memory: here the AWS client meets the trouble, and
//! real processes share the limits of destinations without the table. Each process keeps to its share of a limit, so the
//! bounds below follow from the number of processes. Arrivals that a busy machine delays stay within the bounds.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use lastmile_tests::writers::succeeded;
use tokio::time::Instant;

use crate::campaign::table_calls::Trouble;
use crate::processes::{functions_below, kill};
use crate::stack::ACCOUNT;
use crate::subscriber::{Arrival, Manner, Scripts, Subscriber};
use crate::{ARRIVAL_LIMIT, Deployment, alone_on_deployment, event, event_id, now};

/// Each goes to all three destinations.
const EVENTS: usize = 20;
/// Events before the trouble: the processes that deliver these have read the news when it begins.
const EVENTS_BEFORE: usize = 10;

/// The shares of dispatch with the default of Concurrency: so many processes share a limit.
const FUNCTIONS: u32 = 8;
/// Without the table, each process makes one request at once, and one a second.
const MAX_CONCURRENCY: u32 = FUNCTIONS;
const MAX_PER_SECOND: u32 = FUNCTIONS;
const EVERY: Duration = Duration::from_secs(1);
/// So long that requests of one batch would be made at once.
const TAKES: Duration = Duration::from_millis(200);

const BEFORE: &str = "/before";
const PLAIN: &str = "/plain";
const AT_ONCE: &str = "/at-once";
const PER_SECOND: &str = "/per-second";

/// Enough for all events on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
const MINUTE_S: u64 = 60;

#[test]
fn while_the_table_is_unreachable_deliveries_go_on_within_shares() {
    alone_on_deployment(|deployment| deployment.deliver_during(Trouble::Unreachable));
}

#[test]
fn while_the_table_is_throttled_deliveries_go_on_within_shares() {
    alone_on_deployment(|deployment| deployment.deliver_during(Trouble::Throttled));
}

#[test]
fn while_the_table_is_slow_deliveries_go_on_within_shares() {
    alone_on_deployment(|deployment| deployment.deliver_during(Trouble::Slow));
}

/// The requests and log lines of a trouble.
struct Run {
    subscriber: Subscriber,
    begun: Instant,
    /// Processes of dispatch that ran since a moment before the trouble.
    processes: usize,
    /// Processes that met the trouble: at least and at most so many.
    disturbed: RangeInclusive<usize>,
    /// The problems in the log lines that report the trouble.
    lines: Vec<String>,
    lasted: Duration,
}

impl Deployment {
    async fn deliver_during(&self, trouble: Trouble) {
        let name = format!("{trouble:?}").to_lowercase();
        let run = self.run_during(trouble, &name).await;
        println!("{name}: {run:?}");
        run.assert_within_shares();
        run.assert_reported();
        let letters = self.stack.dead_letters(&format!("shop/{name}/")).await;
        assert!(letters.is_empty(), "{letters:#?}");
    }

    /// Publishes events while the table has this trouble, until all have arrived and processes have logged it.
    async fn run_during(&self, trouble: Trouble, name: &str) -> Run {
        let scripts = [BEFORE, PLAIN, AT_ONCE, PER_SECOND].map(|path| (path, [200].as_slice()));
        let subscriber = Subscriber::start(Scripts::from(scripts)).await;
        subscriber.differ(AT_ONCE, Manner::Takes(TAKES));
        let place = self.stack.place(self.stack.output("ConfigBucketName"), &ACCOUNT);
        drop(succeeded(place.apply(name, &subscriptions(name, subscriber.address))));
        let (processes, lines) = (self.stack.dispatch_processes(), self.reports().len());
        // A process that reported an earlier trouble would not report this one within its minute.
        self.kill_all_functions();
        self.publish_and_wait(
            &format!("shop/{name}-before"),
            &[BEFORE],
            EVENTS_BEFORE,
            &subscriber,
        )
        .await;
        let begun = now();
        let disturbance = self.gateway.disturb_table(trouble);
        let paths = [PLAIN, AT_ONCE, PER_SECOND];
        self.publish_and_wait(&format!("shop/{name}"), &paths, EVENTS, &subscriber).await;
        let least = disturbance.processes().iter().flatten().count();
        let lines = self.reports_after(lines, least).await;
        let (met, lasted) = (disturbance.processes(), begun.elapsed());
        drop(disturbance);
        // For half a minute they would leave the table alone, which later tests need.
        self.kill_all_functions();
        let processes = self.stack.dispatch_processes() - processes;
        let disturbed = least..=if met.contains(&None) { processes } else { met.len() };
        Run { subscriber, begun, processes, disturbed, lines, lasted }
    }

    fn kill_all_functions(&self) {
        for process in functions_below(self.stack.server_process()) {
            kill(&process);
        }
    }

    /// Publishes events, and waits until each has arrived at each path.
    async fn publish_and_wait(
        &self,
        topic: &str,
        paths: &[&str],
        count: usize,
        subscriber: &Subscriber,
    ) {
        let events: Vec<String> =
            (0..count).map(|number| event(&format!("event-{number}"))).collect();
        self.stack.publish_all(topic, &events).await;
        for path in paths {
            let is_complete = |arrivals: &[Arrival]| {
                arrivals.iter().map(event_id).collect::<BTreeSet<_>>().len() == count
            };
            subscriber.arrived(path, LIMIT, is_complete).await;
        }
    }

    /// The problems in all log lines about a table that does not answer.
    fn reports(&self) -> Vec<String> {
        let lines = self.stack.log_lines().into_iter();
        let reports = lines.filter(|line| line["message"] == "table.unreachable");
        reports.map(|line| line["problem"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The reports after the first `before`, once there are `count` of them. A line appears when its invocation ends.
    async fn reports_after(&self, before: usize, count: usize) -> Vec<String> {
        let deadline = now() + ARRIVAL_LIMIT;
        loop {
            let reports = self.reports().split_off(before);
            if reports.len() >= count || now() >= deadline {
                return reports;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

impl Run {
    fn assert_within_shares(&self) {
        let most = self.subscriber.most_at_once(AT_ONCE);
        assert!(most <= self.processes, "{most} requests at once by {self:?}");
        let arrivals = self.subscriber.arrivals(PER_SECOND);
        for (requests, arrival) in (1..).zip(&arrivals) {
            let since = arrival.at.duration_since(self.begun);
            let slots = 1 + since.as_millis() / EVERY.as_millis();
            assert!(
                requests <= slots * self.processes as u128,
                "{requests} requests within {since:?} by {self:?}"
            );
        }
    }

    /// A line of each process that has met the trouble, and one a minute at most.
    fn assert_reported(&self) {
        let minutes = usize::try_from(1 + self.lasted.as_secs() / MINUTE_S).expect("few minutes");
        let (least, most) = (*self.disturbed.start(), self.disturbed.end() * minutes);
        assert!(least > 0 && (least..=most).contains(&self.lines.len()), "{self:?}");
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let requests = |path| self.subscriber.arrivals(path).len();
        write!(
            f,
            "{} processes, {:?} disturbed, {:.1} s, requests {} plain, {} at once (most {}), {} per second, log {:?}",
            self.processes,
            self.disturbed,
            self.lasted.as_secs_f64(),
            requests(PLAIN),
            requests(AT_ONCE),
            self.subscriber.most_at_once(AT_ONCE),
            requests(PER_SECOND),
            self.lines
        )
    }
}

/// Three subscriptions of the topic with this name, and one of a topic for events before the trouble.
fn subscriptions(name: &str, subscriber: SocketAddr) -> String {
    let subscription = |topic: &str, path: &str, limit: &str| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
             metadata: {{namespace: shop, topic: {topic}, name: {}}}\n\
             spec:\n  destination: {{url: \"http://{subscriber}{path}\"{limit}}}\n",
            &path[1..]
        )
    };
    [
        subscription(&format!("{name}-before"), BEFORE, ""),
        subscription(name, PLAIN, ""),
        subscription(name, AT_ONCE, &format!(", maxConcurrency: {MAX_CONCURRENCY}")),
        subscription(name, PER_SECOND, &format!(", maxPerSecond: {MAX_PER_SECOND}")),
    ]
    .join("---\n")
}
