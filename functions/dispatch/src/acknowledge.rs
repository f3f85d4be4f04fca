//! What Lambda is answered: the last step, from the progress alone.
//!
//! A record of which nothing was attempted returns to the queue as a whole, and soon. Of any other
//! record, each delivery that is not finished is re-enqueued first. What broke off counts as an
//! attempt (`Aborted`), so that an event that crashes us is attempted as often as its policy says
//! and ends as a dead letter.

use std::sync::Arc;

use adapters::runtime::contained;
use adapters::telemetry;
use delivery::delivery::Batching;
use delivery::delivery::outcome::{Exchange, TransportResult};
use delivery::machine::step;
use delivery::ports::{DispatchPorts, QueueName, Record};
use futures::stream::StreamExt as _;
use futures::{FutureExt as _, stream};

use crate::decode::WorkItem;
use crate::dispatch::{Dispatch, Invocation, NO_SUBSCRIPTIONS_SECONDS};
use crate::progress::{Entry, InFlightDelivery, Stage};

/// Records that are acknowledged at a time.
const AT_ONCE: usize = 100;
/// A record returned for lack of time is redelivered after one second less than it was received
/// times, at most this.
const RETURNED_MAX_SECONDS: u32 = 30;

impl<P: DispatchPorts> Dispatch<P> {
    /// The message ids of the records that SQS has to redeliver.
    pub(crate) async fn acknowledge(&self, records: &[Record], of: &Invocation<'_>) -> Vec<String> {
        let closing = |(index, record)| self.contained_close(record, index, of);
        let answers: Vec<_> = records.iter().enumerate().map(closing).collect();
        let redeliver = stream::iter(answers).buffer_unordered(AT_ONCE);
        redeliver.filter_map(std::future::ready).collect().await
    }

    /// Returns every record to the queue, because there are no usable subscriptions.
    pub(crate) async fn return_all_to_queue(&self, records: &[Record], why: &str) -> Vec<String> {
        let return_one = |record| self.return_to_queue(record, why, NO_SUBSCRIPTIONS_SECONDS);
        stream::iter(records).for_each_concurrent(AT_ONCE, return_one).await;
        records.iter().map(|record| record.message.clone()).collect()
    }

    /// Hides a record that returns to the queue, so that it is redelivered after so many seconds.
    pub(crate) async fn return_to_queue(&self, record: &Record, why: &str, seconds: u32) {
        telemetry::returned_to_queue(&record.message, why);
        self.ports.change_visibility(&record.queue, &record.receipt, seconds).await;
    }

    /// Closes one record; a panic in it is contained. Names it if it has to be redelivered.
    async fn contained_close(
        &self,
        record: &Record,
        index: usize,
        of: &Invocation<'_>,
    ) -> Option<String> {
        let closed = contained("acknowledge", self.close(record, index, of)).await;
        (!closed.unwrap_or(false)).then(|| record.message.clone())
    }

    /// Whether the record is done; re-enqueues what is unfinished first.
    async fn close(&self, record: &Record, index: usize, of: &Invocation<'_>) -> bool {
        let stages = of.progress.stages_of(index);
        // `all` holds for no stages too, and a record that matches nothing is done.
        if !stages.is_empty() && stages.iter().all(|stage| *stage == Stage::NotStarted) {
            // At once after the first receive: our time ran out, which is likely to pass.
            let seconds = record.receives.saturating_sub(1).min(RETURNED_MAX_SECONDS);
            // Boxed, and what follows too: it is rare, and would enlarge the future of every record.
            self.return_to_queue(record, "no attempt was begun in time", seconds).boxed().await;
            return false;
        }
        let unfinished = of.progress.unfinished_of(index);
        if !unfinished.is_empty() {
            let requeue = |entry| self.requeue_unfinished(entry, of);
            stream::iter(unfinished).for_each_concurrent(AT_ONCE, requeue).boxed().await;
        }
        // Read again, since re-enqueueing has changed the stages.
        let done = of.progress.stages_of(index).iter().all(|stage| *stage == Stage::Done);
        // Counted when it is done: a redelivered record counts once, and a re-enqueued delivery
        // is not counted again.
        if done && record.delivery.is_none() {
            of.progress.read(index, |item| {
                item.subscription().into_iter().for_each(|name| self.telemetry.matched(name));
            });
        }
        done
    }

    /// Re-enqueues an item that is not finished.
    async fn requeue_unfinished(&self, entry: Entry, of: &Invocation<'_>) {
        let Entry { id, stage, item, .. } = entry;
        match (stage, item) {
            // What could not be sent is not tried again here: its record is redelivered.
            (Stage::Done | Stage::SendFailed, _) => {}
            (
                Stage::NotStarted | Stage::Attempting | Stage::Waiting,
                WorkItem::DeadLetter(letter),
            ) => self.finish_dead_letter(of, id, &letter).await,
            (Stage::NotStarted | Stage::Waiting, WorkItem::Deliver(subscription, delivery)) => {
                let wait_ms = delivery.due_ms.saturating_sub(self.ports.now_ms());
                let in_flight = InFlightDelivery { id, subscription, delivery };
                self.requeue(of, &in_flight, QueueName::Retry, wait_ms).await;
            }
            (Stage::Attempting, WorkItem::Deliver(subscription, mut delivery)) => {
                let (now_ms, jitter) = (self.ports.now_ms(), self.ports.next_jitter());
                // When the attempt began was lost with its future, so it is dated now.
                let aborted = Exchange::new(TransportResult::Aborted, now_ms, 0);
                let settled = step::settle(&mut delivery, &subscription, &aborted, now_ms, jitter);
                // Any member of a batch may have caused the crash: each is retried alone.
                delivery.batching = Batching::Disabled;
                self.telemetry.attempted(&delivery, &subscription, &aborted, &settled);
                let subscription = Arc::clone(&subscription);
                let in_flight = InFlightDelivery { id, subscription, delivery };
                self.finish(of, &in_flight, settled.end).await;
            }
        }
    }
}
