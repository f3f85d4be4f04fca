//! A destination whose file says how many requests it takes at once (`maxConcurrency`) gets no more, from
//! all processes together.
//!
//! The rule is `delivery::delivery::health::permits`. A process leases permits in the shared document, for
//! longer than its attempts may take, and returns them when nobody uses or wants them. A delivery that gets
//! none is re-enqueued for its turn, which is not an attempt. When that has come it waits a little in
//! place, and then as a message. While storage is down, each process keeps to its share.

use std::sync::Arc;

use adapters::runtime::contained;
use adapters::telemetry::{self, HoldReason};
use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::permits::{Permits, Wanted};
use delivery::delivery::{DeliveryTarget, Hold};
use delivery::machine::step::End;
use delivery::ports::DispatchPorts;
use delivery::subscription::{Destination, Subscription};
use delivery::time::duration::{MINUTE_MS, SECOND_MS};
use futures::FutureExt as _;
use futures::future::join_all;
use uuid::Uuid;

use super::GATHER_MS;
use crate::deadline::Deadline;
use crate::dispatch::{Dispatch, IN_PLACE_BELOW_MS, Invocation};
use crate::memory::leases::{Held, LeasedPermit, OwnLease, Waiting};
use crate::message::fits_a_message;
use crate::progress::{InFlightDelivery, Unfinished};
use crate::sharing::NotUpdated;

/// A lease lasts this much longer than the attempt it is for.
const LEASE_MARGIN_MS: u64 = MINUTE_MS;
/// While all permits of a process are in use, it asks for more this often.
const ASK_EVERY_MS: u64 = SECOND_MS;
/// How long a delivery whose turn has come waits in place while the permits are still in use.
const PATIENCE_MS: u64 = 5 * SECOND_MS;
/// The longest wait of a delivery whose turn has come after that.
const WAIT_MAX_S: u32 = 30;

impl<P: DispatchPorts> Dispatch<P> {
    /// Those that may be sent in one request now, with its permit: all of them, or none, and then each
    /// was re-enqueued.
    pub(crate) async fn lease_permit(
        &self,
        due: Vec<InFlightDelivery>,
        subscription: &Subscription,
        of: &Invocation<'_>,
    ) -> (Vec<InFlightDelivery>, Option<LeasedPermit>) {
        let destination = &subscription.destination;
        let to_destination =
            |one: &InFlightDelivery| one.delivery.target == DeliveryTarget::Destination;
        if !destination.shares_concurrency || !due.iter().any(to_destination) {
            return (due, None);
        }
        let cannot_wait = due.iter().any(|one| !fits_a_message(&one.delivery));
        // One request more than allowed is better than a dead letter, or than no probe.
        if cannot_wait || self.health.is_probe(subscription, &due) {
            return (due, None);
        }
        let has_waited = due.iter().any(|one| one.delivery.hold.turns > 0);
        match self.wait_for_permit(subscription, has_waited, of).boxed().await {
            Ok(permit) => (due, Some(permit)),
            Err(turn_ms) => {
                let now_ms = self.ports.now_ms();
                let wait = |one| until_turn(one, turn_ms, now_ms);
                self.finish_all(of, due.into_iter().map(wait).collect()).await;
                (Vec::new(), None)
            }
        }
    }

    /// A permit of this destination; else the turn to come back for, if it got one.
    async fn wait_for_permit(
        &self,
        subscription: &Subscription,
        mut has_waited: bool,
        of: &Invocation<'_>,
    ) -> Result<LeasedPermit, Option<u64>> {
        let destination = &subscription.destination;
        let key = DestinationKey::of_limit(subscription);
        let own = self.leases.of(key);
        let takes_ms = destination.response_timeout_ms.saturating_add(destination.late_window_ms);
        let until_ms = self.ports.now_ms().saturating_add(PATIENCE_MS);
        loop {
            let waiting = Waiting::of(&own, has_waited);
            // Made before the count is read, or a permit that is freed in between would be missed.
            let freed = own.freed.notified();
            let now_ms = self.ports.now_ms();
            let ends_ms = now_ms.saturating_add(takes_ms);
            let may_take = has_waited || own.held().turns_until_ms <= now_ms;
            if let Some(permit) = may_take.then(|| own.take(ends_ms)).flatten() {
                return Ok(permit);
            }
            self.ask_for_permits(key, &own, destination, ends_ms, !has_waited, of.deadline).await;
            if let Some(permit) = own.take(ends_ms) {
                return Ok(permit);
            }
            let now_ms = self.ports.now_ms();
            if !has_waited {
                let turn_ms = own.held().take_turn(now_ms).ok_or(None)?;
                let wait_ms = turn_ms.saturating_sub(now_ms);
                if wait_ms > IN_PLACE_BELOW_MS {
                    return Err(Some(turn_ms));
                }
                has_waited = true;
                drop(waiting);
                let _pause = of.active_work.pause();
                self.ports.sleep(wait_ms).await;
                continue;
            }
            let is_over = now_ms >= until_ms && own.held().in_use == 0;
            if is_over || now_ms >= of.deadline.stops_ms() {
                return Err(None);
            }
            // Whoever has them is not waited for only because this one waits.
            let _pause = of.active_work.pause();
            tokio::select! {
                () = freed => {}
                // Others may have returned some.
                () = self.ports.sleep(ASK_EVERY_MS) => {}
            }
        }
    }

    /// Asks for as many permits as deliveries wait for one, and for a longer lease; or for turns.
    async fn ask_for_permits(
        &self,
        key: DestinationKey,
        own: &Arc<OwnLease>,
        destination: &Destination,
        ends_ms: u64,
        wants_turn: bool,
        deadline: &Deadline,
    ) {
        let _asking = own.asking.lock().await;
        let now_ms = self.ports.now_ms();
        let has_asked = own.held().asked_ms.is_some_and(|at_ms| now_ms < at_ms + ASK_EVERY_MS);
        let has_time = ends_ms <= own.held().until_ms;
        let has_turn = !wants_turn || own.held().has_turn(now_ms);
        // Whoever waited for the lock has its answer.
        if has_asked && has_time && has_turn {
            return;
        }
        {
            // Until it is known how many it has, none is given out.
            let mut held = own.held();
            held.count = held.in_use;
        }
        self.ports.sleep(GATHER_MS).await;
        let until_ms = ends_ms.saturating_add(LEASE_MARGIN_MS);
        let most = destination.max_concurrency.max(1);
        let in_use = own.held().in_use;
        let permits = match self.lease(key, own, most, until_ms, deadline).await {
            Ok(permits) => permits,
            Err(NotUpdated::Contended) => in_use,
            Err(NotUpdated::Unreachable) => {
                // Nobody knows of others: each waits for what its process has.
                let [new, _] = own.waiting();
                let now_ms = self.ports.now_ms();
                own.held().turns_ms.extend((0..new).map(|_| now_ms));
                self.share_of(most)
            }
        };
        let mut held = own.held();
        (held.count, held.until_ms, held.asked_ms) = (permits, until_ms, Some(now_ms));
    }

    /// How many permits it has now. The turns that it got as well are kept until they are taken.
    async fn lease(
        &self,
        key: DestinationKey,
        own: &OwnLease,
        most: u32,
        until_ms: u64,
        deadline: &Deadline,
    ) -> Result<u32, NotUpdated> {
        let holder = self.holder();
        let took_ms = own.held().take_mean_ms();
        let change = |permits: Option<Permits>| {
            let mut permits = permits.unwrap_or_default();
            took_ms.into_iter().for_each(|took_ms| permits.note_taken(took_ms));
            let [new, waited] = own.waiting();
            let wanted = Wanted { new, waited, in_use: own.held().in_use, until_ms };
            let granted = permits.lease(holder, wanted, most, self.ports.now_ms());
            (permits, granted)
        };
        let document = key.permits_document();
        let (permits, granted) = self.update_shared(&document, change, deadline).await?;
        let mut held = own.held();
        held.turns_until_ms = permits.turns_until_ms();
        held.turns_ms.extend(granted.turns_ms);
        Ok(granted.permits)
    }

    /// The share of this process in so many permits. Where there are fewer than functions, only some have
    /// one, now these, now those.
    fn share_of(&self, most: u32) -> u32 {
        let functions = self.gates.functions;
        let has_one = self.ports.next_jitter().0 % functions < most;
        (most / functions).max(u32::from(has_one))
    }

    /// This process among others.
    fn holder(&self) -> Uuid {
        let random =
            || u64::from(self.ports.next_jitter().0) << 32 | u64::from(self.ports.next_jitter().0);
        *self.leases.holder.get_or_init(|| Uuid::from_u64_pair(random(), random()))
    }

    /// Returns the permits that are not in use, so that other processes need not wait for them.
    pub(crate) async fn return_leases(&self, deadline: &Deadline) {
        let idle = self.leases.idle();
        if !idle.is_empty() {
            let returned = idle.into_iter().map(|(key, own)| self.return_lease(key, own, deadline));
            contained("return_leases", join_all(returned).map(drop).boxed()).await;
        }
    }

    async fn return_lease(&self, key: DestinationKey, own: Arc<OwnLease>, deadline: &Deadline) {
        let _asking = own.asking.lock().await;
        {
            let mut held = own.held();
            // Another invocation of this process may have taken one, where there are several.
            if held.in_use > 0 {
                return;
            }
            *held = Held::default();
        }
        // What cannot be returned now ends by itself.
        let _ = self.lease(key, &own, 0, 0, deadline).await;
    }
}

/// A delivery that waits for a permit as a message: until its turn, if it has one to come back for.
fn until_turn(mut in_flight: InFlightDelivery, turn_ms: Option<u64>, now_ms: u64) -> Unfinished {
    let Some(turn_ms) = turn_ms else { return without_permit(in_flight) };
    in_flight.delivery.wait_for_permit(turn_ms);
    let wait_ms = turn_ms.saturating_sub(now_ms);
    telemetry::held(&in_flight.delivery, HoldReason::Concurrency, wait_ms);
    Unfinished { in_flight, end: End::Retry { wait_ms } }
}

/// A delivery that waits for a permit as a message: a second longer each time, at most 30.
pub(super) fn without_permit(mut in_flight: InFlightDelivery) -> Unfinished {
    let hold = in_flight.delivery.hold;
    let turns = hold.turns.saturating_add(1);
    let wait_ms = u64::from(turns.min(WAIT_MAX_S)) * SECOND_MS;
    in_flight.delivery.hold = Hold { turns, ..hold };
    telemetry::held(&in_flight.delivery, HoldReason::Concurrency, wait_ms);
    Unfinished { in_flight, end: End::Retry { wait_ms } }
}
