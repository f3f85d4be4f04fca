//! Requests for the subscriptions: a file, which each process asks for again and again, or a catalogue,
//! of which it asks for what changed.
//!
//! Errs on the high side: each topic is a namespace of its own, and every process uses every topic that changes.
//! Does not include the first read of a topic in a process, about three requests, and topics that are read again
//! because more are in use than are kept (8 MiB of their subscriptions' texts).

use adapters::live_catalogue::{HINT_EVERY_MS, POINTERS_EVERY_MS};
use adapters::subscriptions::FILE_EVERY_MS;
use delivery::time::duration::DAY_MS;

use super::average::as_f64;
use super::plan::Deployment;
use super::queue_load::QueueLoad;
use super::shared_state::processes;

/// What a process reads of a change, beside the hint: the pointer, and two nodes below the root.
const READS_OF_A_CHANGE: f64 = 3.0;
/// What the writer of a change reads: the pointer, the version, two nodes and the hint.
const READS_OF_A_WRITER: f64 = 5.0;
/// What it writes: two nodes and the root, the version, the pointer and the hint.
const WRITES_OF_A_CHANGE: f64 = 6.0;

/// Requests of a day, by what they are for.
#[derive(Debug, Clone)]
pub(crate) struct SubscriptionReads {
    /// Looks at the file, or at the hint.
    pub(crate) looks: f64,
    /// Looks at the pointers of a catalogue, whatever the hint says.
    pub(crate) pointers: f64,
    /// What processes and writers read of changes.
    pub(crate) changes: f64,
    /// What writers of changes write.
    pub(crate) writes: f64,
}

impl SubscriptionReads {
    /// Of a deployment with these queues of new events and of waits.
    pub(super) fn of(deployment: &Deployment, queues: [&QueueLoad; 2]) -> Self {
        let limits = [deployment.events_at_once(), deployment.retry_concurrency];
        let [fresh, waiting] = [0, 1].map(|at| processes(queues[at], limits[at]));
        let (all, invocations) = (fresh + waiting, queues[0].invocations + queues[1].invocations);
        // A process looks when it is invoked.
        let looks = |every_ms| (all * as_f64(DAY_MS / every_ms)).min(invocations);
        let Some(changes) = deployment.catalogue_changes else {
            return Self { looks: looks(FILE_EVERY_MS), pointers: 0.0, changes: 0.0, writes: 0.0 };
        };
        // And that of the deployment's settings.
        let namespaces = deployment.topics + 1.0;
        Self {
            looks: looks(HINT_EVERY_MS),
            pointers: looks(POINTERS_EVERY_MS) * namespaces,
            changes: changes * (all * READS_OF_A_CHANGE + READS_OF_A_WRITER),
            writes: changes * WRITES_OF_A_CHANGE,
        }
    }

    /// Objects read.
    pub(crate) fn reads(&self) -> f64 {
        self.looks + self.pointers + self.changes
    }
}
