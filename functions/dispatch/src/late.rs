//! Late answers: an exchange that had no answer in time stays open for a while, where its
//! subscription asks for it.
//!
//! Separate because it changes nothing that was settled: the attempt has failed and its delivery
//! has its end. Carrying that end out is put off until the first of: an answer, the moment the
//! retry is due, the end of the window, ten seconds after all other work of the invocation, and the
//! invocation's own deadline. A late success ends the delivery instead, and no retry is queued.
//! Best effort (Event Grid, "message delivery and retry").

use std::sync::atomic::{AtomicUsize, Ordering};

use adapters::telemetry;
use delivery::delivery::outcome::{Exchange, Outcome};
use delivery::machine::reply::follow_ups;
use delivery::machine::step::End;
use delivery::ports::{DispatchPorts, Late};
use delivery::subscription::Subscription;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use crate::progress::{InFlightDelivery, Stage};
use crate::{Dispatch, Invocation};

/// How long late answers are waited for when there is nothing else to do.
const AFTER_OTHER_WORK_MS: u64 = 10_000;
/// Exchanges of one invocation that are kept open at a time; each is a socket.
const OPEN_MAX: usize = 100;

/// A delivery whose attempt is settled and whose end is not carried out yet.
pub(crate) struct Unfinished {
    pub(crate) ticket: InFlightDelivery,
    pub(crate) end: End,
}

impl Unfinished {
    /// The same with what is left of its wait.
    fn with_rest_of_wait(self, now_ms: u64) -> Self {
        let end = match self.end {
            End::Retry { .. } => {
                End::Retry { wait_ms: self.ticket.delivery.due_ms.saturating_sub(now_ms) }
            }
            end @ (End::Done | End::DeadLetter(_) | End::ToSink(_) | End::Drop(_)) => end,
        };
        Self { end, ..self }
    }
}

/// How much work of an invocation does not wait for late answers.
#[derive(Debug)]
pub(crate) struct ActiveWork {
    works: AtomicUsize,
    none_left: Notify,
    open: Semaphore,
}

impl ActiveWork {
    /// So many pieces of work are to be done.
    pub(crate) fn with(works: usize) -> Self {
        Self {
            works: AtomicUsize::new(works),
            none_left: Notify::new(),
            open: Semaphore::new(OPEN_MAX),
        }
    }

    /// One piece of work is done, or does nothing but wait.
    pub(crate) fn one_less(&self) {
        if self.works.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.none_left.notify_waiters();
        }
    }

    /// One piece of work does nothing but wait, until this is dropped.
    fn rest(&self) -> PauseGuard<'_> {
        self.one_less();
        PauseGuard(self)
    }

    /// Leave to keep one more exchange open.
    fn open(&self) -> Option<SemaphorePermit<'_>> {
        self.open.try_acquire().ok()
    }

    async fn none_left(&self) {
        let notified = self.none_left.notified();
        if self.works.load(Ordering::Acquire) > 0 {
            notified.await;
        }
    }
}

/// Work that rests. It counts again when it goes on, also when it breaks off.
struct PauseGuard<'a>(&'a ActiveWork);

impl Drop for PauseGuard<'_> {
    fn drop(&mut self) {
        self.0.works.fetch_add(1, Ordering::AcqRel);
    }
}

impl<P: DispatchPorts> Dispatch<P> {
    /// Waits for a late answer to these deliveries, and carries their ends out if there is none.
    pub(crate) async fn finish_late(
        &self,
        unfinished: Vec<Unfinished>,
        subscription: &Subscription,
        late: Late,
        of: &Invocation<'_>,
    ) {
        unfinished.iter().for_each(|one| of.book.keep(&one.ticket, Stage::Waiting));
        let rest = of.busy.rest();
        let answer = match of.busy.open() {
            Some(_open) => self.late_answer(&unfinished, subscription, late, of).await,
            None => None,
        };
        drop(rest);
        let success =
            answer.filter(|exchange| exchange.outcome(&subscription.retry) == Outcome::Success);
        let now_ms = self.ports.now_ms();
        let Some(exchange) = success else {
            let unfinished =
                unfinished.into_iter().map(|one| one.with_rest_of_wait(now_ms)).collect();
            return self.finish_all(of, unfinished).await;
        };
        for Unfinished { ticket, .. } in unfinished {
            telemetry::late(&ticket.delivery, &exchange);
            let follow_ups =
                follow_ups(&ticket.delivery, subscription, &exchange, &of.catalogue, now_ms);
            self.finish_with(of, &ticket, follow_ups).await;
        }
    }

    async fn late_answer(
        &self,
        unfinished: &[Unfinished],
        subscription: &Subscription,
        late: Late,
        of: &Invocation<'_>,
    ) -> Option<Exchange> {
        let now_ms = self.ports.now_ms();
        let window_ends_ms = now_ms.saturating_add(subscription.destination.late_window_ms);
        let retries = unfinished.iter().filter(|one| matches!(one.end, End::Retry { .. }));
        let retry_ms = retries.map(|one| one.ticket.delivery.due_ms).min().unwrap_or(u64::MAX);
        let until_ms = window_ends_ms.min(retry_ms).min(of.deadline.stops_ms());
        let alone = async {
            of.busy.none_left().await;
            self.ports.sleep(AFTER_OTHER_WORK_MS).await;
        };
        tokio::select! {
            biased;
            answer = late => Some(answer),
            () = self.ports.sleep(until_ms.saturating_sub(now_ms)) => None,
            () = alone => None,
        }
    }
}
