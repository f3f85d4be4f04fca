//! Requests to the table: the news, what is known of unhealthy destinations, and who may make how many requests to
//! those that have a limit.
//!
//! Separate because most of it depends on how many processes run, and not on how many deliveries they
//! make. Processes are the invocations at once, as far as the concurrency of their queue allows.
//!
//! Errs on the high side: a destination begins to fail with the day and each process finds that out for
//! itself, each process has a delivery for each of them whenever a probation ends, and all that wait for
//! the end of one claim the probe at the same moment. What is limited gets all deliveries of the load,
//! evenly.
//!
//! Does not include retries of conditional writes that others were faster with, notices, and what deliveries ask
//! for that wait for a slot or a permit.

use delivery::delivery::health::probation::{LONGEST_MS, PROBE_MS, first_ms};
use delivery::delivery::outcome::Outcome;
use delivery::time::duration::DAY_MS;
use dispatch::READ_EVERY_MS;

use super::average::as_f64;
use super::plan::Plan;
use super::queue_load::QueueLoad;

/// Items that a finding changes: that of the destination, and one of the news.
const ITEMS: f64 = 2.0;
/// Requests for a permit: to take it, and to return it.
const OF_A_PERMIT: f64 = 2.0;

/// Requests of a day, by what they are for.
#[derive(Debug, Clone)]
pub(crate) struct TableUse {
    /// Reads of the news.
    pub(crate) news: f64,
    /// Reads of a destination's state, to know whether another process probes it.
    pub(crate) questions: f64,
    /// Changes of items about failing destinations.
    pub(crate) findings: f64,
    /// Slots that are taken.
    pub(crate) slots: f64,
    /// Permits that are taken and returned.
    pub(crate) permits: f64,
}

/// The load that uses the table.
pub(super) struct Users<'a> {
    /// The queue of new events, and that of waits.
    pub(super) queues: [&'a QueueLoad; 2],
    /// Requests to destinations.
    pub(super) attempts: f64,
    /// How long one that fails takes.
    pub(super) failure_ms: f64,
    /// Destinations with `maxPerSecond`.
    pub(super) rate_limited: f64,
    /// Destinations with `maxConcurrency`.
    pub(super) concurrency_limited: f64,
}

impl TableUse {
    pub(super) fn of(plan: &Plan, users: &Users<'_>) -> Self {
        let (traffic, deployment) = (&plan.traffic, &plan.deployment);
        let limits = [deployment.events_at_once(), deployment.concurrency.retry];
        let [fresh, waiting] = [0, 1].map(|queue| processes(users.queues[queue], limits[queue]));
        let (failing, all) = (traffic.failing, fresh + waiting);
        let news = [(fresh, 0), (waiting, 1)].map(|(processes, queue)| {
            // A process reads when it is invoked.
            (processes * as_f64(DAY_MS / READ_EVERY_MS)).min(users.queues[queue].invocations)
        });
        let probes = if all > 0.0 { failing * probes() } else { 0.0 };
        // While another one probes, and once more for its result.
        let asks = 1.0 + (users.failure_ms / as_f64(PROBE_MS)).ceil();
        Self {
            news: news.iter().sum(),
            questions: probes * all * asks,
            findings: failing * all * ITEMS + probes * (waiting.max(1.0) + ITEMS),
            slots: askers(users, users.rate_limited),
            permits: OF_A_PERMIT * askers(users, users.concurrency_limited),
        }
    }

    /// Units read: the news need half of one while there are few, and a change of a state reads it before.
    pub(crate) fn reads(&self) -> f64 {
        self.news / 2.0 + self.questions + self.findings
    }

    /// Units written.
    pub(crate) fn writes(&self) -> f64 {
        self.findings + self.slots + self.permits
    }
}

/// The processes of a queue that run at once, on average.
pub(super) fn processes(queue: &QueueLoad, limit: u32) -> f64 {
    queue.concurrency.ceil().min(f64::from(limit))
}

/// The probes of a destination that fails all day: the first probation is the shortest that an outcome
/// brings, and each one is twice as long as the one before, up to the longest.
fn probes() -> f64 {
    let first_ms = first_ms(Outcome::Busy, None).unwrap_or(LONGEST_MS);
    let (mut at_ms, mut lasts_ms, mut probes) = (first_ms, first_ms, 0.0);
    while at_ms <= DAY_MS {
        probes += 1.0;
        lasts_ms = (lasts_ms * 2).min(LONGEST_MS);
        at_ms += lasts_ms;
    }
    probes
}

/// The invocations that ask for their deliveries to so many destinations, each once for all. Not counted: that later
/// deliveries of a batch may ask again.
fn askers(users: &Users<'_>, destinations: f64) -> f64 {
    let invocations: f64 = users.queues.iter().map(|queue| queue.attempting).sum();
    (destinations * invocations).min(users.attempts)
}
