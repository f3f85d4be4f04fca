//! Who owes what: every piece of an invocation's records, and how far it came.
//!
//! Acknowledgement is decided from this book and nothing else, after all work is done. A piece
//! whose work panicked or ran out of time still stands here, so it can leave as its own message.

use std::sync::{Arc, Mutex, PoisonError};

use delivery::delivery::Delivery;
use delivery::subscription::Subscription;

use crate::open::WorkItem;

/// How far a piece came in this invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing of it was attempted; its record may be given back.
    NotStarted,
    /// A request is under way. Found when all work is done, it means that the work broke off.
    Attempting,
    /// Attempted, and waiting here for its next attempt.
    Waiting,
    /// It has its end, or has left as its own message.
    Done,
    /// Its message could not be sent; the record has to come again.
    SendFailed,
}

/// A piece's place in the book.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ItemId(usize);

/// A delivery on its way through the flow.
#[derive(Debug)]
pub(crate) struct InFlightDelivery {
    /// Where it stands in the book.
    pub(crate) place: ItemId,
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

/// One line of the book.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Its place.
    pub(crate) place: ItemId,
    /// The place of its record in the batch.
    pub(crate) record: usize,
    /// The piece, in the state last written here.
    pub(crate) piece: WorkItem,
    /// How far it came.
    pub(crate) stage: Stage,
}

/// Every piece of an invocation.
#[derive(Debug, Default)]
pub(crate) struct BatchProgress(Mutex<Vec<Entry>>);

impl BatchProgress {
    /// Enters a piece of a record; records are entered in order.
    pub(crate) fn enter(&self, record: usize, piece: &WorkItem) -> ItemId {
        self.with(|entries| {
            let place = ItemId(entries.len());
            entries.push(Entry { place, record, piece: piece.clone(), stage: Stage::NotStarted });
            place
        })
    }

    /// Writes down how far a piece came.
    pub(crate) fn note(&self, place: ItemId, stage: Stage) {
        self.with(|entries| entries[place.0].stage = stage);
    }

    /// Writes down a delivery's newest state, and how far it came.
    pub(crate) fn keep(&self, ticket: &InFlightDelivery, stage: Stage) {
        self.with(|entries| {
            let entry = &mut entries[ticket.place.0];
            entry.stage = stage;
            entry.piece =
                WorkItem::Deliver(Arc::clone(&ticket.subscription), ticket.delivery.clone());
        });
    }

    /// How far the pieces of a record came.
    pub(crate) fn stages_of(&self, record: usize) -> Vec<Stage> {
        self.with(|entries| of_record(entries, record).iter().map(|entry| entry.stage).collect())
    }

    /// Reads every piece of a record, without a copy.
    pub(crate) fn read(&self, record: usize, mut look: impl FnMut(&WorkItem)) {
        self.with(|entries| of_record(entries, record).iter().for_each(|entry| look(&entry.piece)));
    }

    /// The pieces of a record that are not finished, as they stand now.
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
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The entries of one record: they stand together, for records are entered one after the other.
fn of_record(entries: &[Entry], record: usize) -> &[Entry] {
    let rest = &entries[entries.partition_point(|entry| entry.record < record)..];
    &rest[..rest.partition_point(|entry| entry.record == record)]
}
