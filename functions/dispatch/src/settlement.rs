//! Decides the next step of each delivery of a group from their exchange.

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
    /// Delivered, with the messages that follow from the response.
    pub(crate) delivered: Vec<(InFlightDelivery, Vec<FollowUp>)>,
    /// Waits in place for the next attempt.
    pub(crate) retry_in_place: Vec<InFlightDelivery>,
    /// Ended without success, or to be re-enqueued. A late response may still replace these ends.
    pub(crate) ended: Vec<Unfinished>,
}

impl<P: DispatchPorts> Endings<P> {
    /// Records the exchange in each delivery and decides its next step. A retry within
    /// `in_place_ms` waits in place.
    pub(crate) fn settle_group(
        &self,
        due: Vec<InFlightDelivery>,
        subscription: &Subscription,
        exchange: &Exchange,
        in_place_ms: u64,
        of: &Invocation<'_>,
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
                    of.progress.keep(&in_flight, Stage::Waiting);
                    settlement.retry_in_place.push(in_flight);
                }
                End::Done => {
                    let (delivery, catalogue) = (&in_flight.delivery, &of.catalogue);
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
