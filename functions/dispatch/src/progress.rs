//! Records the stage of each item of an invocation.
//!
//! After all work is done, acknowledgement depends on this progress and on nothing else. An item
//! whose work panicked or ran out of time still has an entry, so it can be re-enqueued.

use std::sync::{Arc, Mutex, PoisonError};

use delivery::delivery::Delivery;
use delivery::machine::step::End;
use delivery::subscription::Subscription;
use uuid::Uuid;

use crate::decode::WorkItem;

/// The stage that an item has reached in this invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No attempt was begun; the record may return to its queue.
    NotStarted,
    /// A request was begun. After all work is done, this stage means that the work was interrupted.
    Attempting,
    /// The delivery was attempted, and waits in place for its next attempt.
    Waiting,
    /// The item has ended, or was re-enqueued.
    Done,
    /// The message of the item could not be sent; SQS must redeliver its record.
    SendFailed,
}

/// The index of an item among all items of the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ItemId(usize);

/// A delivery that an invocation is working on.
#[derive(Debug)]
pub(crate) struct InFlightDelivery {
    pub(crate) id: ItemId,
    pub(crate) subscription: Arc<Subscription>,
    pub(crate) delivery: Box<Delivery>,
}

impl AsRef<Delivery> for InFlightDelivery {
    fn as_ref(&self) -> &Delivery {
        &self.delivery
    }
}

/// A delivery whose attempt is settled, and the decision on it, which is not executed yet.
pub(crate) struct Unfinished {
    pub(crate) in_flight: InFlightDelivery,
    pub(crate) end: End,
}

impl Unfinished {
    /// Replaces the wait of a retry with the time that remains until the delivery is due.
    pub(crate) fn with_rest_of_wait(mut self, now_ms: u64) -> Self {
        if let End::Retry { wait_ms } = &mut self.end {
            *wait_ms = self.in_flight.delivery.due_ms.saturating_sub(now_ms);
        }
        self
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: ItemId,
    /// Index of the record in the batch.
    pub(crate) record: usize,
    /// The item, in its most recently stored state.
    pub(crate) item: WorkItem,
    pub(crate) stage: Stage,
}

/// The stage and the newest state of each item of an invocation.
#[derive(Debug, Default)]
pub(crate) struct BatchProgress(Mutex<Vec<Entry>>);

impl BatchProgress {
    /// Adds an item of a record. Items must be added in the order of their records.
    pub(crate) fn add(&self, record: usize, item: &WorkItem) -> ItemId {
        self.with(|entries| {
            let id = ItemId(entries.len());
            entries.push(Entry { id, record, item: item.clone(), stage: Stage::NotStarted });
            id
        })
    }

    pub(crate) fn set(&self, id: ItemId, stage: Stage) {
        self.with(|entries| entries[id.0].stage = stage);
    }

    /// Sets the stage of an item: [`Stage::Done`] if its message was sent, otherwise
    /// [`Stage::SendFailed`].
    pub(crate) fn set_sent(&self, id: ItemId, sent: bool) {
        self.set(id, if sent { Stage::Done } else { Stage::SendFailed });
    }

    /// Stores the newest state and the stage of a delivery.
    pub(crate) fn keep(&self, in_flight: &InFlightDelivery, stage: Stage) {
        let InFlightDelivery { id, subscription, delivery } = in_flight;
        self.with(|entries| {
            let entry = &mut entries[id.0];
            entry.stage = stage;
            entry.item = WorkItem::Deliver(Arc::clone(subscription), delivery.clone());
        });
    }

    pub(crate) fn stages_of(&self, record: usize) -> Vec<Stage> {
        self.with(|entries| of_record(entries, record).iter().map(|entry| entry.stage).collect())
    }

    /// True if no delivery of the record was attempted. Parts and dead letters do not count,
    /// because sending them again is harmless.
    pub(crate) fn is_unattempted(&self, record: usize) -> bool {
        let unattempted = |entry: &Entry| match entry.item {
            WorkItem::Deliver(..) => entry.stage == Stage::NotStarted,
            WorkItem::DeadLetter(_) | WorkItem::Forward(..) => true,
        };
        self.with(|entries| of_record(entries, record).iter().all(unattempted))
    }

    /// Returns the message id and the delivery id of each finished delivery of a record.
    pub(crate) fn done_of(&self, record: usize) -> Vec<(String, Uuid)> {
        let name = |delivery: &Delivery| (delivery.origin.message.clone(), delivery.id);
        self.with(|entries| {
            let done = of_record(entries, record).iter().filter(|entry| entry.stage == Stage::Done);
            done.filter_map(|entry| entry.item.delivery().map(name)).collect()
        })
    }

    /// Calls `look` with every item of a record, without copying the items.
    pub(crate) fn read(&self, record: usize, mut look: impl FnMut(&WorkItem)) {
        self.with(|entries| of_record(entries, record).iter().for_each(|entry| look(&entry.item)));
    }

    /// Returns the unfinished items of a record, in their newest state.
    pub(crate) fn unfinished_of(&self, record: usize) -> Vec<Entry> {
        let is_unfinished = |entry: &&Entry| match entry.stage {
            Stage::NotStarted | Stage::Attempting | Stage::Waiting => true,
            Stage::Done | Stage::SendFailed => false,
        };
        self.with(|entries| {
            of_record(entries, record).iter().filter(is_unfinished).cloned().collect()
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Vec<Entry>) -> T) -> T {
        // A poisoned lock is ignored: the entries are always complete, and unfinished items must
        // stay visible.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the entries of a record. They are contiguous, because records are added in order.
fn of_record(entries: &[Entry], record: usize) -> &[Entry] {
    let rest = &entries[entries.partition_point(|entry| entry.record < record)..];
    &rest[..rest.partition_point(|entry| entry.record == record)]
}
