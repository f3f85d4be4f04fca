//! Abandons attempts at a destination that is slow to respond, so that no other delivery waits for it.
//!
//! Outside the slow lane, an attempt without a response after the destination's `slowAfter` is abandoned as soon as nothing else
//! of its invocation is left to do. It does not count. The delivery is attempted again in the lane, a queue of its own, with its
//! whole timeout. A delivery is abandoned once in its life, and a process abandons one attempt while its destination is slow.
//! Other attempts under way continue. The slowness is published to all processes at once.
//!
//! If a subscription has a `lateResponseWindow`, its attempts are never abandoned: their requests stay open after the timeout (`late`).

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

/// The end of waiting for a response.
enum Waited {
    Done(Box<Exchange>),
    /// The attempt is abandoned, and these deliveries move to the lane.
    Left(Vec<InFlightDelivery>),
}

impl<P: DispatchPorts> Attempts<P> {
    /// One exchange; `None` when it was abandoned.
    pub(super) async fn exchange_or_abandon(
        &self,
        request: &Request,
        attempt: &Attempt<'_, '_>,
        of: &Invocation<'_>,
    ) -> Option<Exchange> {
        let done = {
            // Pinned here: as an argument the future would be stored twice. It ends here too, so that an abandoned exchange holds
            // no connection while its deliveries are sent.
            let work = pin!(self.ports.http().exchange(request));
            self.done_or_left(work, request.timeout_ms, attempt, of).await
        };
        match done {
            Waited::Done(exchange) => Some(*exchange),
            Waited::Left(left) => {
                // Boxed: it is rare, and would enlarge the future of every attempt.
                async {
                    self.leave(&left, attempt.passage, of).await;
                    self.news.share_health(of).await;
                }
                .boxed()
                .await;
                None
            }
        }
    }

    /// The result of `work`, or the deliveries for the lane once the attempt is abandoned.
    async fn done_or_left(
        &self,
        mut work: impl Future<Output = Exchange> + Unpin,
        timeout_ms: u64,
        attempt: &Attempt<'_, '_>,
        of: &Invocation<'_>,
    ) -> Waited {
        let Attempt { passage, due, .. } = attempt;
        let started_ms = self.ports.now_ms();
        let slow_after_ms = passage.subscription.destination.slow_after_ms;
        let is_slow_first = slow_after_ms < timeout_ms;
        let may_move = self.slow_lane.may_move(of.queue, due.len(), started_ms);
        tokio::select! {
            biased;
            done = &mut work => return Waited::Done(Box::new(done)),
            () = self.ports.sleep(slow_after_ms), if may_move && is_slow_first => {}
        }
        let Some(abandoned) = abandoned(due) else { return Waited::Done(Box::new(work.await)) };
        // While other work is under way, waiting for the response delays nothing.
        let _pause = of.active_work.pause();
        tokio::select! {
            biased;
            done = &mut work => return Waited::Done(Box::new(done)),
            () = of.active_work.none_left() => {}
        }
        match self.destinations.abandon(passage, started_ms) {
            true => Waited::Left(abandoned),
            // Only the invocation itself waits for these.
            false => Waited::Done(Box::new(work.await)),
        }
    }

    /// Sends deliveries of an abandoned attempt to the lane. The attempt does not count.
    async fn leave(&self, due: &[InFlightDelivery], passage: &Passage, of: &Invocation<'_>) {
        // All of them first: a panic after this line is not one of an attempt.
        due.iter().for_each(|one| of.progress.keep(one, Stage::Waiting));
        let slow_after_ms = passage.subscription.destination.slow_after_ms;
        due.iter().for_each(|one| self.telemetry.abandoned(&one.delivery, slow_after_ms));
        join_all(due.iter().map(|one| self.endings.requeue(of, one, QueueName::Slow, 0))).await;
    }
}

/// The deliveries after their attempt was abandoned. `None` if one of them does not fit a message, and so has to be attempted
/// here, or was abandoned before.
fn abandoned(due: &[InFlightDelivery]) -> Option<Vec<InFlightDelivery>> {
    let abandon = |one: &InFlightDelivery| {
        let delivery = Box::new(Delivery { abandoned: true, ..(*one.delivery).clone() });
        let subscription = Arc::clone(&one.subscription);
        let can_move = !one.delivery.abandoned && fits_a_message(&delivery);
        can_move.then_some(InFlightDelivery { id: one.id, subscription, delivery })
    };
    due.iter().map(abandon).collect()
}
