//! Leaving a destination that is slow to answer, so that nobody else waits for it.
//!
//! Outside the slow lane, an attempt without an answer after the destination's `slowAfter` is abandoned
//! as soon as nothing else of its invocation is left to do: it counts for nothing, and the delivery is
//! attempted again in the lane, a queue of its own, with its whole timeout. That happens once in the life
//! of a delivery.

use std::pin::pin;
use std::sync::Arc;

use adapters::telemetry;
use delivery::delivery::Delivery;
use delivery::delivery::outcome::Exchange;
use delivery::ports::{DispatchPorts, QueueName};
use delivery::request::Request;
use delivery::subscription::Subscription;
use futures::FutureExt as _;
use futures::future::join_all;

use crate::dispatch::{Dispatch, Invocation};
use crate::health::is_left_early;
use crate::message::fits_a_message;
use crate::progress::{InFlightDelivery, Stage};

impl<P: DispatchPorts> Dispatch<P> {
    /// One exchange; `None` when it was abandoned.
    pub(crate) async fn exchange_or_abandon(
        &self,
        request: &Request,
        subscription: &Subscription,
        due: &[InFlightDelivery],
        of: &Invocation<'_>,
    ) -> Option<Exchange> {
        let slow_after_ms = subscription.destination.slow_after_ms;
        let may_leave = slow_after_ms < request.timeout_ms && is_left_early(of.queue);
        {
            let mut exchange = pin!(self.ports.exchange(request));
            tokio::select! {
                biased;
                exchange = &mut exchange => return Some(exchange),
                () = self.ports.sleep(slow_after_ms), if may_leave => {}
            }
            if !can_move(due) {
                return Some(exchange.await);
            }
            // While others are at work, waiting for the answer delays nobody.
            let _pause = of.active_work.pause();
            tokio::select! {
                biased;
                exchange = &mut exchange => return Some(exchange),
                () = of.active_work.none_left() => {}
            }
        }
        // Boxed: it is rare, and would enlarge the future of every attempt.
        self.abandon(due, subscription, of).boxed().await;
        None
    }

    /// Sends deliveries whose attempt is abandoned to the lane. The attempt counts for nothing.
    async fn abandon(
        &self,
        due: &[InFlightDelivery],
        subscription: &Subscription,
        of: &Invocation<'_>,
    ) {
        self.slow_lane.record_abandoned(subscription, due, self.ports.now_ms());
        let slow_after_ms = subscription.destination.slow_after_ms;
        let moved = due.iter().map(|one| async move {
            let delivery = Box::new(Delivery { abandoned: true, ..(*one.delivery).clone() });
            let subscription = Arc::clone(&one.subscription);
            let in_flight = InFlightDelivery { id: one.id, subscription, delivery };
            // A panic from here on is not one of an attempt.
            of.progress.keep(&in_flight, Stage::Waiting);
            telemetry::abandoned(&in_flight.delivery, slow_after_ms);
            self.requeue(of, &in_flight, QueueName::Slow, 0).await;
        });
        join_all(moved).await;
    }
}

/// Whether deliveries can be moved once their attempt is abandoned. What does not fit a message has to
/// be attempted where it is.
fn can_move(due: &[InFlightDelivery]) -> bool {
    due.iter().all(|one| {
        let abandoned = Delivery { abandoned: true, ..(*one.delivery).clone() };
        !one.delivery.abandoned && fits_a_message(&abandoned)
    })
}
