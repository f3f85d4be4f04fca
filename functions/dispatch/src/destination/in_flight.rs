//! Limits the concurrent requests of this process, per destination and in total.
//!
//! A request needs a slot of its destination and one of the process-wide total. A destination that
//! hangs uses up only its own slots: a delivery that waits there holds no slot of the total. An
//! overloaded destination gets fewer slots (`health::adaptive`). A delivery that gets no slot of an
//! overloaded destination is soon re-enqueued, so that it does not block its invocation.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use delivery::delivery::WaitReason;
use delivery::delivery::health::adaptive::Observed;
use delivery::delivery::outcome::Exchange;
use delivery::ports::DispatchPorts;
use delivery::subscription::Subscription;
use delivery::waits;
use futures::FutureExt as _;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::answer::Answer;
use super::gates::{unless_open, wait};
use super::known::{Destination, State};
use super::passage::Passage;
use super::{Destinations, can_wait};
use crate::invocation::Invocation;
use crate::message::APART_MAX;
use crate::progress::InFlightDelivery;

/// Maximum number of concurrent requests of one process to all destinations. Each request is an
/// open socket, and a function has 1,024 file descriptors. Idle connections use some of them for a
/// while (`adapters::http`). If a process fills this limit ten times in quick succession, it may
/// run out of descriptors. New connections then fail, and the retry policy applies.
/// <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const REQUESTS_AT_ONCE: usize = 500;
/// A request takes one more slot for each 64 KiB of events, so that the events of all concurrent
/// requests stay below 32 MiB.
const BYTES_OF_A_REQUEST: usize = 64 * 1_024;

/// The slots of this process for requests to all destinations.
#[derive(Debug, Clone)]
pub(super) struct TotalRoom(Arc<Semaphore>);

impl Default for TotalRoom {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(REQUESTS_AT_ONCE)))
    }
}

impl TotalRoom {
    /// Waits for enough free slots for a request with `bytes` bytes of events.
    async fn enter(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let requests = (1 + bytes / BYTES_OF_A_REQUEST).min(REQUESTS_AT_ONCE);
        let requests = u32::try_from(requests).unwrap_or(u32::MAX);
        // The semaphore is never closed. If it were, requests would be unlimited.
        Arc::clone(&self.0).acquire_many_owned(requests).await.ok()
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.available_permits() == 0
    }
}

/// The slots of one destination in this process.
#[derive(Debug)]
pub(super) struct InFlight {
    room: Arc<Semaphore>,
    size: Mutex<Size>,
    /// Notifies waiting deliveries when the limit changes.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Size {
    /// Highest configured limit of all subscriptions of the destination.
    ceiling: u32,
    /// Current limit: the ceiling, or less while the destination is overloaded.
    limit: u32,
    in_use: u32,
    /// Number of requests in flight above the limit. When they end, their slots are not reused.
    above: u32,
}

impl Default for InFlight {
    fn default() -> Self {
        Self { room: Arc::new(Semaphore::new(0)), size: Mutex::default(), changed: Notify::new() }
    }
}

impl InFlight {
    fn size(&self) -> MutexGuard<'_, Size> {
        self.size.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Raises the ceiling to `ceiling`, the limit of a subscription.
    fn raise_ceiling(&self, ceiling: u32) {
        let mut size = self.size();
        if ceiling > size.ceiling {
            let is_whole = size.limit == size.ceiling;
            size.ceiling = ceiling;
            if is_whole {
                self.set_limit(&mut size, ceiling);
            }
        }
    }

    /// Sets the current limit; `None` resets it to the ceiling.
    fn limit_to(&self, limit: Option<u32>) {
        let mut size = self.size();
        let limit = limit.map_or(size.ceiling, |limit| limit.min(size.ceiling));
        if limit != size.limit {
            self.set_limit(&mut size, limit);
            self.changed.notify_waiters();
        }
    }

    fn set_limit(&self, size: &mut Size, limit: u32) {
        let added = limit.saturating_sub(size.limit);
        let removed = size.limit.saturating_sub(limit);
        let returned = added.min(size.above);
        size.above -= returned;
        self.room.add_permits((added - returned) as usize);
        let forgotten = self.room.forget_permits(removed as usize);
        size.above += removed - u32::try_from(forgotten).unwrap_or(removed);
        size.limit = limit;
    }

    fn is_limited(&self) -> bool {
        let size = self.size();
        size.limit < size.ceiling
    }

    fn in_use(&self) -> u32 {
        self.size().in_use
    }

    /// Waits until the destination is overloaded.
    async fn limited(&self) {
        loop {
            // Register before reading the limit (see `Notify::notified`), or a change is lost.
            let changed = self.changed.notified();
            if self.is_limited() {
                return;
            }
            changed.await;
        }
    }
}

/// The slots that a request holds: one of its destination, and at least one of the process-wide
/// total. Dropping the value frees them.
#[derive(Debug)]
pub(crate) struct InFlightPermits {
    _of_total: Option<OwnedSemaphorePermit>,
    _of_destination: Option<Room>,
}

/// The slot that one request holds at its destination.
#[derive(Debug)]
struct Room {
    in_flight: Arc<InFlight>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Room {
    async fn enter(in_flight: &Arc<InFlight>) -> Self {
        let permit = Arc::clone(&in_flight.room).acquire_owned().await.ok();
        in_flight.size().in_use += 1;
        Self { in_flight: Arc::clone(in_flight), permit }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut size = self.in_flight.size();
        size.in_use = size.in_use.saturating_sub(1);
        if size.above > 0 {
            size.above -= 1;
            self.permit.take().into_iter().for_each(OwnedSemaphorePermit::forget);
        }
    }
}

impl<P: DispatchPorts> Destinations<P> {
    /// Waits for a slot in this process. If the destination is overloaded, a delivery that gets no
    /// slot in time is re-enqueued.
    pub(super) async fn enter(
        &self,
        due: &[InFlightDelivery],
        passage: &mut Passage,
        invocation: &Invocation<'_>,
    ) -> Option<Vec<Answer>> {
        if passage.in_flight.is_some() {
            return None;
        }
        let in_flight = Arc::clone(in_flight_of(passage));
        in_flight.raise_ceiling(most_at_once(passage));
        let bytes = due.iter().map(|entering| entering.delivery.event.text().len()).sum();
        // Most requests find a free slot immediately, so they skip the check that their deliveries
        // fit a message.
        passage.in_flight = self.permits(&in_flight, bytes).now_or_never();
        if passage.in_flight.is_some() {
            return None;
        }
        self.wait_for_room(&in_flight, bytes, due, passage, invocation).boxed().await
    }

    /// Waits for a slot of the destination, then for slots of the total. In the opposite order, a
    /// destination that hangs would hold slots of the total.
    async fn permits(&self, in_flight: &Arc<InFlight>, bytes: usize) -> InFlightPermits {
        let of_destination = Some(Room::enter(in_flight).await);
        InFlightPermits {
            _of_total: self.total.enter(bytes).await,
            _of_destination: of_destination,
        }
    }

    async fn wait_for_room(
        &self,
        in_flight: &Arc<InFlight>,
        bytes: usize,
        due: &[InFlightDelivery],
        passage: &mut Passage,
        invocation: &Invocation<'_>,
    ) -> Option<Vec<Answer>> {
        let can_leave = due.len() <= APART_MAX && can_wait(due, invocation);
        // A slow destination must not delay the invocation only because other deliveries wait for
        // its slots.
        let pause = invocation.active_work.pause();
        let patience = self.patience(passage, invocation);
        let entered = tokio::select! {
            biased;
            permits = self.permits(in_flight, bytes) => Some(permits),
            () = patience => None,
        };
        passage.in_flight = match entered {
            // Exceeding the limit by one request is better than a dead letter.
            None if !can_leave => {
                let of_total = self.total.enter(bytes).await;
                Some(InFlightPermits { _of_total: of_total, _of_destination: None })
            }
            entered => entered,
        };
        drop(pause);
        match passage.in_flight {
            Some(_) => None,
            None => unless_open(due.iter().map(|refused| without_room(refused, self.now_ms()))),
        }
    }

    /// Completes when a delivery must stop waiting in place for a slot. The time limit starts when
    /// the destination becomes overloaded.
    async fn patience(&self, passage: &Passage, invocation: &Invocation<'_>) {
        in_flight_of(passage).limited().await;
        let left_ms = invocation.deadline.stops_ms().saturating_sub(self.now_ms());
        let slow_after_ms = passage.subscription.destination.slow_after_ms;
        self.ports.sleep(slow_after_ms.min(left_ms)).await;
    }
}

/// Returns the answer for a delivery that got no slot: a wait that is one second longer each time.
fn without_room(refused: &InFlightDelivery, now_ms: u64) -> Answer {
    let delivery = &refused.delivery;
    if now_ms < delivery.due_ms {
        return wait(delivery.due_ms - now_ms, delivery.why_not_due(now_ms), now_ms);
    }
    let wait_ms = waits::no_time_ms(delivery.hold.turns.saturating_add(1));
    wait(wait_ms, WaitReason::InFlight, now_ms)
}

impl Destination {
    /// Adapts the number of slots to the result of an attempt.
    pub(super) fn note_load(
        &self,
        state: &mut State,
        subscription: &Subscription,
        exchange: &Exchange,
    ) {
        let outcome = exchange.outcome(&subscription.retry);
        let (started_ms, ended_ms) = (exchange.started_ms, exchange.ended_ms());
        let ceiling = ceiling_of(subscription);
        let under_way = self.in_flight.in_use().saturating_add(self.counted.in_use());
        state.adaptive.note(Observed { outcome, started_ms, ended_ms, under_way, ceiling });
        // Not limited to the ceiling of this subscription, because all subscriptions share the
        // slots.
        let limit = state.adaptive.limit(u32::MAX);
        self.in_flight.limit_to(limit);
        self.counted.limit_to(limit);
    }
}

/// Returns the maximum number of concurrent requests of a subscription. At least one; otherwise its
/// deliveries would wait for ever.
fn ceiling_of(subscription: &Subscription) -> u32 {
    subscription.destination.max_concurrency.most.max(1)
}

/// Returns the slots that apply to this request. Requests that need a permit of the table use
/// separate slots, of which there are more.
fn in_flight_of(passage: &Passage) -> &Arc<InFlight> {
    let is_counted = passage.is_own && passage.subscription.destination.max_concurrency.is_shared;
    if is_counted { &passage.destination.counted } else { &passage.destination.in_flight }
}

/// Returns the maximum number of concurrent requests of this process. If the table enforces a
/// shared limit, the local limit is large, so that all waiting deliveries share one request to the
/// table.
fn most_at_once(passage: &Passage) -> u32 {
    let concurrency = passage.subscription.destination.max_concurrency;
    match (passage.is_own, concurrency.is_shared) {
        (true, false) => ceiling_of(&passage.subscription),
        (true, true) => u32::try_from(REQUESTS_AT_ONCE).unwrap_or(u32::MAX),
        (false, _) => delivery::subscription::Concurrency::DEFAULT.most,
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Waker};

    use proptest::prelude::*;

    use super::*;

    /// Creates slots for `ceiling` requests.
    fn room_for(ceiling: u32) -> Arc<InFlight> {
        let in_flight = Arc::new(InFlight::default());
        in_flight.raise_ceiling(ceiling);
        in_flight
    }

    /// Takes all free slots.
    fn entered(in_flight: &Arc<InFlight>) -> Vec<Room> {
        std::iter::from_fn(|| Room::enter(in_flight).now_or_never()).collect()
    }

    #[test]
    fn a_destination_has_room_up_to_the_highest_ceiling_of_its_subscriptions() {
        let in_flight = room_for(2);
        let rooms = entered(&in_flight);
        assert_eq!((rooms.len(), in_flight.in_use()), (2, 2));
        in_flight.raise_ceiling(3);
        in_flight.raise_ceiling(1);
        assert_eq!(entered(&in_flight).len(), 1);
        drop(rooms);
        assert_eq!(entered(&in_flight).len(), 3);
        assert_eq!(in_flight.in_use(), 0);
    }

    #[test]
    fn a_lower_limit_counts_as_soon_as_requests_end_and_a_higher_one_at_once() {
        let in_flight = room_for(4);
        let mut rooms = entered(&in_flight);
        in_flight.limit_to(Some(1));
        for left in (0..4).rev() {
            rooms.pop();
            assert_eq!(entered(&in_flight).len(), usize::from(left == 0), "{left}");
        }
        in_flight.limit_to(Some(3));
        assert_eq!(entered(&in_flight).len(), 3);
        in_flight.limit_to(None);
        assert_eq!(entered(&in_flight).len(), 4);
    }

    #[test]
    fn a_limit_that_falls_and_rises_while_requests_are_under_way_loses_no_room() {
        let in_flight = room_for(10);
        let rooms = entered(&in_flight);
        for limit in [Some(5), Some(1), Some(4), None, Some(2), None] {
            in_flight.limit_to(limit);
        }
        assert!(entered(&in_flight).is_empty());
        drop(rooms);
        assert_eq!(entered(&in_flight).len(), 10);
    }

    #[test]
    fn whoever_waits_longest_gets_the_room_that_is_free() {
        let in_flight = room_for(1);
        let rooms = entered(&in_flight);
        let mut waiting: Vec<_> = (0..2).map(|_| Box::pin(Room::enter(&in_flight))).collect();
        assert!(waiting.iter_mut().all(|entering| entering.as_mut().now_or_never().is_none()));
        drop(rooms);
        assert!(waiting[1].as_mut().now_or_never().is_none());
        assert!(waiting[0].as_mut().now_or_never().is_some());
    }

    proptest! {
        /// Requests enter, give up and end while the limit changes. Some are not polled for a while
        /// after a slot becomes free.
        #[test]
        fn no_room_is_lost_and_nobody_waits_beside_it(
            steps in prop::collection::vec((0..6_usize, 0..8_usize, any::<bool>()), 1..200),
        ) {
            type Entering = Pin<Box<dyn Future<Output = Room>>>;
            let in_flight = room_for(5);
            let (mut waiting, mut rooms) = (Vec::<Entering>::new(), Vec::<Room>::new());
            for (step, number, is_polled) in steps {
                match step {
                    0 | 1 => {
                        let in_flight = Arc::clone(&in_flight);
                        waiting.push(Box::pin(async move { Room::enter(&in_flight).await }));
                    }
                    2 if number < waiting.len() => drop(waiting.remove(number)),
                    3 if number < rooms.len() => drop(rooms.remove(number)),
                    4 => in_flight.limit_to(u32::try_from(1 + number % 5).ok()),
                    _ => {}
                }
                if is_polled {
                    let mut context = Context::from_waker(Waker::noop());
                    waiting.retain_mut(|entering| match entering.as_mut().poll(&mut context) {
                        std::task::Poll::Ready(room) => {
                            rooms.push(room);
                            false
                        }
                        std::task::Poll::Pending => true,
                    });
                    let limit = in_flight.size().limit as usize;
                    prop_assert!(waiting.is_empty() || rooms.len() >= limit, "beside {limit}");
                }
            }
            drop((waiting, rooms));
            in_flight.limit_to(None);
            prop_assert_eq!(entered(&in_flight).len(), 5);
        }
    }

    #[test]
    fn large_events_use_up_the_total_sooner() {
        let total = TotalRoom::default();
        let large = || total.enter(1_048_576).now_or_never().flatten();
        let held: Vec<_> = std::iter::from_fn(large).collect();
        assert_eq!(held.len(), REQUESTS_AT_ONCE / 17);
        drop(held);
        // Larger than any event. The request must still get slots.
        let all = total.enter(usize::MAX).now_or_never();
        assert!(all.is_some() && total.is_full());
    }
}
