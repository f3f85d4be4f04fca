//! Re-enqueues, forwards or ends deliveries, as the gates have answered. No other module
//! re-enqueues or ends a delivery because of a gate.

use delivery::delivery::WaitReason;
use delivery::machine::step::{self, End};
use delivery::ports::{DispatchPorts, QueueName};
use futures::FutureExt as _;
use futures::future::join_all;

use crate::destination::{Answer, Passage};
use crate::dispatch::Dispatch;
use crate::invocation::Invocation;
use crate::progress::{InFlightDelivery, Unfinished};

impl<P: DispatchPorts> Dispatch<P> {
    /// Re-enqueues or ends the deliveries that a gate refused. Returns the deliveries that wait in
    /// place, each for less than `in_place_ms`.
    pub(crate) async fn carry_out(
        &self,
        refused: Vec<(InFlightDelivery, Answer)>,
        passage: &Passage,
        in_place_ms: u64,
        invocation: &Invocation<'_>,
    ) -> Vec<InFlightDelivery> {
        let (mut soon, mut leaving, mut slow) = (Vec::new(), Vec::new(), Vec::new());
        let (subscription, now_ms) = (&*passage.subscription, self.ports.now_ms());
        for (mut in_flight, answer) in refused {
            passage.note_failing(&mut in_flight);
            match answer {
                Answer::Open => soon.push(in_flight),
                Answer::Wait { until_ms, why } => {
                    in_flight.delivery.wait(why, now_ms, until_ms);
                    let wait_ms = until_ms.saturating_sub(now_ms);
                    if waits_in_place(why, wait_ms, in_place_ms) {
                        soon.push(in_flight);
                        continue;
                    }
                    if in_flight.delivery.is_news(why) {
                        self.telemetry.held(&in_flight.delivery, why, wait_ms, now_ms);
                    }
                    leaving.push(Unfinished { in_flight, end: End::Retry { wait_ms } });
                }
                Answer::Slow => slow.push(in_flight),
                Answer::End { reason } => {
                    let end = step::end_without_success(
                        &in_flight.delivery,
                        subscription,
                        reason,
                        now_ms,
                    );
                    leaving.push(Unfinished { in_flight, end });
                }
            }
        }
        self.endings.finish_all(invocation, leaving).await;
        self.move_to_slow_lane(slow, invocation).await;
        soon
    }

    /// Sends deliveries to the slow queue without an attempt.
    async fn move_to_slow_lane(&self, slow: Vec<InFlightDelivery>, invocation: &Invocation<'_>) {
        if slow.is_empty() {
            return;
        }
        let moved = slow.iter().map(|in_flight| {
            self.telemetry.held(&in_flight.delivery, WaitReason::Slow, 0, self.ports.now_ms());
            self.endings.requeue(invocation, in_flight, QueueName::Slow, 0)
        });
        join_all(moved).boxed().await;
    }

    /// Publishes the events of deliveries whose destination is a topic.
    pub(crate) async fn forward_all(
        &self,
        due: Vec<InFlightDelivery>,
        invocation: &Invocation<'_>,
    ) {
        for in_flight in due {
            let topic = in_flight.delivery.target.topic(&in_flight.subscription);
            let Some(topic) = topic else { continue };
            self.endings.forward(invocation, &in_flight, &topic).boxed().await;
        }
    }
}

/// True if the delivery waits in place. A short wait in place costs less than a message.
fn waits_in_place(why: WaitReason, wait_ms: u64, in_place_ms: u64) -> bool {
    match why {
        WaitReason::Scheduled
        | WaitReason::NotDue
        | WaitReason::RetryAfter
        | WaitReason::Probation => wait_ms < in_place_ms,
        // Includes the limit itself: at one request a second, the next slot is exactly one second
        // away.
        WaitReason::Slot => wait_ms <= in_place_ms,
        // These gates have already waited in place, or are asked again only later.
        WaitReason::Slow
        | WaitReason::InFlight
        | WaitReason::Consent
        | WaitReason::ConsentRate
        | WaitReason::NoSlot
        | WaitReason::Away
        | WaitReason::Turn
        | WaitReason::NoTurn
        | WaitReason::Time => false,
    }
}
