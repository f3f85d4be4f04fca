//! Waits for late responses. If the subscription has a `lateResponseWindow`, a request that has
//! timed out stays open for a while.
//!
//! Separate because a late response does not change the settled attempt, which has failed. The
//! decision on the delivery is executed only after the first of:
//! - a response
//! - the time at which the retry is due
//! - the end of the window
//! - ten seconds after all other work of the invocation has ended
//! - the deadline of the invocation
//!
//! A late success ends the delivery, and no retry is sent. This is best effort, as in Event Grid's
//! "message delivery and retry".

use adapters::telemetry;
use delivery::delivery::outcome::{Exchange, Outcome};
use delivery::machine::reply;
use delivery::machine::step::End;
use delivery::ports::{DispatchPorts, Late};
use delivery::subscription::Subscription;

use crate::endings::Endings;
use crate::invocation::Invocation;
use crate::progress::{Stage, Unfinished};

/// Maximum wait for a late response after all other work has ended.
const AFTER_OTHER_WORK_MS: u64 = 10_000;

impl<P: DispatchPorts> Endings<P> {
    /// Waits for a late response to these deliveries. Without a late success, executes the
    /// decisions on them.
    pub(crate) async fn finish_late(
        &self,
        unfinished: Vec<Unfinished>,
        subscription: &Subscription,
        late: Late,
        invocation: &Invocation<'_>,
    ) {
        // Keep the deliveries as settled: if this wait is interrupted, they are re-enqueued, and
        // their attempt does not count as aborted.
        unfinished
            .iter()
            .for_each(|member| invocation.progress.keep(&member.in_flight, Stage::Waiting));
        // Two groups that wait for late responses must not wait for each other.
        let pause = invocation.active_work.pause();
        let answer = match invocation.active_work.open() {
            Some(_open) => self.late_answer(&unfinished, subscription, late, invocation).await,
            None => None,
        };
        // From here on this group sends messages, which counts as work.
        drop(pause);
        let success =
            answer.filter(|exchange| exchange.outcome(&subscription.retry) == Outcome::Success);
        let now_ms = self.ports.now_ms();
        let Some(exchange) = success else {
            let unfinished =
                unfinished.into_iter().map(|member| member.with_rest_of_wait(now_ms)).collect();
            return self.finish_all(invocation, unfinished).await;
        };
        let delivered = unfinished.into_iter().map(|Unfinished { in_flight, .. }| {
            let delivery = &in_flight.delivery;
            telemetry::late(delivery, &exchange);
            let follow_ups =
                reply::follow_ups(delivery, subscription, &exchange, &invocation.catalogue, now_ms);
            (in_flight, follow_ups)
        });
        self.finish_delivered(delivered.collect(), invocation).await;
    }

    async fn late_answer(
        &self,
        unfinished: &[Unfinished],
        subscription: &Subscription,
        late: Late,
        invocation: &Invocation<'_>,
    ) -> Option<Exchange> {
        let now_ms = self.ports.now_ms();
        let window_ends_ms = now_ms.saturating_add(subscription.destination.late_window_ms);
        let retries = unfinished.iter().filter(|member| matches!(member.end, End::Retry { .. }));
        // The earliest retry of a batch limits the wait for all, so that no retry is late.
        let retry_ms =
            retries.map(|member| member.in_flight.delivery.due_ms).min().unwrap_or(u64::MAX);
        let until_ms = window_ends_ms.min(retry_ms).min(invocation.deadline.stops_ms());
        let other_work_done = async {
            invocation.active_work.none_left().await;
            self.ports.sleep(AFTER_OTHER_WORK_MS).await;
        };
        tokio::select! {
            // A response wins over a timer that ends at the same moment.
            biased;
            answer = late => Some(answer),
            () = self.ports.sleep(until_ms.saturating_sub(now_ms)) => None,
            () = other_work_done => None,
        }
    }
}
