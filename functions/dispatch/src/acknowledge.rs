//! What Lambda is told: the last step, from the book alone.
//!
//! A record of which nothing was attempted is given back as a whole, and soon. Of any other record,
//! each delivery that is not finished leaves as its own message first. What broke off counts as an
//! attempt (`Aborted`), so that an event that breaks us is tried as often as its policy says and
//! ends as a dead letter.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use adapters::records::Record;
use adapters::telemetry;
use delivery::delivery::Batching;
use delivery::delivery::outcome::{Exchange, TransportResult};
use delivery::machine::step::settle;
use delivery::ports::{DispatchPorts, QueueName};
use futures::stream::StreamExt as _;
use futures::{FutureExt as _, stream};

use crate::open::WorkItem;
use crate::progress::{Entry, InFlightDelivery, Stage};
use crate::{AT_ONCE, Dispatch, Invocation};

/// A record given back for lack of time comes again after one second less than it was received
/// times, at most this.
const GIVEN_BACK_MAX_SECONDS: u32 = 30;

impl<P: DispatchPorts> Dispatch<P> {
    /// Names the records that have to come again.
    pub(crate) async fn acknowledge(&self, records: &[Record], of: &Invocation<'_>) -> Vec<String> {
        let closing = |(index, record)| self.contained_close(record, index, of);
        let answers: Vec<_> = records.iter().enumerate().map(closing).collect();
        stream::iter(answers)
            .buffer_unordered(AT_ONCE)
            .filter_map(std::future::ready)
            .collect()
            .await
    }

    /// Gives every record back, to come again after so many seconds.
    pub(crate) async fn return_all_to_queue(
        &self,
        records: &[Record],
        why: &str,
        seconds: u32,
    ) -> Vec<String> {
        let hiding: Vec<_> =
            records.iter().map(|record| self.return_to_queue(record, why, seconds)).collect();
        stream::iter(hiding).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
        records.iter().map(|record| record.message.clone()).collect()
    }

    /// Gives a record back, to come again after so many seconds.
    pub(crate) async fn return_to_queue(&self, record: &Record, why: &str, seconds: u32) {
        telemetry::returned_to_queue(&record.message, why);
        self.ports.change_visibility(&record.queue, &record.receipt, seconds).await;
    }

    /// Closes one record; a panic in it is its own. Names it if it has to come again.
    async fn contained_close(
        &self,
        record: &Record,
        index: usize,
        of: &Invocation<'_>,
    ) -> Option<String> {
        let closed = AssertUnwindSafe(self.close(record, index, of)).catch_unwind().await;
        if closed.is_err() {
            telemetry::panicked("acknowledge");
        }
        (!closed.unwrap_or(false)).then(|| record.message.clone())
    }

    /// Whether the record is done; lets what is left of it go first.
    async fn close(&self, record: &Record, index: usize, of: &Invocation<'_>) -> bool {
        let stages = of.book.stages_of(index);
        if !stages.is_empty() && stages.iter().all(|stage| *stage == Stage::NotStarted) {
            let seconds = record.receives.saturating_sub(1).min(GIVEN_BACK_MAX_SECONDS);
            // Boxed, and what follows too: it is rare, and would make room for itself in the future
            // of every record.
            self.return_to_queue(record, "nothing of it was begun", seconds).boxed().await;
            return false;
        }
        let unfinished = of.book.unfinished_of(index);
        if !unfinished.is_empty() {
            let leaving: Vec<_> =
                unfinished.into_iter().map(|entry| self.requeue_unfinished(entry, of)).collect();
            stream::iter(leaving).buffer_unordered(AT_ONCE).collect::<Vec<()>>().boxed().await;
        }
        let done = of.book.stages_of(index).iter().all(|stage| *stage == Stage::Done);
        // Counted when it is done, so that a record which comes again counts once; a delivery that
        // came back, never.
        if done && record.delivery.is_none() {
            of.book.read(index, |piece| {
                piece.subscription().into_iter().for_each(|name| self.telemetry.matched(name))
            });
        }
        done
    }

    /// A piece that is not finished leaves as its own message.
    async fn requeue_unfinished(&self, entry: Entry, of: &Invocation<'_>) {
        let Entry { place, stage, piece, .. } = entry;
        match (stage, piece) {
            (Stage::Done | Stage::SendFailed, _) => {}
            (
                Stage::NotStarted | Stage::Attempting | Stage::Waiting,
                WorkItem::DeadLetter(letter),
            ) => {
                self.finish_dead_letter(&of.book, place, &letter).await;
            }
            (Stage::NotStarted | Stage::Waiting, WorkItem::Deliver(subscription, delivery)) => {
                let wait_ms = delivery.due_ms.saturating_sub(self.ports.now_ms());
                self.requeue(
                    &of.book,
                    &InFlightDelivery { place, subscription, delivery },
                    QueueName::Retry,
                    wait_ms,
                )
                .await;
            }
            (Stage::Attempting, WorkItem::Deliver(subscription, mut delivery)) => {
                let now_ms = self.ports.now_ms();
                let aborted = Exchange::new(TransportResult::Aborted, now_ms, 0);
                let settled = settle(
                    &mut delivery,
                    &subscription,
                    &aborted,
                    now_ms,
                    self.ports.next_jitter(),
                );
                // Whatever broke may have been one of a batch: each goes on alone.
                delivery.batching = Batching::Disabled;
                self.telemetry.attempted(&delivery, &subscription, &aborted, &settled);
                let ticket =
                    InFlightDelivery { place, subscription: Arc::clone(&subscription), delivery };
                self.finish(of, &ticket, settled.end).await;
            }
        }
    }
}
