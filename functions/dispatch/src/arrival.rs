//! Which deliveries of a group may be attempted now.

use adapters::telemetry::{self, HoldReason};
use delivery::delivery::reason::Reason;
use delivery::machine::step::{self, Arrival, End};
use delivery::ports::{DispatchPorts, QueueName};
use delivery::subscription::{Disabled, Subscription};
use futures::FutureExt as _;
use futures::future::join_all;

use crate::dispatch::{Dispatch, Invocation};
use crate::memory::permits::UsedPermit;
use crate::progress::{InFlightDelivery, Unfinished};

/// Deliveries that have arrived.
#[derive(Default)]
pub(crate) struct Arrived {
    /// To be attempted now.
    pub(crate) due: Vec<InFlightDelivery>,
    /// To be attempted after a short wait in place.
    pub(crate) soon: Vec<InFlightDelivery>,
    /// The permit for the request, where processes share them; returned when this is dropped.
    permit: Option<UsedPermit>,
}

impl Arrived {
    /// True if processes share the requests at once, and this one may make its own.
    pub(crate) fn has_permit(&self) -> bool {
        self.permit.is_some()
    }

    /// When the request has to have ended, because its permit does.
    pub(crate) fn until_ms(&self) -> u64 {
        self.permit.as_ref().map_or(u64::MAX, UsedPermit::until_ms)
    }
}

impl<P: DispatchPorts> Dispatch<P> {
    /// Decides for each delivery whether it may be attempted now. What is neither due nor due soon
    /// is re-enqueued or ended.
    pub(crate) async fn sort_arrivals(
        &self,
        waiting: Vec<InFlightDelivery>,
        subscription: &Subscription,
        in_place_ms: u64,
        of: &Invocation<'_>,
    ) -> Arrived {
        let (mut arrived, mut leaving, mut slow) = (Arrived::default(), Vec::new(), Vec::new());
        let may_move = self.health.may_move(of.queue, waiting.len(), self.ports.now_ms());
        for mut in_flight in waiting {
            let now_ms = self.ports.now_ms();
            let end = match step::arrive(&in_flight.delivery, subscription, now_ms) {
                Arrival::Attempt => {
                    let moves = may_move && self.health.should_move(&in_flight, now_ms);
                    match self.defer_or_end(&mut in_flight, moves, of).await {
                        Some(end) => end,
                        None => {
                            if moves { &mut slow } else { &mut arrived.due }.push(in_flight);
                            continue;
                        }
                    }
                }
                Arrival::NotDue { wait_ms } if wait_ms < in_place_ms => {
                    arrived.soon.push(in_flight);
                    continue;
                }
                Arrival::NotDue { wait_ms } => End::Retry { wait_ms },
                Arrival::Paused { wait_ms } => hold(&mut in_flight, HoldReason::Paused, wait_ms),
                Arrival::Forward(to) => {
                    self.forward(of, &in_flight, &to).boxed().await;
                    continue;
                }
                Arrival::Expired(reason) => {
                    step::end_without_success(&in_flight.delivery, subscription, reason, now_ms)
                }
            };
            leaving.push(Unfinished { in_flight, end });
        }
        // Before the consent is looked at: a validation may take as long as an attempt.
        self.finish_all(of, leaving).await;
        self.move_to_slow_lane(slow, of).await;
        arrived.due = self.check_consent(arrived.due, subscription, of).await;
        arrived.due = self.take_slot(arrived.due, subscription, of).await;
        (arrived.due, arrived.permit) = self.use_permit(arrived.due, subscription, of).await;
        self.leave_alone(&mut arrived, of).await;
        arrived
    }

    /// What happens to a delivery that is due but must not be attempted, because its destination is
    /// disabled, asked to be left alone, or is on probation.
    async fn defer_or_end(
        &self,
        in_flight: &mut InFlightDelivery,
        moves: bool,
        of: &Invocation<'_>,
    ) -> Option<End> {
        match self.disabled(in_flight, of.deadline).await {
            Some(Disabled::Hold) => {
                Some(hold(in_flight, HoldReason::Disabled, step::PAUSED_WAIT_MS))
            }
            Some(Disabled::DeadLetter) => {
                let InFlightDelivery { delivery, subscription, .. } = in_flight;
                let (reason, now_ms) = (Reason::DestinationDisabled, self.ports.now_ms());
                Some(step::end_without_success(delivery, subscription, reason, now_ms))
            }
            None => {
                let wait_ms = match self.left_alone_ms(in_flight, of) {
                    Some(wait_ms) => wait_ms,
                    // Asked last: it may admit the only probe, which nothing else may use up.
                    None => self.defer(in_flight, moves, of).await?,
                };
                Some(End::Retry { wait_ms })
            }
        }
    }

    /// Re-enqueues what waited for its turn while its destination asked to be left alone.
    async fn leave_alone(&self, arrived: &mut Arrived, of: &Invocation<'_>) {
        let wait_ms = arrived.due.iter().filter_map(|one| self.left_alone_ms(one, of)).max();
        let Some(wait_ms) = wait_ms else { return };
        arrived.permit = None;
        // Admitted on arrival but not sent: another delivery has to be able to probe.
        if let Some(one) = arrived.due.first() {
            self.health.release(&one.subscription, &arrived.due);
        }
        let leave = |in_flight| Unfinished { in_flight, end: End::Retry { wait_ms } };
        let leaving = std::mem::take(&mut arrived.due).into_iter().map(leave).collect();
        self.finish_all(of, leaving).boxed().await;
    }

    /// Sends deliveries to the lane without an attempt.
    async fn move_to_slow_lane(&self, due: Vec<InFlightDelivery>, of: &Invocation<'_>) {
        if due.is_empty() {
            return;
        }
        let moved = due.iter().map(|in_flight| {
            telemetry::held(&in_flight.delivery, HoldReason::Slow, 0);
            self.requeue(of, in_flight, QueueName::Slow, 0)
        });
        join_all(moved).boxed().await;
    }
}

/// Holds a delivery: no attempt, and it is not older for it.
fn hold(in_flight: &mut InFlightDelivery, why: HoldReason, wait_ms: u64) -> End {
    in_flight.delivery.hold_for(wait_ms);
    telemetry::held(&in_flight.delivery, why, wait_ms);
    End::Retry { wait_ms }
}
