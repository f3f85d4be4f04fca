//! From the items of all records to pieces of work. Pure.

use std::sync::Arc;

use delivery::delivery::DeadLetter;
use delivery::machine::step::{Group, group};
use delivery::ports::{Message, QueueName, Record};
use delivery::subscription::Subscription;

use crate::decode::WorkItem;
use crate::message::fits_a_message;
use crate::progress::{BatchProgress, InFlightDelivery, ItemId, Stage};

/// Deliveries of one record that run in place; a record with more is split into one message each.
/// An event too large to travel beside its state runs in place even so: otherwise it would become a
/// dead letter without one attempt.
pub const DELIVERIES_IN_PLACE: usize = 10;

/// One thing to do, apart from all others.
pub(crate) enum Work {
    /// A dead letter goes to its queue.
    DeadLetter(ItemId, Box<DeadLetter>),
    /// A record goes on to another queue, unread.
    Forward(ItemId, QueueName, Box<Message>),
    /// A delivery of a large record becomes a message of its own.
    Split(InFlightDelivery),
    /// A group of deliveries is attempted.
    Deliver(Group<InFlightDelivery>),
}

/// The work of a batch, while its records are read one after the other.
#[derive(Default)]
pub(crate) struct BatchPlan {
    progress: BatchProgress,
    work: Vec<Work>,
    deliveries: Vec<(Arc<Subscription>, InFlightDelivery)>,
    returned: Vec<String>,
}

impl BatchPlan {
    /// Adds the items of a record. One with more than run in place is split; nothing is done for what
    /// an earlier receive of the record finished.
    pub(crate) fn add(
        &mut self,
        record: usize,
        items: Vec<WorkItem>,
        is_finished: impl Fn(&WorkItem) -> bool,
    ) {
        let split = items.len() > DELIVERIES_IN_PLACE;
        for item in items {
            // Before anything is done with it, so that work that breaks off is still known.
            let id = self.progress.add(record, &item);
            if is_finished(&item) {
                self.progress.set(id, Stage::Done);
                continue;
            }
            match item {
                WorkItem::DeadLetter(letter) => self.work.push(Work::DeadLetter(id, letter)),
                WorkItem::Forward(queue, message) => {
                    self.work.push(Work::Forward(id, queue, message));
                }
                WorkItem::Deliver(subscription, delivery) => {
                    let splits = split && fits_a_message(&delivery);
                    let in_flight =
                        InFlightDelivery { id, subscription: Arc::clone(&subscription), delivery };
                    if splits {
                        self.work.push(Work::Split(in_flight));
                    } else {
                        self.deliveries.push((subscription, in_flight));
                    }
                }
            }
        }
    }

    /// Notes a record that could not be read and returns to the queue as it is.
    pub(crate) fn add_returned(&mut self, record: &Record) {
        self.returned.push(record.message.clone());
    }

    /// All work, with the deliveries that share a request grouped; the progress it is noted in; and
    /// the message ids of the records that return to the queue.
    pub(crate) fn into_work(self, now_ms: u64) -> (Vec<Work>, BatchProgress, Vec<String>) {
        let Self { progress, mut work, deliveries, returned } = self;
        work.extend(group(deliveries, now_ms).into_iter().map(Work::Deliver));
        (work, progress, returned)
    }
}
