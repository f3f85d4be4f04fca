//! Decides the next step of each delivery in a group, after the exchange that the group shares.

use delivery::delivery::Batching;
use delivery::delivery::outcome::Exchange;
use delivery::machine::follow_up::FollowUp;
use delivery::machine::reply;
use delivery::machine::step::{self, End};
use delivery::ports::DispatchPorts;
use delivery::subscription::Subscription;

use crate::endings::Endings;
use crate::invocation::Invocation;
use crate::progress::{InFlightDelivery, Stage, Unfinished};

/// The deliveries of a group, by their next step.
#[derive(Default)]
pub(crate) struct Settlement {
    /// Deliveries that succeeded, each with the messages that follow from the response.
    pub(crate) delivered: Vec<(InFlightDelivery, Vec<FollowUp>)>,
    /// Deliveries that wait in place for their next attempt.
    pub(crate) retry_in_place: Vec<InFlightDelivery>,
    /// Deliveries that failed for good or are to be re-enqueued. A late response may still change
    /// the decision.
    pub(crate) ended: Vec<Unfinished>,
}

impl<P: DispatchPorts> Endings<P> {
    /// Records the exchange in each delivery and decides its next step. A delivery waits in place
    /// if its retry is due within `in_place_ms`.
    pub(crate) fn settle_group(
        &self,
        due: Vec<InFlightDelivery>,
        subscription: &Subscription,
        exchange: &Exchange,
        in_place_ms: u64,
        invocation: &Invocation<'_>,
    ) -> Settlement {
        // A response to one event is about that event, even if its subscription batches.
        let settle_one = if due.len() > 1 { step::settle_batched } else { step::settle };
        let mut settlement = Settlement::default();
        for mut in_flight in due {
            let (now_ms, jitter) = (self.ports.now_ms(), self.ports.next_jitter());
            let settled =
                settle_one(&mut in_flight.delivery, subscription, exchange, now_ms, jitter);
            self.telemetry.attempted(&in_flight.delivery, subscription, exchange, &settled);
            match settled.end {
                // A refused batch is spread over the queue. In place, its events would share one
                // permit.
                End::Retry { wait_ms }
                    if wait_ms < in_place_ms
                        && in_flight.delivery.batching != Batching::RetryAlone =>
                {
                    invocation.progress.keep(&in_flight, Stage::Waiting);
                    settlement.retry_in_place.push(in_flight);
                }
                End::Done => {
                    let (delivery, catalogue) = (&in_flight.delivery, &invocation.catalogue);
                    let follow_ups =
                        reply::follow_ups(delivery, subscription, exchange, catalogue, now_ms);
                    settlement.delivered.push((in_flight, follow_ups));
                }
                end @ (End::Retry { .. } | End::DeadLetter(_) | End::ToSink(_) | End::Drop(_)) => {
                    settlement.ended.push(Unfinished { in_flight, end });
                }
            }
        }
        settlement
    }
}
