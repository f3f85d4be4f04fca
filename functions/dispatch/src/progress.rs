//! How far each item of an invocation's records came.
//!
//! Acknowledgement is decided from this progress and nothing else, after all work is done. An item
//! whose work panicked or ran out of time is still in it, so it can be re-enqueued.

use std::sync::{Arc, Mutex, PoisonError};

use delivery::delivery::Delivery;
use delivery::machine::step::End;
use delivery::subscription::Subscription;
use uuid::Uuid;

use crate::decode::WorkItem;

/// How far an item came in this invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing of it was attempted; its record may be returned to the queue.
    NotStarted,
    /// A request is under way. Found when all work is done, it means that the work broke off.
    Attempting,
    /// Attempted, and waiting in place for its next attempt.
    Waiting,
    /// It has ended, or was re-enqueued.
    Done,
    /// Its message could not be sent; the record has to be redelivered.
    SendFailed,
}

/// The index of an item among all items of the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ItemId(usize);

/// A delivery on its way through the flow.
#[derive(Debug)]
pub(crate) struct InFlightDelivery {
    /// Its item.
    pub(crate) id: ItemId,
    /// Whom it is for.
    pub(crate) subscription: Arc<Subscription>,
    /// Its state.
    pub(crate) delivery: Box<Delivery>,
}

impl AsRef<Delivery> for InFlightDelivery {
    fn as_ref(&self) -> &Delivery {
        &self.delivery
    }
}

/// A delivery whose attempt is settled and whose end is not carried out yet.
pub(crate) struct Unfinished {
    pub(crate) in_flight: InFlightDelivery,
    pub(crate) end: End,
}

impl Unfinished {
    /// The same with what is left of its wait.
    pub(crate) fn with_rest_of_wait(mut self, now_ms: u64) -> Self {
        if let End::Retry { wait_ms } = &mut self.end {
            *wait_ms = self.in_flight.delivery.due_ms.saturating_sub(now_ms);
        }
        self
    }
}

/// An item, and how far it came.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: ItemId,
    /// The index of its record in the batch.
    pub(crate) record: usize,
    /// The item, in the state last kept here.
    pub(crate) item: WorkItem,
    /// How far it came.
    pub(crate) stage: Stage,
}

/// Every item of an invocation.
#[derive(Debug, Default)]
pub(crate) struct BatchProgress(Mutex<Vec<Entry>>);

impl BatchProgress {
    /// Adds an item of a record. Records are added in order.
    pub(crate) fn add(&self, record: usize, item: &WorkItem) -> ItemId {
        self.with(|entries| {
            let id = ItemId(entries.len());
            entries.push(Entry { id, record, item: item.clone(), stage: Stage::NotStarted });
            id
        })
    }

    /// Notes how far an item came.
    pub(crate) fn set(&self, id: ItemId, stage: Stage) {
        self.with(|entries| entries[id.0].stage = stage);
    }

    /// Notes that an item has ended or was re-enqueued, or that its message could not be sent.
    pub(crate) fn set_sent(&self, id: ItemId, sent: bool) {
        self.set(id, if sent { Stage::Done } else { Stage::SendFailed });
    }

    /// Keeps a delivery's newest state, and how far it came.
    pub(crate) fn keep(&self, in_flight: &InFlightDelivery, stage: Stage) {
        let InFlightDelivery { id, subscription, delivery } = in_flight;
        self.with(|entries| {
            let entry = &mut entries[id.0];
            entry.stage = stage;
            entry.item = WorkItem::Deliver(Arc::clone(subscription), delivery.clone());
        });
    }

    /// How far the items of a record came.
    pub(crate) fn stages_of(&self, record: usize) -> Vec<Stage> {
        self.with(|entries| of_record(entries, record).iter().map(|entry| entry.stage).collect())
    }

    /// Whether no delivery of a record was begun. Its parts and dead letters may be sent once more.
    pub(crate) fn is_unattempted(&self, record: usize) -> bool {
        let unattempted = |entry: &Entry| match entry.item {
            WorkItem::Deliver(..) => entry.stage == Stage::NotStarted,
            WorkItem::DeadLetter(_) | WorkItem::Forward(..) => true,
        };
        self.with(|entries| of_record(entries, record).iter().all(unattempted))
    }

    /// The published message and the id of each delivery of a record that is done.
    pub(crate) fn done_of(&self, record: usize) -> Vec<(String, Uuid)> {
        let name = |delivery: &Delivery| (delivery.origin.message.clone(), delivery.id);
        self.with(|entries| {
            let done = of_record(entries, record).iter().filter(|one| one.stage == Stage::Done);
            done.filter_map(|one| one.item.delivery().map(name)).collect()
        })
    }

    /// Reads every item of a record, without a copy.
    pub(crate) fn read(&self, record: usize, mut look: impl FnMut(&WorkItem)) {
        self.with(|entries| of_record(entries, record).iter().for_each(|entry| look(&entry.item)));
    }

    /// The unfinished items of a record, in their newest state.
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
        // A panic elsewhere must not hide what is not finished yet: the data is whole in any case.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The entries of one record. They are contiguous, because records are added one after the other.
fn of_record(entries: &[Entry], record: usize) -> &[Entry] {
    let rest = &entries[entries.partition_point(|entry| entry.record < record)..];
    &rest[..rest.partition_point(|entry| entry.record == record)]
}
