//! Abandons attempts at a slow destination, so that no other delivery waits for them.
//!
//! Outside the slow lane, an attempt without a response after `slowAfter` is abandoned as soon as
//! its invocation has no other work. An abandoned attempt does not count. The delivery is attempted
//! again in the slow lane, a separate queue, with the whole timeout. A delivery is abandoned at
//! most once. A process abandons one attempt per slow period of a destination; its other attempts
//! continue. The process publishes the slowness to all other processes immediately.
//!
//! An attempt with a `lateResponseWindow` is never abandoned: its request stays open after the
//! timeout (`late`).

use std::pin::pin;
use std::sync::Arc;

use delivery::delivery::Delivery;
use delivery::delivery::outcome::Exchange;
use delivery::ports::{DispatchPorts, QueueName, SendHttp as _};
use delivery::request::Request;
use futures::FutureExt as _;
use futures::future::join_all;

use super::{Attempt, Attempts};
use crate::destination::Passage;
use crate::invocation::Invocation;
use crate::message::fits_a_message;
use crate::progress::{InFlightDelivery, Stage};

/// The result of waiting for a response.
enum Waited {
    Done(Box<Exchange>),
    /// The attempt is abandoned, and these deliveries move to the slow lane.
    Left(Vec<InFlightDelivery>),
}

impl<P: DispatchPorts> Attempts<P> {
    /// Makes one exchange; returns `None` if the attempt was abandoned.
    pub(super) async fn exchange_or_abandon(
        &self,
        request: &Request,
        attempt: &Attempt<'_, '_>,
        invocation: &Invocation<'_>,
    ) -> Option<Exchange> {
        let done = {
            // Pinned here, because an argument would store the future twice. The block drops the
            // future, so an abandoned exchange holds no connection while its deliveries are sent.
            let work = pin!(self.ports.http().exchange(request));
            self.done_or_left(work, request.timeout_ms, attempt, invocation).await
        };
        match done {
            Waited::Done(exchange) => Some(*exchange),
            Waited::Left(left) => {
                // Boxed: this rare future would enlarge the future of every attempt.
                async {
                    self.leave(&left, attempt.passage, invocation).await;
                    self.news.share_health(invocation).await;
                }
                .boxed()
                .await;
                None
            }
        }
    }

    /// Returns the exchange, or the deliveries to move to the slow lane if the attempt is
    /// abandoned.
    async fn done_or_left(
        &self,
        mut work: impl Future<Output = Exchange> + Unpin,
        timeout_ms: u64,
        attempt: &Attempt<'_, '_>,
        invocation: &Invocation<'_>,
    ) -> Waited {
        let Attempt { passage, due, .. } = attempt;
        let started_ms = self.ports.now_ms();
        let slow_after_ms = passage.subscription.destination.slow_after_ms;
        let is_slow_first = slow_after_ms < timeout_ms;
        let may_move = self.slow_lane.may_move(invocation.queue, due.len(), started_ms);
        tokio::select! {
            biased;
            done = &mut work => return Waited::Done(Box::new(done)),
            () = self.ports.sleep(slow_after_ms), if may_move && is_slow_first => {}
        }
        let Some(abandoned) = abandoned(due) else { return Waited::Done(Box::new(work.await)) };
        // While other work is active, waiting for the response delays nothing.
        let _pause = invocation.active_work.pause();
        tokio::select! {
            biased;
            done = &mut work => return Waited::Done(Box::new(done)),
            () = invocation.active_work.none_left() => {}
        }
        match self.destinations.abandon(passage, started_ms) {
            true => Waited::Left(abandoned),
            // This process has already abandoned an attempt in this slow period of the destination,
            // so the invocation waits.
            false => Waited::Done(Box::new(work.await)),
        }
    }

    /// Sends the deliveries of an abandoned attempt to the slow queue, without counting the
    /// attempt.
    async fn leave(
        &self,
        due: &[InFlightDelivery],
        passage: &Passage,
        invocation: &Invocation<'_>,
    ) {
        // Mark all deliveries first, so that a panic during the sends does not count as an attempt.
        due.iter().for_each(|in_flight| invocation.progress.keep(in_flight, Stage::Waiting));
        let slow_after_ms = passage.subscription.destination.slow_after_ms;
        due.iter()
            .for_each(|in_flight| self.telemetry.abandoned(&in_flight.delivery, slow_after_ms));
        join_all(
            due.iter()
                .map(|in_flight| self.endings.requeue(invocation, in_flight, QueueName::Slow, 0)),
        )
        .await;
    }
}

/// Returns the deliveries, marked as abandoned. Returns `None` if one of them was abandoned before,
/// or does not fit a message and so cannot move to the slow lane.
fn abandoned(due: &[InFlightDelivery]) -> Option<Vec<InFlightDelivery>> {
    let abandon = |in_flight: &InFlightDelivery| {
        let delivery = Box::new(Delivery { abandoned: true, ..(*in_flight.delivery).clone() });
        let subscription = Arc::clone(&in_flight.subscription);
        let can_move = !in_flight.delivery.abandoned && fits_a_message(&delivery);
        can_move.then_some(InFlightDelivery { id: in_flight.id, subscription, delivery })
    };
    due.iter().map(abandon).collect()
}
