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
use delivery::delivery::Company;
use delivery::delivery::outcome::{Ending, Exchange};
use delivery::machine::step::settle;
use delivery::ports::{DispatchPorts, QueueName};
use futures::stream::StreamExt as _;
use futures::{FutureExt as _, stream};

use crate::book::{Entry, Stage, Ticket};
use crate::open::Piece;
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
    pub(crate) async fn give_back_all(
        &self,
        records: &[Record],
        why: &str,
        seconds: u32,
    ) -> Vec<String> {
        let hiding: Vec<_> =
            records.iter().map(|record| self.give_back(record, why, seconds)).collect();
        stream::iter(hiding).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
        records.iter().map(|record| record.message.clone()).collect()
    }

    /// Gives a record back, to come again after so many seconds.
    pub(crate) async fn give_back(&self, record: &Record, why: &str, seconds: u32) {
        telemetry::given_back(&record.message, why);
        self.ports.hide(&record.queue, &record.receipt, seconds).await;
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
        if !stages.is_empty() && stages.iter().all(|stage| *stage == Stage::Untouched) {
            let seconds = record.receives.saturating_sub(1).min(GIVEN_BACK_MAX_SECONDS);
            // Boxed, and what follows too: it is rare, and would make room for itself in the future
            // of every record.
            self.give_back(record, "nothing of it was begun", seconds).boxed().await;
            return false;
        }
        let unfinished = of.book.unfinished_of(index);
        if !unfinished.is_empty() {
            let leaving: Vec<_> =
                unfinished.into_iter().map(|entry| self.let_go(entry, of)).collect();
            stream::iter(leaving).buffer_unordered(AT_ONCE).collect::<Vec<()>>().boxed().await;
        }
        let done = of.book.stages_of(index).iter().all(|stage| *stage == Stage::Gone);
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
    async fn let_go(&self, entry: Entry, of: &Invocation<'_>) {
        let Entry { place, stage, piece, .. } = entry;
        match (stage, piece) {
            (Stage::Gone | Stage::Stuck, _) => {}
            (Stage::Untouched | Stage::Attempting | Stage::Waiting, Piece::Bury(letter)) => {
                self.finish_letter(&of.book, place, &letter).await;
            }
            (Stage::Untouched | Stage::Waiting, Piece::Deliver(subscription, delivery)) => {
                let wait_ms = delivery.due_ms.saturating_sub(self.ports.now_ms());
                self.pass_on(
                    &of.book,
                    &Ticket { place, subscription, delivery },
                    QueueName::Retry,
                    wait_ms,
                )
                .await;
            }
            (Stage::Attempting, Piece::Deliver(subscription, mut delivery)) => {
                let now_ms = self.ports.now_ms();
                let aborted = Exchange::new(Ending::Aborted, now_ms, 0);
                let settled =
                    settle(&mut delivery, &subscription, &aborted, now_ms, self.ports.roll());
                // Whatever broke may have been one of a batch: each goes on alone.
                delivery.company = Company::Alone;
                self.telemetry.attempted(&delivery, &subscription, &aborted, &settled);
                let ticket = Ticket { place, subscription: Arc::clone(&subscription), delivery };
                self.finish(of, &ticket, settled.end).await;
            }
        }
    }
}
