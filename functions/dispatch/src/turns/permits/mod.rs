//! A destination whose file says how many requests it takes at once (`maxConcurrency`) gets no more, from
//! all processes together.
//!
//! A process takes permits from the table for its attempts, uses them again while they are valid, and returns
//! them when nobody needs them. A permit ends little later than its attempt may: if its process is killed, others wait no
//! longer than that. A delivery that gets none is re-enqueued for its turn, which is not an attempt. When that has come
//! it waits a little in place, and then as a message. While the table cannot be reached, each process keeps to its share.

mod ask;
mod line;

use std::sync::Arc;

use adapters::telemetry::{self, HoldReason};
use delivery::machine::step::End;
use delivery::ports::DispatchPorts;
use delivery::subscription::Subscription;
use delivery::table::ItemKey;
use delivery::time::duration::{MINUTE_MS, SECOND_MS};
use futures::FutureExt as _;

use super::{GATHER_MS, can_wait};
use crate::deadline::Deadline;
use crate::dispatch::{Dispatch, IN_PLACE_BELOW_MS, Invocation};
use crate::memory::health::key_of;
use crate::memory::permits::{OwnPermits, UsedPermit, Waiting};
use crate::progress::{InFlightDelivery, Unfinished};
use crate::sharing::Unreachable;

/// A permit is valid this much longer than the attempt it is taken for. So quick attempts share one.
const MARGIN_MS: u64 = 3 * SECOND_MS;
/// A delivery whose turn has come waits in place for two attempts, but at least and at most this long.
const PATIENCE_MS: (u64, u64) = (3 * SECOND_MS, 12 * SECOND_MS);
/// A delivery that cannot wait as a message waits this much longer than the permits are valid that it found.
const PATIENCE_IN_PLACE_MS: u64 = 30 * SECOND_MS;
/// Turns are given out at most this far ahead, because the average duration of attempts may change. Who finds none left
/// asks again then.
const TURNS_AHEAD_MS: u64 = 15 * MINUTE_MS;

/// A destination that takes so many requests at once.
struct Limit<'a> {
    item: ItemKey,
    own: &'a Arc<OwnPermits>,
    most: u32,
    /// The longest duration of an attempt.
    lasts_ms: u64,
    deadline: &'a Deadline,
}

/// The reason why a delivery got no permit.
#[derive(Debug, Clone, Copy)]
enum NoPermit {
    /// It is its turn then.
    Turn(u64),
    /// There is no turn for it yet: they are given out until then.
    NoTurn(u64),
    /// Its turn has come, but all permits are in use; one may be free then.
    InUse(u64),
}

impl<P: DispatchPorts> Dispatch<P> {
    /// Returns the deliveries with a permit for their request. Without a permit, re-enqueues all and returns none.
    pub(crate) async fn use_permit(
        &self,
        due: Vec<InFlightDelivery>,
        subscription: &Subscription,
        of: &Invocation<'_>,
    ) -> (Vec<InFlightDelivery>, Option<UsedPermit>) {
        let shares = subscription.destination.max_concurrency.is_shared;
        if !shares || !self.is_counted(&due, subscription) {
            return (due, None);
        }
        if !can_wait(&due, of) {
            let permit = self.wait_in_place(subscription, of).boxed().await;
            return (due, permit);
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
    ) -> Result<UsedPermit, NoPermit> {
        let own = self.permits.of(key_of(subscription));
        let limit = Limit::of(subscription, &own, of.deadline);
        if !has_waited {
            let turn_ms = match self.ask_as_new(&limit).await {
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
        self.wait_in_turn(&limit, of).await
    }

    /// A permit for a delivery that cannot wait as a message. If none is free for long, it is attempted without one.
    async fn wait_in_place(
        &self,
        subscription: &Subscription,
        of: &Invocation<'_>,
    ) -> Option<UsedPermit> {
        let own = self.permits.of(key_of(subscription));
        let limit = Limit::of(subscription, &own, of.deadline);
        // Until the permit of whoever was killed has expired, if time for the attempt is left then.
        let expires_ms = self.ends_ms(&limit).saturating_add(MARGIN_MS + PATIENCE_IN_PLACE_MS);
        let until_ms = expires_ms.min(of.deadline.stops_ms().saturating_sub(limit.lasts_ms));
        let _waiting = Waiting::of(&own, true);
        self.wait_for_free(&limit, until_ms, until_ms, of).await
    }

    /// A permit for a delivery that has not waited yet, or its turn behind all that wait.
    async fn ask_as_new(&self, limit: &Limit<'_>) -> Result<UsedPermit, NoPermit> {
        let own = limit.own;
        let _waiting = Waiting::of(own, false);
        if let Some(permit) = self.take_unless_others_wait(limit) {
            return Ok(permit);
        }
        let _asking = own.asking.lock().await;
        // Somebody else of this process may have asked for all meanwhile.
        if let Some(permit) =
            self.take_for_new(limit).or_else(|| self.take_unless_others_wait(limit))
        {
            return Ok(permit);
        }
        if let Some(turn_ms) = own.held().take_turn(self.ports.now_ms()) {
            return Err(NoPermit::Turn(turn_ms));
        }
        self.ports.sleep(GATHER_MS).await;
        let wanted = own.new_ones();
        let nobody_waits = own.held().line_until_ms <= self.ports.now_ms();
        let missing = match nobody_waits {
            true => self.take_permits(limit, wanted, true).await,
            false => Ok(wanted),
        };
        own.held().for_new = wanted - missing.unwrap_or(wanted).min(wanted);
        let given = match missing {
            Ok(missing) if missing > 0 => self.take_turns(limit, missing).await,
            Ok(_) => Ok(()),
            Err(Unreachable) => Err(Unreachable),
        };
        if given.is_err() {
            self.use_share(limit);
        }
        let permit = self.take_for_new(limit).or_else(|| own.take(self.ends_ms(limit)));
        if let Some(permit) = permit {
            return Ok(permit);
        }
        let mut held = own.held();
        let turn_ms = held.take_turn(self.ports.now_ms());
        Err(turn_ms.map_or(NoPermit::NoTurn(held.line_until_ms), NoPermit::Turn))
    }

    /// A permit for a delivery whose turn it is.
    async fn wait_in_turn(
        &self,
        limit: &Limit<'_>,
        of: &Invocation<'_>,
    ) -> Result<UsedPermit, NoPermit> {
        let _waiting = Waiting::of(limit.own, true);
        let (shortest_ms, longest_ms) = PATIENCE_MS;
        let patience_ms = (2 * limit.own.held().takes_ms()).clamp(shortest_ms, longest_ms);
        let until_ms = self.ports.now_ms().saturating_add(patience_ms);
        match self.wait_for_free(limit, until_ms, of.deadline.stops_ms(), of).await {
            Some(permit) => Ok(permit),
            None => Err(self.next_turn(limit).await),
        }
    }

    /// A permit, as soon as one is free; `None` if none will be until then. While this process uses one itself, it is
    /// waited for until `last_ms`.
    async fn wait_for_free(
        &self,
        limit: &Limit<'_>,
        until_ms: u64,
        last_ms: u64,
        of: &Invocation<'_>,
    ) -> Option<UsedPermit> {
        let own = limit.own;
        loop {
            // Registered before a permit is taken, or a wake-up is lost.
            let freed = own.freed.notified();
            if let Some(permit) = own.take(self.ends_ms(limit)) {
                return Some(permit);
            }
            self.ask_in_turn(limit).await;
            if let Some(permit) = own.take(self.ends_ms(limit)) {
                return Some(permit);
            }
            let now_ms = self.ports.now_ms();
            let ask_again_ms = own.held().ask_again_ms;
            let is_over = ask_again_ms > until_ms && !own.held().is_in_use();
            // It has one of the permits of all destinations, which others may need.
            if is_over || now_ms >= last_ms || of.limits.is_full() {
                return None;
            }
            // Waiting for a permit must not keep the invocation from being considered idle.
            let _pause = of.active_work.pause();
            tokio::select! {
                // Random otherwise, and a simulated lifetime has to be repeatable.
                biased;
                () = freed => {}
                // Others may have returned some.
                () = self.ports.sleep(ask_again_ms.min(last_ms).saturating_sub(now_ms).max(1)) => {}
            }
        }
    }

    /// Another turn for a delivery whose turn has come too early: more is known now of how long attempts take.
    async fn next_turn(&self, limit: &Limit<'_>) -> NoPermit {
        let own = limit.own;
        let _asking = own.asking.lock().await;
        let turn_ms = own.held().take_turn(self.ports.now_ms());
        if let Some(turn_ms) = turn_ms {
            return NoPermit::Turn(turn_ms);
        }
        self.ports.sleep(GATHER_MS).await;
        // Without the table, this one comes back when a permit may be free.
        let _ = self.take_turns(limit, own.waited()).await;
        let mut held = own.held();
        let turn_ms = held.take_turn(self.ports.now_ms());
        turn_ms.map_or(NoPermit::InUse(held.ask_again_ms), NoPermit::Turn)
    }

    /// One of the permits that were taken for those that are new.
    fn take_for_new(&self, limit: &Limit<'_>) -> Option<UsedPermit> {
        {
            let mut held = limit.own.held();
            held.for_new = held.for_new.checked_sub(1)?;
        }
        limit.own.take(self.ends_ms(limit))
    }

    fn take_unless_others_wait(&self, limit: &Limit<'_>) -> Option<UsedPermit> {
        let nobody_waits = limit.own.held().line_until_ms <= self.ports.now_ms();
        nobody_waits.then(|| limit.own.take(self.ends_ms(limit))).flatten()
    }

    /// When an attempt ends that begins now, at the latest.
    fn ends_ms(&self, limit: &Limit<'_>) -> u64 {
        let ends_ms = self.ports.now_ms().saturating_add(limit.lasts_ms);
        ends_ms.min(limit.deadline.ends_ms().unwrap_or(u64::MAX))
    }
}

impl<'a> Limit<'a> {
    fn of(subscription: &Subscription, own: &'a Arc<OwnPermits>, deadline: &'a Deadline) -> Self {
        let destination = &subscription.destination;
        let item = key_of(subscription).limits_item(&subscription.name.topic.namespace);
        own.item.get_or_init(|| item.clone());
        let lasts_ms = destination.response_timeout_ms.saturating_add(destination.late_window_ms);
        Self { item, own, most: destination.max_concurrency.most.max(1), lasts_ms, deadline }
    }
}

/// A delivery waits as a message: until its turn, and if that has come until a permit may be free.
fn without_permit(mut in_flight: InFlightDelivery, why: NoPermit, now_ms: u64) -> Unfinished {
    let delivery = &mut in_flight.delivery;
    let until_ms = match why {
        NoPermit::Turn(turn_ms) => turn_ms,
        NoPermit::NoTurn(until_ms) => {
            let wait_ms = until_ms.saturating_sub(now_ms);
            now_ms.saturating_add(wait_ms.clamp(2 * SECOND_MS, TURNS_AHEAD_MS))
        }
        NoPermit::InUse(free_ms) => free_ms.max(now_ms.saturating_add(SECOND_MS)),
    };
    match why {
        // It is as new as before when it comes back.
        NoPermit::NoTurn(_) => delivery.due_ms = until_ms,
        NoPermit::Turn(_) | NoPermit::InUse(_) => delivery.wait_for_permit(until_ms),
    }
    let wait_ms = until_ms.saturating_sub(now_ms);
    telemetry::held(delivery, HoldReason::Concurrency, wait_ms);
    Unfinished { in_flight, end: End::Retry { wait_ms } }
}
