//! Turns the items of all records into units of work. Pure.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use delivery::delivery::DeadLetter;
use delivery::machine::step::{Group, group};
use delivery::ports::{Message, QueueName, Record};
use delivery::subscription::Subscription;

use crate::decode::WorkItem;
use crate::progress::{BatchProgress, InFlightDelivery, ItemId, Stage};
use crate::waiting::{RecordWait, Wait};

/// A large record waits if its items would raise the deliveries of an invocation above this number.
const DELIVERIES_AT_ONCE: usize = 6_000;
/// A record with more items than this counts as large.
const ITEMS_OF_A_LARGE_RECORD: usize = 100;

/// One unit of work, independent of all others.
pub(crate) enum Work {
    /// Sends a dead letter to its queue.
    DeadLetter(ItemId, Box<DeadLetter>),
    /// Sends a record, or a part of one, to this queue.
    Forward(ItemId, QueueName, Box<Message>),
    /// Attempts a group of deliveries.
    Deliver(Group<InFlightDelivery>),
}

/// Collects the units of work of a part, while its records are read one after another.
pub(crate) struct BatchPlan<'a> {
    /// Number of deliveries that the plans of all parts have accepted.
    taken_on: &'a AtomicUsize,
    progress: BatchProgress,
    work: Vec<Work>,
    deliveries: Vec<(Arc<Subscription>, InFlightDelivery)>,
    returned: Vec<String>,
    records: usize,
}

impl<'a> BatchPlan<'a> {
    /// Creates an empty plan. `taken_on` is shared with the plans of the other parts.
    pub(crate) fn new(taken_on: &'a AtomicUsize) -> Self {
        let (progress, work, deliveries, returned, records) = Default::default();
        Self { taken_on, progress, work, deliveries, returned, records }
    }

    /// Adds the items of a record. Items that were finished after an earlier receive are marked as
    /// done. A large record that exceeds the limit is re-enqueued unchanged.
    pub(crate) fn add(
        &mut self,
        record: &Record,
        items: Vec<WorkItem>,
        is_finished: impl Fn(&WorkItem) -> bool,
    ) {
        let items = match self.too_many(record, &items) {
            Some((queue, message)) => vec![WorkItem::Forward(queue, message)],
            None => items,
        };
        for item in items {
            // Registered before any work, so that interrupted work is still in the progress.
            let id = self.progress.add(self.records, &item);
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
                    let in_flight =
                        InFlightDelivery { id, subscription: Arc::clone(&subscription), delivery };
                    self.taken_on.fetch_add(1, Ordering::Relaxed);
                    self.deliveries.push((subscription, in_flight));
                }
            }
        }
        self.records += 1;
    }

    /// Returns the message in which a large record waits; `None` if the invocation handles the
    /// record's items now.
    fn too_many(&self, record: &Record, items: &[WorkItem]) -> Option<(QueueName, Box<Message>)> {
        let taken_on = self.taken_on.load(Ordering::Relaxed);
        let has_room = items.len() <= ITEMS_OF_A_LARGE_RECORD
            || taken_on <= ITEMS_OF_A_LARGE_RECORD
            || taken_on + items.len() <= DELIVERIES_AT_ONCE;
        if has_room {
            return None;
        }
        match RecordWait::NoRoom.wait(record, 0)? {
            Wait::Requeued(queue, message) => Some((queue, message)),
            Wait::Hidden { .. } => None,
        }
    }

    /// Adds a record that could not be read and returns to its queue unchanged.
    pub(crate) fn add_returned(&mut self, record: &Record) {
        self.returned.push(record.message.clone());
        self.records += 1;
    }

    /// Returns three things: the work, with deliveries grouped by request; the progress; and the
    /// message ids of the records that return to their queue.
    pub(crate) fn into_work(self, now_ms: u64) -> (Vec<Work>, BatchProgress, Vec<String>) {
        let Self { progress, mut work, deliveries, returned, .. } = self;
        work.extend(group(deliveries, now_ms).into_iter().map(Work::Deliver));
        (work, progress, returned)
    }
}

#[cfg(test)]
mod tests {
    use delivery::delivery::{Delivery, Origin};
    use delivery::event::{Event, Input};
    use delivery::subscription::name::SubscriptionName;
    use delivery::subscription::profile::Dialect;

    use super::*;

    fn record(message: &str) -> Record {
        Record {
            message: message.to_owned(),
            receipt: message.to_owned(),
            queue: QueueName::Events,
            body: "{}".into(),
            topic: Some("n/t".to_owned()),
            attribute: None,
            group: None,
            earlier_receives: 0,
            unread: 0,
            traceparent: None,
            sent_ms: 0,
            first_received_ms: 0,
            receives: 1,
        }
    }

    fn deliveries(count: usize) -> Vec<WorkItem> {
        let name: SubscriptionName = "n/t/s".parse().unwrap();
        let url = "https://example.com/".parse().unwrap();
        let subscription = Arc::new(Subscription::new(name.clone(), Dialect::Native, url));
        let event = Event::recall(&"{}".into(), Input::Auto);
        let origin = Origin { message: "m1".to_owned(), index: 0 };
        let delivery = Box::new(Delivery::new(event, name, origin, 0));
        vec![WorkItem::Deliver(subscription, delivery); count]
    }

    #[test]
    fn a_large_record_waits_where_another_one_leaves_no_room_for_it() {
        for (before, next, waits) in [
            (101, 5_899, false),
            (101, 5_900, true),
            (5_899, 101, false),
            (5_900, 101, true),
            // A small record never waits. A large record does not wait after small records.
            (6_000, 100, false),
            (100, 6_000, false),
        ] {
            let taken_on = AtomicUsize::new(0);
            let mut plan = BatchPlan::new(&taken_on);
            plan.add(&record("m1"), deliveries(before), |_| false);
            plan.add(&record("m2"), deliveries(next), |_| false);
            let (work, ..) = plan.into_work(0);
            let waiting = work.iter().filter(|work| matches!(work, Work::Forward(..))).count();
            let expected = if waits { (1, before + 1) } else { (0, before + next) };
            assert_eq!((waiting, work.len()), expected, "{before} and {next}");
        }
    }
}
