//! The state of one invocation, which all of its parts share, and the state of one part.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use delivery::ports::{QueueName, Record};
use delivery::subscription::catalogue::Catalogue;

use crate::active_work::ActiveWork;
use crate::deadline::Deadline;
use crate::progress::BatchProgress;

/// A shorter wait is in place instead of as a delayed message.
pub const IN_PLACE_BELOW_MS: u64 = 1_000;
/// Maximum number of waits of a delivery in place within one invocation.
pub const IN_PLACE_WAITS: u32 = 5;

/// The state that all parts of an invocation share.
pub(crate) struct Shared<'a> {
    pub(crate) deadline: &'a Deadline,
    /// The number of deliveries in all parts.
    pub(crate) deliveries: AtomicUsize,
    active_work: ActiveWork,
}

impl<'a> Shared<'a> {
    /// The state for this many parts.
    pub(crate) fn of(parts: usize, deadline: &'a Deadline) -> Self {
        // Reading a part is work too.
        let active_work = ActiveWork::of(parts);
        Self { deadline, deliveries: AtomicUsize::new(0), active_work }
    }
}

/// The state that all work of a part of an invocation shares.
pub(crate) struct Invocation<'a> {
    /// The queue of all of its records.
    pub(crate) queue: QueueName,
    pub(crate) progress: BatchProgress,
    pub(crate) active_work: &'a ActiveWork,
    pub(crate) deadline: &'a Deadline,
    /// The newest subscriptions that this part has used.
    pub(crate) catalogue: Arc<Catalogue>,
    /// False if no subscriptions could be read.
    pub(crate) knows_subscriptions: bool,
}

impl<'a> Invocation<'a> {
    /// A part with so much work.
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
