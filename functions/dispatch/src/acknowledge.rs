//! What Lambda is answered: the last step, from the progress alone.
//!
//! Each delivery that is not finished is re-enqueued first. What broke off counts as an attempt
//! (`Aborted`), so that an event that crashes us is attempted as often as its policy says and ends
//! as a dead letter. A record returns to the queue only when something of it could not be sent, or
//! when nothing of it was attempted and it is too large to be re-enqueued.

use std::sync::{Arc, PoisonError};

use adapters::runtime::contained;
use adapters::telemetry;
use delivery::delivery::outcome::{Exchange, TransportResult};
use delivery::delivery::{Batching, WaitReason};
use delivery::machine::step;
use delivery::ports::{DispatchPorts, Queue as _, QueueName, Record};
use delivery::waits::unattempted_seconds;
use futures::stream::StreamExt as _;
use futures::{FutureExt as _, stream};
use uuid::Uuid;

use crate::decode::WorkItem;
use crate::intake::Records;
use crate::invocation::Invocation;
use crate::message::{fits_a_message, is_published};
use crate::progress::{Entry, InFlightDelivery, Stage};

/// Records that are acknowledged at a time.
const AT_ONCE: usize = 100;

impl<P: DispatchPorts> Records<P> {
    /// The message ids of the records that SQS has to redeliver.
    pub(crate) async fn acknowledge(&self, records: &[Record], of: &Invocation<'_>) -> Vec<String> {
        let closing = |(index, record)| self.contained_close(record, index, of);
        let answers: Vec<_> = records.iter().enumerate().map(closing).collect();
        let redeliver = stream::iter(answers).buffer_unordered(AT_ONCE);
        redeliver.filter_map(std::future::ready).collect().await
    }

    /// Hides a record that returns to the queue, so that it is redelivered after so many seconds.
    pub(crate) async fn return_to_queue(&self, record: &Record, why: &str, seconds: u32) {
        telemetry::returned_to_queue(&record.message, why);
        self.ports.queues().change_visibility(record.queue, &record.receipt, seconds).await;
    }

    /// Closes one record; a panic in it is contained. Names it if it has to be redelivered.
    async fn contained_close(
        &self,
        record: &Record,
        index: usize,
        of: &Invocation<'_>,
    ) -> Option<String> {
        let closed = contained("acknowledge", self.close(record, index, of)).await;
        if closed.unwrap_or(false) {
            return None;
        }
        if is_published(record) {
            self.remember(&of.progress.done_of(index));
        }
        of.deadline.in_time(&*self.ports, self.hide_returned(record)).boxed().await;
        Some(record.message.clone())
    }

    /// Remembers what is done of a record that is redelivered, so that it is not done again.
    fn remember(&self, done: &[(String, Uuid)]) {
        let Some((message, _)) = done.first() else { return };
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        finished.note(message, done.iter().map(|(_, delivery)| *delivery));
    }

    /// Whether the record is done; re-enqueues what is unfinished first.
    async fn close(&self, record: &Record, index: usize, of: &Invocation<'_>) -> bool {
        let unfinished = of.progress.unfinished_of(index);
        if !unfinished.is_empty() {
            if of.progress.is_unattempted(index) && unfinished.iter().any(is_too_large_to_wait) {
                let seconds = unattempted_seconds(record.receives);
                // Boxed, and what follows too: it is rare, and would enlarge every record's future.
                let returned =
                    self.return_to_queue(record, "no attempt was begun in time", seconds);
                of.deadline.in_time(&*self.ports, returned).boxed().await;
                return false;
            }
            let requeue = |entry| self.requeue_unfinished(entry, of);
            stream::iter(unfinished).for_each_concurrent(AT_ONCE, requeue).boxed().await;
        }
        // Read again, since re-enqueueing has changed the stages.
        let done = of.progress.stages_of(index).iter().all(|stage| *stage == Stage::Done);
        // Counted when it is done: a redelivered record counts once, and a re-enqueued delivery
        // is not counted again.
        if done && is_published(record) {
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
            ) => self.endings.finish_dead_letter(of, id, &letter).await,
            (_, WorkItem::Forward(queue, message)) => {
                of.progress
                    .set_sent(id, self.endings.sending.send(queue, *message, of.deadline).await);
            }
            (Stage::NotStarted, WorkItem::Deliver(subscription, mut delivery)) => {
                let now_ms = self.ports.now_ms();
                let (hold, turn_ms) = delivery.hold.next_turn();
                delivery.hold = hold;
                let wait_ms = delivery.due_ms.saturating_sub(now_ms).max(turn_ms);
                self.telemetry.held(&delivery, WaitReason::Time, wait_ms, now_ms);
                let in_flight = InFlightDelivery { id, subscription, delivery };
                self.endings.requeue(of, &in_flight, QueueName::Retry, wait_ms).await;
            }
            (Stage::Waiting, WorkItem::Deliver(subscription, delivery)) => {
                let wait_ms = delivery.due_ms.saturating_sub(self.ports.now_ms());
                let in_flight = InFlightDelivery { id, subscription, delivery };
                self.endings.requeue(of, &in_flight, QueueName::Retry, wait_ms).await;
            }
            (Stage::Attempting, WorkItem::Deliver(subscription, mut delivery)) => {
                let (now_ms, jitter) = (self.ports.now_ms(), self.ports.next_jitter());
                // When the attempt began was lost with its future, so it is dated now.
                let aborted = Exchange::new(TransportResult::Aborted, now_ms, 0);
                let settled = step::settle(&mut delivery, &subscription, &aborted, now_ms, jitter);
                // Any member of a batch may have caused the crash: each is retried alone.
                delivery.batching = Batching::Disabled.into();
                self.telemetry.attempted(&delivery, &subscription, &aborted, &settled);
                let subscription = Arc::clone(&subscription);
                let in_flight = InFlightDelivery { id, subscription, delivery };
                self.endings.finish(of, &in_flight, settled.end).await;
            }
        }
    }
}

/// Whether an item that waits would need more room than a message has.
fn is_too_large_to_wait(entry: &Entry) -> bool {
    match &entry.item {
        WorkItem::Deliver(_, delivery) => !fits_a_message(delivery),
        // Dead letters are stored from here if they are too large, and messages fit.
        WorkItem::DeadLetter(_) | WorkItem::Forward(..) => false,
    }
}
