//! The state of one invocation, which all of its parts share, and the state of one part.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use delivery::ports::{QueueName, Record};
use delivery::subscription::catalogue::Catalogue;

use crate::active_work::ActiveWork;
use crate::deadline::Deadline;
use crate::progress::BatchProgress;

/// A delivery that waits for less than this time waits in place, within the invocation. A longer
/// wait becomes a delayed message.
pub const IN_PLACE_BELOW_MS: u64 = 1_000;
/// Maximum number of times that a delivery waits within one invocation.
pub const IN_PLACE_WAITS: u32 = 5;

pub(crate) struct Shared<'a> {
    pub(crate) deadline: &'a Deadline,
    /// Number of deliveries in all parts of the invocation.
    pub(crate) deliveries: AtomicUsize,
    active_work: ActiveWork,
}

impl<'a> Shared<'a> {
    /// Creates the state of an invocation with this many parts.
    pub(crate) fn new(parts: usize, deadline: &'a Deadline) -> Self {
        // Reading a part is work too.
        let active_work = ActiveWork::new(parts);
        Self { deadline, deliveries: AtomicUsize::new(0), active_work }
    }
}

/// The state of one part of an invocation, which all work of the part shares.
pub(crate) struct Invocation<'a> {
    /// The queue from which all records of the part came.
    pub(crate) queue: QueueName,
    pub(crate) progress: BatchProgress,
    pub(crate) active_work: &'a ActiveWork,
    pub(crate) deadline: &'a Deadline,
    /// The newest subscriptions that this part has used.
    pub(crate) catalogue: Arc<Catalogue>,
    /// True if subscriptions could be read.
    pub(crate) knows_subscriptions: bool,
}

impl<'a> Invocation<'a> {
    /// Creates the state of a part with `work_count` units of work.
    pub(crate) fn new(
        records: &[Record],
        progress: BatchProgress,
        catalogue: Result<Arc<Catalogue>, String>,
        shared: &'a Shared<'_>,
        work_count: usize,
    ) -> Self {
        let Shared { active_work, deadline, .. } = shared;
        active_work.more(work_count);
        active_work.one_less();
        // An event source mapping reads one queue.
        let queue = records.first().map_or(QueueName::Events, |record| record.queue);
        let knows_subscriptions = catalogue.is_ok();
        let catalogue = catalogue.unwrap_or_default();
        Self { queue, progress, active_work, deadline, catalogue, knows_subscriptions }
    }
}
