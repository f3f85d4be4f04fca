//! A destination that shows that it has too much to do gets fewer requests at once from this process, and
//! none while it asks to be left alone.
//!
//! The rules are `delivery::delivery::health::adaptive` and `retry_after`. A delivery that gets no permit
//! soon is re-enqueued, so that it does not hold its invocation up; what its destination asked to wait is
//! re-enqueued until then. Neither is an attempt, and the time to live continues.

use std::future::pending;

use adapters::telemetry::{self, HoldReason};
use delivery::delivery::Hold;
use delivery::delivery::outcome::{Exchange, Outcome, requested_wait_ms};
use delivery::machine::step::{self, Arrival, End, Group};
use delivery::ports::DispatchPorts;
use delivery::subscription::Subscription;
use delivery::time::duration::SECOND_MS;
use futures::FutureExt as _;

use super::can_wait;
use crate::dispatch::{Dispatch, Invocation};
use crate::limits::Permit;
use crate::memory::health::{are_to_destination, key_of};
use crate::message::APART_MAX;
use crate::progress::{InFlightDelivery, Unfinished};

/// The longest wait of a delivery that got no permit.
const WAIT_MAX_S: u32 = 30;

impl<P: DispatchPorts> Dispatch<P> {
    /// Waits for a permit to make the request of this group. `None` if it got none in time because its
    /// destination has too much to do: then it was re-enqueued.
    pub(crate) async fn acquire_permit(
        &self,
        group: Group<InFlightDelivery>,
        of: &Invocation<'_>,
    ) -> Option<(Group<InFlightDelivery>, Permit)> {
        let Group { subscription, members } = &group;
        let bytes = members.iter().map(|one| one.delivery.event.text().len()).sum();
        // Slow destinations are not waited for only because others wait for their turn.
        let pause = of.active_work.pause();
        // Replies and sinks have other addresses.
        let of_destination = async {
            if !are_to_destination(members) {
                return None;
            }
            tokio::select! {
                biased;
                permit = of.limits.adaptive.acquire(subscription, &self.adaptive) => permit,
                // One request more than it takes is better than a dead letter.
                () = self.waited_for_turn(&group, false, of) => None,
            }
        };
        let permit = tokio::select! {
            biased;
            permit = of.limits.acquire(subscription, bytes, of_destination) => Some(permit),
            () = self.waited_for_turn(&group, true, of) => None,
        };
        drop(pause);
        if let Some(permit) = permit {
            return Some((group, permit));
        }
        // Boxed: it is rare, and would enlarge the future of every delivery.
        self.leave_turn(group, of).boxed().await;
        None
    }

    /// Waits for as long as these deliveries wait for a permit in place, from the time on when their
    /// destination was found to have too much to do. For ever if they cannot be re-enqueued and should be,
    /// or the other way round.
    async fn waited_for_turn(
        &self,
        group: &Group<InFlightDelivery>,
        can_leave: bool,
        of: &Invocation<'_>,
    ) {
        let Group { subscription, members } = group;
        if !are_to_destination(members) {
            return pending().await;
        }
        of.limits.adaptive.limited(subscription, &self.adaptive).await;
        if can_leave != (members.len() <= APART_MAX && can_wait(members, of)) {
            return pending().await;
        }
        let left_ms = of.deadline.stops_ms().saturating_sub(self.ports.now_ms());
        self.ports.sleep(subscription.destination.slow_after_ms.min(left_ms)).await;
    }

    /// Re-enqueues deliveries that got no permit.
    async fn leave_turn(&self, group: Group<InFlightDelivery>, of: &Invocation<'_>) {
        let Group { subscription, members } = group;
        let now_ms = self.ports.now_ms();
        let leave = |in_flight: InFlightDelivery| match step::arrive(
            &in_flight.delivery,
            &subscription,
            now_ms,
        ) {
            // Not for a turn: that it waits has another reason.
            Arrival::NotDue { wait_ms } => Unfinished { in_flight, end: End::Retry { wait_ms } },
            Arrival::Paused { .. }
            | Arrival::Expired(_)
            | Arrival::Forward(_)
            | Arrival::Attempt => without_turn(in_flight),
        };
        self.finish_all(of, members.into_iter().map(leave).collect()).await;
    }

    /// Until when a due delivery waits because its destination asked to be left alone, in milliseconds from
    /// now.
    pub(crate) fn left_alone_ms(
        &self,
        in_flight: &InFlightDelivery,
        of: &Invocation<'_>,
    ) -> Option<u64> {
        let InFlightDelivery { delivery, subscription, .. } = in_flight;
        let now_ms = self.ports.now_ms();
        let until_ms = self.adaptive.left_alone_until_ms(subscription, now_ms)?;
        let due = std::slice::from_ref(in_flight);
        if !are_to_destination(due) || !can_wait(due, of) {
            return None;
        }
        let wait_ms = until_ms.saturating_sub(now_ms);
        telemetry::held(delivery, HoldReason::RetryAfter, wait_ms);
        Some(wait_ms)
    }

    /// Takes into account how much its destination had to do, by what an attempt brought.
    pub(crate) fn note_load(
        &self,
        subscription: &Subscription,
        due: &[InFlightDelivery],
        exchange: &Exchange,
        of: &Invocation<'_>,
    ) {
        let outcome = exchange.outcome(&subscription.retry);
        let is_too_much = matches!(outcome, Outcome::Busy | Outcome::TimedOut);
        // Nearly always: then no address is hashed.
        if !is_too_much && self.adaptive.is_empty() && !of.limits.are_many_under_way(subscription) {
            return;
        }
        if !are_to_destination(due) {
            return;
        }
        of.limits.note(subscription, exchange, &self.adaptive);
        let wait_ms = requested_wait_ms(&subscription.retry, exchange);
        if wait_ms > 0 {
            self.adaptive.note_wait(&key_of(subscription), exchange.ended_ms(), wait_ms);
        }
    }
}

/// A delivery that waits as a message: a second longer each time.
fn without_turn(mut in_flight: InFlightDelivery) -> Unfinished {
    let hold = in_flight.delivery.hold;
    let turns = hold.turns.saturating_add(1);
    let wait_ms = u64::from(turns.min(WAIT_MAX_S)) * SECOND_MS;
    in_flight.delivery.hold = Hold { turns, ..hold };
    telemetry::held(&in_flight.delivery, HoldReason::Concurrency, wait_ms);
    Unfinished { in_flight, end: End::Retry { wait_ms } }
}
