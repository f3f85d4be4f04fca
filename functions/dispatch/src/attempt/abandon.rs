//! Leaving a destination that is slow to answer, so that nobody else waits for it.
//!
//! Outside the slow lane, an attempt without an answer after the destination's `slowAfter` is abandoned
//! as soon as nothing else of its invocation is left to do: it counts for nothing, and the delivery is
//! attempted again in the lane, a queue of its own, with its whole timeout. That happens once in the life
//! of a delivery. So is one whose secrets or token are not had by then.

use std::pin::pin;
use std::sync::Arc;

use delivery::delivery::Delivery;
use delivery::delivery::outcome::{Exchange, Unsendable};
use delivery::ports::{DispatchPorts, QueueName};
use delivery::request::Request;
use delivery::subscription::Subscription;
use delivery::subscription::secret::Keyring;
use futures::FutureExt as _;
use futures::future::join_all;

use crate::dispatch::{Dispatch, Invocation};
use crate::message::fits_a_message;
use crate::progress::{InFlightDelivery, Stage};

impl<P: DispatchPorts> Dispatch<P> {
    /// The secrets of a request and its token; `None` when nobody waits for them here any more. That makes
    /// the destination slow, and does not count as its failure.
    pub(crate) async fn keyring_or_leave(
        &self,
        subscription: &Subscription,
        due: &[InFlightDelivery],
        of: &Invocation<'_>,
    ) -> Option<Result<Keyring, Unsendable>> {
        let destination = &subscription.destination;
        let started_ms = self.ports.now_ms();
        let work = Box::pin(self.keyring(destination, of.deadline));
        match self.done_or_left(work, destination.response_timeout_ms, subscription, due, of).await
        {
            Ok(keyring) => Some(keyring),
            Err(left) => {
                self.abandon(&left, subscription, started_ms, of).await;
                None
            }
        }
    }

    /// One exchange; `None` when it was abandoned.
    pub(crate) async fn exchange_or_abandon(
        &self,
        request: &Request,
        subscription: &Subscription,
        due: &[InFlightDelivery],
        of: &Invocation<'_>,
    ) -> Option<Exchange> {
        let started_ms = self.ports.now_ms();
        let done = {
            // Pinned here: the future would be kept twice where it is an argument. It ends here too, so
            // that what is abandoned holds no connection while it is sent.
            let work = pin!(self.ports.exchange(request));
            self.done_or_left(work, request.timeout_ms, subscription, due, of).await
        };
        match done {
            Ok(exchange) => Some(exchange),
            Err(left) => {
                // Boxed: it is rare, and would enlarge the future of every attempt.
                self.abandon(&left, subscription, started_ms, of).boxed().await;
                None
            }
        }
    }

    /// What is waited for, or the deliveries as they are once they are left to the lane.
    async fn done_or_left<T>(
        &self,
        mut work: impl Future<Output = T> + Unpin,
        timeout_ms: u64,
        subscription: &Subscription,
        due: &[InFlightDelivery],
        of: &Invocation<'_>,
    ) -> Result<T, Vec<InFlightDelivery>> {
        let slow_after_ms = subscription.destination.slow_after_ms;
        let may_move = self.health.may_move(of.queue, due.len(), self.ports.now_ms());
        let may_leave = may_move && slow_after_ms < timeout_ms;
        tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            () = self.ports.sleep(slow_after_ms), if may_leave => {}
        }
        let Some(abandoned) = abandoned(due) else { return Ok(work.await) };
        // While others are at work, waiting for the answer delays nobody.
        let _pause = of.active_work.pause();
        tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            () = of.active_work.none_left() => {}
        }
        Err(abandoned)
    }

    /// Sends deliveries whose attempt is abandoned to the lane. The attempt counts for nothing.
    async fn abandon(
        &self,
        due: &[InFlightDelivery],
        subscription: &Subscription,
        started_ms: u64,
        of: &Invocation<'_>,
    ) {
        self.health.record_abandoned(subscription, due, started_ms, self.ports.now_ms());
        // All of them first: a panic from here on is not one of an attempt.
        due.iter().for_each(|one| of.progress.keep(one, Stage::Waiting));
        let slow_after_ms = subscription.destination.slow_after_ms;
        due.iter().for_each(|one| self.telemetry.abandoned(&one.delivery, slow_after_ms));
        join_all(due.iter().map(|one| self.requeue(of, one, QueueName::Slow, 0))).await;
    }
}

/// Deliveries as they are once their attempt was abandoned; `None` when one of them does not fit a
/// message and has to be attempted where it is, or was abandoned before.
fn abandoned(due: &[InFlightDelivery]) -> Option<Vec<InFlightDelivery>> {
    let abandon = |one: &InFlightDelivery| {
        let delivery = Box::new(Delivery { abandoned: true, ..(*one.delivery).clone() });
        let subscription = Arc::clone(&one.subscription);
        let can_move = !one.delivery.abandoned && fits_a_message(&delivery);
        can_move.then_some(InFlightDelivery { id: one.id, subscription, delivery })
    };
    due.iter().map(abandon).collect()
}
