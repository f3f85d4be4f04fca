//! Requests for the subscriptions: each process looks at the settings and at its topics again and again, and reads topics that
//! have changed.
//!
//! Every process uses every topic. Does not include the first read of a topic in a process, which is
//! one request, topics that are read again because more are in use than are kept (24 MiB of memory), and those that are
//! confirmed again one by one because the listing has more than ten pages.

use adapters::live_topics::{FEW_TOPICS, LOOK_EVERY_MS};
use delivery::time::duration::DAY_MS;

use super::average::as_f64;
use super::plan::Deployment;
use super::queue_load::QueueLoad;
use super::table_use::processes;

/// The objects that a process asks for with each look: the settings, and the publishers.
const OBJECTS_OF_A_LOOK: f64 = 2.0;

/// Requests of a day, by what they are for.
#[derive(Debug, Clone)]
pub(crate) struct SubscriptionReads {
    /// Pages of the listing.
    pub(crate) lists: f64,
    /// Objects read.
    pub(crate) reads: f64,
    /// Objects written.
    pub(crate) writes: f64,
}

impl SubscriptionReads {
    /// Of a deployment with these queues of new events and of waits.
    pub(super) fn of(deployment: &Deployment, queues: [&QueueLoad; 2]) -> Self {
        let limits = [deployment.events_at_once(), deployment.concurrency.retry];
        let [fresh, waiting] = [0, 1].map(|at| processes(queues[at], limits[at]));
        let (all, invocations) = (fresh + waiting, queues[0].invocations + queues[1].invocations);
        // A process looks when it is invoked.
        let looks = (all * as_f64(DAY_MS / LOOK_EVERY_MS)).min(invocations);
        let changes = deployment.subscription_changes;
        // Up to `FEW_TOPICS`, each topic is requested; above that, one page is listed.
        let (topics, lists) = match deployment.topics {
            topics if topics <= FEW_TOPICS as f64 => (topics, 0.0),
            _ => (0.0, looks),
        };
        // The writer of a change reads the object before.
        let reads = looks * (OBJECTS_OF_A_LOOK + topics) + changes * (all + 1.0);
        Self { lists, reads, writes: changes }
    }
}
