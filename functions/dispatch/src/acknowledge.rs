//! Acknowledges records. This is the last step, and it depends only on the recorded progress.
//!
//! This step first re-enqueues each unfinished delivery. An interrupted attempt counts (`Aborted`),
//! so an event that crashes the function becomes a dead letter after its maximum number of
//! attempts. A record returns to its queue in two cases:
//! - A message of the record could not be sent.
//! - No attempt was begun, and the record is too large to be re-enqueued.

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

/// Maximum number of records that are acknowledged concurrently.
const AT_ONCE: usize = 100;

impl<P: DispatchPorts> Records<P> {
    /// Acknowledges a batch. Returns the message ids of the records that SQS must redeliver.
    pub(crate) async fn acknowledge(
        &self,
        records: &[Record],
        invocation: &Invocation<'_>,
    ) -> Vec<String> {
        let closing = |(index, record)| self.contained_close(record, index, invocation);
        let answers: Vec<_> = records.iter().enumerate().map(closing).collect();
        let redeliver = stream::iter(answers).buffer_unordered(AT_ONCE);
        redeliver.filter_map(std::future::ready).collect().await
    }

    /// Returns a record to its queue, where it stays hidden for `seconds`.
    pub(crate) async fn return_to_queue(&self, record: &Record, why: &str, seconds: u32) {
        telemetry::returned_to_queue(&record.message, why);
        self.ports.queues().change_visibility(record.queue, &record.receipt, seconds).await;
    }

    /// Closes one record and contains any panic. Returns the message id if SQS must redeliver the
    /// record.
    async fn contained_close(
        &self,
        record: &Record,
        index: usize,
        invocation: &Invocation<'_>,
    ) -> Option<String> {
        let closed = contained("acknowledge", self.close(record, index, invocation)).await;
        if closed.unwrap_or(false) {
            return None;
        }
        if is_published(record) {
            self.remember(&invocation.progress.done_of(index));
        }
        invocation.deadline.in_time(&*self.ports, self.hide_returned(record)).boxed().await;
        Some(record.message.clone())
    }

    /// Remembers the finished deliveries of a record that will be redelivered, so that they are not
    /// repeated.
    fn remember(&self, done: &[(String, Uuid)]) {
        let Some((message, _)) = done.first() else { return };
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        finished.note(message, done.iter().map(|(_, delivery)| *delivery));
    }

    /// Re-enqueues the unfinished items of a record. Returns true if the record can be
    /// acknowledged. Otherwise SQS must redeliver it.
    async fn close(&self, record: &Record, index: usize, invocation: &Invocation<'_>) -> bool {
        let unfinished = invocation.progress.unfinished_of(index);
        if !unfinished.is_empty() {
            if invocation.progress.is_unattempted(index)
                && unfinished.iter().any(is_too_large_to_wait)
            {
                let seconds = unattempted_seconds(record.receives);
                // Boxed: these rare futures would enlarge the future of every record.
                let returned =
                    self.return_to_queue(record, "no attempt was started in time", seconds);
                invocation.deadline.in_time(&*self.ports, returned).boxed().await;
                return false;
            }
            let requeue = |entry| self.requeue_unfinished(entry, invocation);
            stream::iter(unfinished).for_each_concurrent(AT_ONCE, requeue).boxed().await;
        }
        // Read the stages again, because re-enqueueing has changed them.
        let done = invocation.progress.stages_of(index).iter().all(|stage| *stage == Stage::Done);
        // Matches are counted once per published record: not for a record that will be redelivered,
        // and not for a re-enqueued delivery.
        if done && is_published(record) {
            invocation.progress.read(index, |item| {
                item.subscription().into_iter().for_each(|name| self.telemetry.matched(name));
            });
        }
        done
    }

    async fn requeue_unfinished(&self, entry: Entry, invocation: &Invocation<'_>) {
        let Entry { id, stage, item, .. } = entry;
        match (stage, item) {
            // A failed send is not repeated here, because its record is redelivered.
            (Stage::Done | Stage::SendFailed, _) => {}
            (
                Stage::NotStarted | Stage::Attempting | Stage::Waiting,
                WorkItem::DeadLetter(letter),
            ) => self.endings.finish_dead_letter(invocation, id, &letter).await,
            (_, WorkItem::Forward(queue, message)) => {
                invocation.progress.set_sent(
                    id,
                    self.endings.sending.send(queue, *message, invocation.deadline).await,
                );
            }
            (Stage::NotStarted, WorkItem::Deliver(subscription, mut delivery)) => {
                let now_ms = self.ports.now_ms();
                let (hold, turn_ms) = delivery.hold.next_turn();
                delivery.hold = hold;
                let wait_ms = delivery.due_ms.saturating_sub(now_ms).max(turn_ms);
                self.telemetry.held(&delivery, WaitReason::Time, wait_ms, now_ms);
                let in_flight = InFlightDelivery { id, subscription, delivery };
                self.endings.requeue(invocation, &in_flight, QueueName::Retry, wait_ms).await;
            }
            (Stage::Waiting, WorkItem::Deliver(subscription, delivery)) => {
                let wait_ms = delivery.due_ms.saturating_sub(self.ports.now_ms());
                let in_flight = InFlightDelivery { id, subscription, delivery };
                self.endings.requeue(invocation, &in_flight, QueueName::Retry, wait_ms).await;
            }
            (Stage::Attempting, WorkItem::Deliver(subscription, mut delivery)) => {
                let (now_ms, jitter) = (self.ports.now_ms(), self.ports.next_jitter());
                // The start time of the attempt was lost with the interrupted future, so the
                // attempt gets the current time.
                let aborted = Exchange::new(TransportResult::Aborted, now_ms, 0);
                let settled = step::settle(&mut delivery, &subscription, &aborted, now_ms, jitter);
                // Any member of the batch may have caused the crash, so each one is retried alone.
                delivery.batching = Batching::Disabled.into();
                self.telemetry.attempted(&delivery, &subscription, &aborted, &settled);
                let subscription = Arc::clone(&subscription);
                let in_flight = InFlightDelivery { id, subscription, delivery };
                self.endings.finish(invocation, &in_flight, settled.end).await;
            }
        }
    }
}

/// True if the item does not fit a delayed message.
fn is_too_large_to_wait(entry: &Entry) -> bool {
    match &entry.item {
        WorkItem::Deliver(_, delivery) => !fits_a_message(delivery),
        // A dead letter that is too large is stored directly, and a message fits by construction.
        WorkItem::DeadLetter(_) | WorkItem::Forward(..) => false,
    }
}
