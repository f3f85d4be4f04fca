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
use delivery::delivery::health::permits::{Permits, TURNS_AHEAD_MS, Wanted};
use delivery::machine::step::End;
use delivery::ports::DispatchPorts;
use delivery::subscription::Subscription;
use delivery::time::duration::{MINUTE_MS, SECOND_MS};
use futures::FutureExt as _;
use futures::future::join_all;
use uuid::Uuid;

use super::GATHER_MS;
use crate::deadline::Deadline;
use crate::dispatch::{Dispatch, IN_PLACE_BELOW_MS, Invocation};
use crate::memory::health::key_of;
use crate::memory::leases::{LeasedPermit, OwnLease, Waiting};
use crate::progress::{InFlightDelivery, Unfinished};
use crate::sharing::NotUpdated;

/// A lease lasts this much longer than the attempt it is for.
const LEASE_MARGIN_MS: u64 = MINUTE_MS;
/// While all permits of a process are in use, it asks for more this often.
const ASK_EVERY_MS: u64 = SECOND_MS;
/// How long a delivery whose turn has come waits in place while the permits are still in use.
const PATIENCE_MS: u64 = 5 * SECOND_MS;
/// How long a delivery waits that got no turn because others were faster.
const NO_TURN_MS: u64 = 2 * SECOND_MS;
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
        let shares = subscription.destination.max_concurrency.is_shared;
        if !shares || !self.is_limited(&due, subscription, of) {
            return (due, None);
        }
        let has_waited = due.iter().any(|one| one.delivery.hold.permits > 0);
        match self.wait_for_permit(subscription, has_waited, of).boxed().await {
            Ok(permit) => (due, Some(permit)),
            Err(why) => {
                let now_ms = self.ports.now_ms();
                let leave = |one| without_permit(one, why, now_ms);
                self.finish_all(of, due.into_iter().map(leave).collect()).await;
                (Vec::new(), None)
            }
        }
    }

    async fn wait_for_permit(
        &self,
        subscription: &Subscription,
        has_waited: bool,
        of: &Invocation<'_>,
    ) -> Result<LeasedPermit, NoPermit> {
        let own = self.leases.of(key_of(subscription));
        if !has_waited {
            let turn_ms = match self.ask_as_new(subscription, &own, of).await {
                Ok(permit) => return Ok(permit),
                Err(NoPermit::Turn(turn_ms)) => turn_ms,
                Err(why) => return Err(why),
            };
            let wait_ms = turn_ms.saturating_sub(self.ports.now_ms());
            if wait_ms > IN_PLACE_BELOW_MS {
                return Err(NoPermit::Turn(turn_ms));
            }
            let _pause = of.active_work.pause();
            self.ports.sleep(wait_ms).await;
        }
        self.wait_in_turn(subscription, &own, of).await
    }

    /// A permit for a delivery that has not waited yet, unless others wait.
    async fn ask_as_new(
        &self,
        subscription: &Subscription,
        own: &Arc<OwnLease>,
        of: &Invocation<'_>,
    ) -> Result<LeasedPermit, NoPermit> {
        let _waiting = Waiting::of(own, false);
        let now_ms = self.ports.now_ms();
        let ends_ms = now_ms.saturating_add(takes_ms(subscription));
        let nobody_waits = own.held().turns_until_ms <= now_ms;
        if let Some(permit) = nobody_waits.then(|| own.take(ends_ms)).flatten() {
            return Ok(permit);
        }
        self.ask_for_permits(subscription, own, ends_ms, true, of.deadline).await;
        if let Some(permit) = own.take_as_new(ends_ms) {
            return Ok(permit);
        }
        let now_ms = self.ports.now_ms();
        let turn_ms = own.held().take_turn(now_ms);
        Err(turn_ms.map_or(NoPermit::NoTurn(own.held().turns_until_ms), NoPermit::Turn))
    }

    /// A permit for a delivery whose turn it is.
    async fn wait_in_turn(
        &self,
        subscription: &Subscription,
        own: &Arc<OwnLease>,
        of: &Invocation<'_>,
    ) -> Result<LeasedPermit, NoPermit> {
        let _waiting = Waiting::of(own, true);
        let until_ms = self.ports.now_ms().saturating_add(PATIENCE_MS);
        loop {
            // Made before the count is read, or a permit that is freed in between would be missed.
            let freed = own.freed.notified();
            let ends_ms = self.ports.now_ms().saturating_add(takes_ms(subscription));
            if let Some(permit) = own.take(ends_ms) {
                return Ok(permit);
            }
            self.ask_for_permits(subscription, own, ends_ms, false, of.deadline).await;
            if let Some(permit) = own.take(ends_ms) {
                return Ok(permit);
            }
            let now_ms = self.ports.now_ms();
            let is_over = now_ms >= until_ms && own.held().in_use == 0;
            // It has one of the permits of all destinations, which others may need.
            if is_over || now_ms >= of.deadline.stops_ms() || of.limits.is_full() {
                return Err(NoPermit::InUse);
            }
            // Whoever has them is not waited for only because this one waits.
            let _pause = of.active_work.pause();
            tokio::select! {
                // Random otherwise, and a simulated lifetime has to be repeatable.
                biased;
                () = freed => {}
                // Others may have returned some.
                () = self.ports.sleep(ASK_EVERY_MS) => {}
            }
        }
    }

    /// Asks for as many permits as deliveries wait for one, and for a longer lease; or for turns.
    async fn ask_for_permits(
        &self,
        subscription: &Subscription,
        own: &Arc<OwnLease>,
        ends_ms: u64,
        is_new: bool,
        deadline: &Deadline,
    ) {
        let _asking = own.asking.lock().await;
        let now_ms = self.ports.now_ms();
        let has_asked = own.held().asked_ms.is_some_and(|at_ms| now_ms < at_ms + ASK_EVERY_MS);
        let has_time = ends_ms <= own.held().until_ms;
        let has_answer = !is_new || own.held().has_answer(now_ms);
        // Whoever waited for the lock has its answer.
        if has_asked && has_time && has_answer {
            return;
        }
        {
            // Until it is known how many it has, none is given out.
            let mut held = own.held();
            held.count = held.in_use;
        }
        self.ports.sleep(GATHER_MS).await;
        let key = key_of(subscription);
        let most = subscription.destination.max_concurrency.most.max(1);
        let until_ms = ends_ms.saturating_add(LEASE_MARGIN_MS);
        let wanted = || {
            let [new, waited] = own.waiting();
            Wanted { new, waited, in_use: own.held().in_use, until_ms }
        };
        let leased = self.lease(key, own, most, wanted, deadline).await;
        let mut held = own.held();
        held.asked_ms = Some(now_ms);
        match leased {
            Ok(()) => {}
            // What it has it keeps, for as long as the document says.
            Err(NotUpdated::Contended) => held.count = held.in_use,
            Err(NotUpdated::Unreachable) => {
                (held.count, held.until_ms) = (self.share_of(most), until_ms);
                // Nobody knows of others: each waits for what its process has.
                let [new, _] = own.waiting();
                held.turns_ms.extend((0..new).map(|_| self.ports.now_ms()));
            }
        }
    }

    /// Changes what the document says of this process, and takes over what it says then.
    async fn lease(
        &self,
        key: DestinationKey,
        own: &OwnLease,
        most: u32,
        wanted: impl Fn() -> Wanted,
        deadline: &Deadline,
    ) -> Result<(), NotUpdated> {
        let holder = self.holder();
        let took_ms = own.held().take_mean_ms();
        let change = |permits: Option<Permits>| {
            let (mut permits, now_ms) = (permits.unwrap_or_default(), self.ports.now_ms());
            took_ms.into_iter().for_each(|took_ms| permits.note_taken(took_ms, now_ms));
            let granted = permits.lease(holder, wanted(), most, now_ms);
            (permits, granted)
        };
        let document = key.permits_document();
        let (permits, granted) = self.update_shared(&document, change, deadline).await?;
        let mut held = own.held();
        (held.count, held.until_ms) = (granted.permits, granted.until_ms);
        (held.turns_until_ms, held.for_new) = (permits.turns_until_ms(), granted.for_new);
        held.turns_ms.extend(granted.turns_ms);
        Ok(())
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

    /// Returns the permits that nobody uses or wants, so that other processes need not wait for them.
    pub(crate) async fn return_leases(&self, deadline: &Deadline) {
        if self.leases.idle().is_empty() {
            return;
        }
        // Whoever got what this delivery freed may want a permit now.
        tokio::task::yield_now().await;
        let idle = self.leases.idle();
        let returned = idle.into_iter().map(|(key, own)| self.return_lease(key, own, deadline));
        contained("return_leases", join_all(returned).map(drop).boxed()).await;
    }

    async fn return_lease(&self, key: DestinationKey, own: Arc<OwnLease>, deadline: &Deadline) {
        let _asking = own.asking.lock().await;
        {
            let mut held = own.held();
            // Another delivery may have taken one.
            if held.in_use > 0 || own.waiting() != [0, 0] {
                return;
            }
            *held = held.returned();
        }
        // Whoever comes meanwhile asks after this. What cannot be returned now ends by itself.
        let nothing = || Wanted { new: 0, waited: 0, in_use: 0, until_ms: 0 };
        let _ = self.lease(key, &own, 0, nothing, deadline).await;
    }
}

/// How long an attempt may take.
fn takes_ms(subscription: &Subscription) -> u64 {
    let destination = &subscription.destination;
    destination.response_timeout_ms.saturating_add(destination.late_window_ms)
}

/// Why a delivery got no permit.
#[derive(Debug, Clone, Copy)]
enum NoPermit {
    /// It is its turn then.
    Turn(u64),
    /// There is no turn for it yet: they are given out until then, or others were faster.
    NoTurn(u64),
    /// Its turn has come, but all permits are in use.
    InUse,
}

/// A delivery waits as a message: until its turn, and if that has come a second longer each time.
fn without_permit(mut in_flight: InFlightDelivery, why: NoPermit, now_ms: u64) -> Unfinished {
    let delivery = &mut in_flight.delivery;
    let until_ms = match why {
        NoPermit::Turn(turn_ms) => turn_ms,
        NoPermit::NoTurn(until_ms) => {
            let wait_ms = until_ms.saturating_sub(now_ms);
            now_ms.saturating_add(wait_ms.clamp(NO_TURN_MS, TURNS_AHEAD_MS))
        }
        NoPermit::InUse => {
            let seconds = delivery.hold.permits.clamp(1, WAIT_MAX_S);
            now_ms.saturating_add(u64::from(seconds) * SECOND_MS)
        }
    };
    match why {
        // It is as new as before when it comes back.
        NoPermit::NoTurn(_) => delivery.due_ms = until_ms,
        NoPermit::Turn(_) | NoPermit::InUse => delivery.wait_for_permit(until_ms),
    }
    let wait_ms = until_ms.saturating_sub(now_ms);
    telemetry::held(delivery, HoldReason::Concurrency, wait_ms);
    Unfinished { in_flight, end: End::Retry { wait_ms } }
}
