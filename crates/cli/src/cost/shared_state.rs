//! Requests for the documents that all processes share: what is known of unhealthy destinations, and
//! who may make how many requests to those that have a limit.
//!
//! Separate because most of it depends on how many processes run, and not on how many deliveries they
//! make. Processes are the invocations at once, as far as the concurrency of their queue allows.
//!
//! Errs on the high side: a destination begins to fail with the day and each process finds that out for
//! itself, each process has a delivery for each of them whenever a probation ends, and all that wait for
//! the end of one claim the probe at the same moment. What is limited gets all deliveries of the load,
//! evenly.
//!
//! Does not include retries of conditional writes that others were faster with, notices, and deliveries
//! that wait for a slot or a permit.

use delivery::delivery::health::probation::{LONGEST_MS, PROBE_MS, first_ms};
use delivery::delivery::health::slots::AHEAD_SECONDS;
use delivery::delivery::outcome::Outcome;
use delivery::time::duration::DAY_MS;
use dispatch::{LOOK_EVERY_MS, READ_EVERY_MS};

use super::average::as_f64;
use super::plan::Plan;
use super::queue_load::{DAY_S, QueueLoad};

/// Documents that a finding changes: that of the destination, and the digest.
const DOCUMENTS: f64 = 2.0;

/// Requests of a day, by what they are for.
#[derive(Debug, Clone)]
pub(crate) struct SharedState {
    /// Reads of the digest.
    pub(crate) digests: f64,
    /// Reads of a destination's document, to know whether another process probes it.
    pub(crate) questions: f64,
    /// Changes of documents about failing destinations.
    pub(crate) findings: f64,
    /// Changes of documents of slots.
    pub(crate) reservations: f64,
    /// Changes of documents of permits.
    pub(crate) leases: f64,
}

/// What uses the documents.
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

impl SharedState {
    pub(super) fn of(plan: &Plan, users: &Users<'_>) -> Self {
        let (traffic, deployment) = (&plan.traffic, &plan.deployment);
        let limits = [deployment.events_at_once(), deployment.retry_concurrency];
        let [fresh, waiting] = [0, 1].map(|queue| processes(users.queues[queue], limits[queue]));
        let (failing, all) = (traffic.failing, fresh + waiting);
        let every_ms = [if failing > 0.0 { READ_EVERY_MS } else { LOOK_EVERY_MS }, READ_EVERY_MS];
        let digests = [(fresh, 0), (waiting, 1)].map(|(processes, queue)| {
            // A process reads when it is invoked.
            (processes * as_f64(DAY_MS / every_ms[queue])).min(users.queues[queue].invocations)
        });
        let probes = if all > 0.0 { failing * probes() } else { 0.0 };
        // While another one probes, and once more for its result.
        let asks = 1.0 + (users.failure_ms / as_f64(PROBE_MS)).ceil();
        Self {
            digests: digests.iter().sum(),
            questions: probes * all * asks,
            findings: failing * all * DOCUMENTS + probes * (waiting.max(1.0) + DOCUMENTS),
            reservations: reservations(users, all),
            leases: leases(users),
        }
    }

    /// Objects read: each change reads its document first.
    pub(crate) fn reads(&self) -> f64 {
        self.digests + self.questions + self.writes()
    }

    /// Objects written.
    pub(crate) fn writes(&self) -> f64 {
        self.findings + self.reservations + self.leases
    }
}

/// The processes of a queue that run at once, on average.
pub(super) fn processes(queue: &QueueLoad, limit: u32) -> f64 {
    queue.concurrency.ceil().min(f64::from(limit))
}

/// The probes of a destination that fails all day: the first probation is the shortest that an outcome
/// brings, and each one is twice as long as the one before, up to the longest.
fn probes() -> f64 {
    let first_ms = first_ms(Outcome::Busy).unwrap_or(LONGEST_MS);
    let (mut at_ms, mut lasts_ms, mut probes) = (first_ms, first_ms, 0.0);
    while at_ms <= DAY_MS {
        probes += 1.0;
        lasts_ms = (lasts_ms * 2).min(LONGEST_MS);
        at_ms += lasts_ms;
    }
    probes
}

/// A process that makes a request a second to a destination, or more, reserves its slots some seconds
/// ahead. One that makes fewer has none left when it needs one, and reserves it then.
fn reservations(users: &Users<'_>, processes: f64) -> f64 {
    let seconds = users.rate_limited * processes * DAY_S;
    if users.attempts < seconds { users.attempts } else { seconds / as_f64(AHEAD_SECONDS) }
}

/// An invocation leases permits of each destination that it has deliveries for, and returns them once
/// none is in use. Not counted: that later deliveries of a batch may lease some again.
fn leases(users: &Users<'_>) -> f64 {
    let invocations: f64 = users.queues.iter().map(|queue| queue.attempting).sum();
    2.0 * (users.concurrency_limited * invocations).min(users.attempts)
}
