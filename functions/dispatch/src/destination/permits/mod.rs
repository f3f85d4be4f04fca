//! Enforces `maxConcurrency`, the maximum number of concurrent requests of all processes to a
//! destination.
//!
//! A process takes permits from the table for its attempts, reuses them while they are valid, and
//! returns unneeded ones. A permit outlasts its attempt only by a margin, so a killed process
//! blocks other processes only briefly. A delivery without a permit gets a turn, an estimated start
//! time, and is re-enqueued until then. This wait is not an attempt. When its turn has come, the
//! delivery waits a little in place, and then again as a message. While the table is unreachable,
//! each process keeps to its share of the limit.

mod ask;
mod own;
mod turns;

use std::sync::Arc;

use delivery::delivery::WaitReason;
use delivery::delivery::health::DestinationKey;
use delivery::ports::DispatchPorts;
use delivery::table::ItemKey;
use delivery::time::duration::{MINUTE_MS, SECOND_MS};
use futures::FutureExt as _;

use self::own::Waiting;
pub(super) use self::own::{AllPermits, OwnPermits, UsedPermit};
use super::answer::Answer;
use super::gates::{longest_wait_ms, unless_open};
use super::passage::Passage;
use super::{Destinations, GATHER_MS, can_wait};
use crate::deadline::Deadline;
use crate::invocation::{IN_PLACE_BELOW_MS, Invocation};
use crate::progress::InFlightDelivery;
use crate::table::Unreachable;

/// Validity of a permit beyond the longest attempt, so that several quick attempts can reuse one
/// permit.
const MARGIN_MS: u64 = 3 * SECOND_MS;
/// Minimum and maximum time that a delivery waits in place after its turn has come. Between these
/// bounds, the time is twice the average duration of an attempt.
const PATIENCE_MS: (u64, u64) = (3 * SECOND_MS, 12 * SECOND_MS);
/// Additional time that a delivery waits in place after the current permits have expired, if it
/// cannot wait as a message.
const PATIENCE_IN_PLACE_MS: u64 = 30 * SECOND_MS;
/// Turns are assigned at most this far ahead, because the average duration of attempts may change.
/// If attempts become faster, deliveries keep their later turns. Without this limit, a destination
/// that has recovered could be idle for hours. A delivery that gets no turn requests one again
/// after this time.
const TURNS_AHEAD_MS: u64 = 15 * MINUTE_MS;

/// A destination with a limit of concurrent requests (`maxConcurrency`).
struct Limit<'a> {
    key: DestinationKey,
    item: ItemKey,
    own: &'a Arc<OwnPermits>,
    most: u32,
    /// Longest possible duration of an attempt.
    lasts_ms: u64,
    deadline: &'a Deadline,
}

#[derive(Debug, Clone, Copy)]
enum NoPermit {
    /// The delivery has a turn at this time.
    Turn(u64),
    /// No turn is free before this time.
    NoTurn(u64),
    /// The turn has come, but all permits are in use. One may become free at this time.
    InUse(u64),
}

impl<P: DispatchPorts> Destinations<P> {
    /// Takes a permit for the request. If none is free, all deliveries wait for their turn.
    pub(super) async fn ask_concurrency(
        &self,
        due: &[InFlightDelivery],
        passage: &mut Passage,
        invocation: &Invocation<'_>,
    ) -> Option<Vec<Answer>> {
        let is_shared = passage.subscription.destination.max_concurrency.is_shared;
        let has_permit = passage.permit.is_some() || passage.needs_no_permit;
        if !is_shared || !passage.is_own || passage.is_probe() || has_permit {
            return None;
        }
        let began_ms = self.now_ms();
        if !can_wait(due, invocation) {
            passage.permit = self.wait_in_place(passage, invocation).boxed().await;
            passage.needs_no_permit = passage.permit.is_none();
            passage.has_waited |= self.now_ms() > began_ms;
            return None;
        }
        let has_waited = due.iter().any(|in_flight| in_flight.delivery.hold.permits > 0);
        let permit = self.wait_for_permit(passage, has_waited, invocation).boxed().await;
        let now_ms = self.now_ms();
        match permit {
            Ok(permit) => {
                passage.permit = Some(permit);
                passage.has_waited |= now_ms > began_ms;
                None
            }
            Err(no_permit) => {
                let without = |in_flight| {
                    let longest_ms = longest_wait_ms(in_flight, passage, now_ms);
                    no_permit.answer(longest_ms, now_ms)
                };
                unless_open(due.iter().map(without))
            }
        }
    }

    async fn wait_for_permit(
        &self,
        passage: &Passage,
        has_waited: bool,
        invocation: &Invocation<'_>,
    ) -> Result<UsedPermit, NoPermit> {
        let limit = Limit::new(passage, invocation.deadline);
        if !has_waited {
            let turn_ms = match self.ask_as_new(&limit).await {
                Ok(permit) => return Ok(permit),
                Err(NoPermit::Turn(turn_ms)) => turn_ms,
                Err(why) => return Err(why),
            };
            let wait_ms = turn_ms.saturating_sub(self.now_ms());
            if wait_ms > IN_PLACE_BELOW_MS {
                return Err(NoPermit::Turn(turn_ms));
            }
            let _pause = invocation.active_work.pause();
            self.ports.sleep(wait_ms).await;
        }
        self.wait_in_turn(&limit, invocation).await
    }

    /// Waits in place for a permit, for a delivery that cannot wait as a message. Returns `None` if
    /// the delivery has to be attempted without a permit.
    async fn wait_in_place(
        &self,
        passage: &Passage,
        invocation: &Invocation<'_>,
    ) -> Option<UsedPermit> {
        let limit = Limit::new(passage, invocation.deadline);
        // Waits until a permit of a killed process has expired, or until an attempt would have too
        // little time.
        let expires_ms = self.ends_ms(&limit).saturating_add(MARGIN_MS + PATIENCE_IN_PLACE_MS);
        let until_ms =
            expires_ms.min(invocation.deadline.stops_ms().saturating_sub(limit.lasts_ms));
        let _waiting = Waiting::new(limit.own, true);
        self.wait_for_free(&limit, until_ms, until_ms, invocation).await
    }

    /// Takes a permit for a new delivery, or a turn after all waiting deliveries.
    async fn ask_as_new(&self, limit: &Limit<'_>) -> Result<UsedPermit, NoPermit> {
        let own = limit.own;
        let _waiting = Waiting::new(own, false);
        if let Some(permit) = self.take_unless_others_wait(limit) {
            return Ok(permit);
        }
        let _asking = own.asking.lock().await;
        // Meanwhile, another delivery may have taken permits for all deliveries of this process.
        if let Some(permit) =
            self.take_for_new(limit).or_else(|| self.take_unless_others_wait(limit))
        {
            return Ok(permit);
        }
        if let Some(turn_ms) = own.held().take_turn(self.now_ms()) {
            return Err(NoPermit::Turn(turn_ms));
        }
        self.ports.sleep(GATHER_MS).await;
        let wanted = own.new_ones();
        let nobody_waits = own.held().line_until_ms <= self.now_ms();
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
        let turn_ms = held.take_turn(self.now_ms());
        Err(turn_ms.map_or(NoPermit::NoTurn(held.line_until_ms), NoPermit::Turn))
    }

    /// Takes a permit for a delivery whose turn has come.
    async fn wait_in_turn(
        &self,
        limit: &Limit<'_>,
        invocation: &Invocation<'_>,
    ) -> Result<UsedPermit, NoPermit> {
        let _waiting = Waiting::new(limit.own, true);
        let (shortest_ms, longest_ms) = PATIENCE_MS;
        let patience_ms = (2 * limit.own.held().takes_ms()).clamp(shortest_ms, longest_ms);
        let until_ms = self.now_ms().saturating_add(patience_ms);
        match self.wait_for_free(limit, until_ms, invocation.deadline.stops_ms(), invocation).await
        {
            Some(permit) => Ok(permit),
            None => Err(self.next_turn(limit).await),
        }
    }

    /// Waits for the next free permit. Returns `None` in three cases:
    /// - This process uses no permit itself, and the table is not asked again before `until_ms`.
    /// - `last_ms` has passed.
    /// - Deliveries to other destinations may need the slot that this delivery holds.
    async fn wait_for_free(
        &self,
        limit: &Limit<'_>,
        until_ms: u64,
        last_ms: u64,
        invocation: &Invocation<'_>,
    ) -> Option<UsedPermit> {
        let own = limit.own;
        loop {
            // Register before taking a permit (see `Notify::notified`), or a wake-up is lost.
            let freed = own.freed.notified();
            if let Some(permit) = own.take(self.ends_ms(limit)) {
                return Some(permit);
            }
            self.ask_in_turn(limit).await;
            if let Some(permit) = own.take(self.ends_ms(limit)) {
                return Some(permit);
            }
            let now_ms = self.now_ms();
            let ask_again_ms = own.held().ask_again_ms;
            let is_over = ask_again_ms > until_ms && !own.held().is_in_use();
            // A waiting delivery holds a slot of the total, which other destinations may need.
            if is_over || now_ms >= last_ms || self.total.is_full() {
                return None;
            }
            // Waiting for a permit must not keep the invocation from being considered idle.
            let _pause = invocation.active_work.pause();
            tokio::select! {
                // Without `biased` the order is random, but a simulation has to be repeatable.
                biased;
                () = freed => {}
                // Other processes may have returned permits.
                () = self.ports.sleep(ask_again_ms.min(last_ms).saturating_sub(now_ms).max(1)) => {}
            }
        }
    }

    /// Takes another turn for a delivery whose turn came too early. By now, the average duration of
    /// attempts is more accurate.
    async fn next_turn(&self, limit: &Limit<'_>) -> NoPermit {
        let own = limit.own;
        let _asking = own.asking.lock().await;
        let turn_ms = own.held().take_turn(self.now_ms());
        if let Some(turn_ms) = turn_ms {
            return NoPermit::Turn(turn_ms);
        }
        self.ports.sleep(GATHER_MS).await;
        // If the table is unreachable, the delivery is received again when a permit may be free.
        let _ = self.take_turns(limit, own.waited()).await;
        let mut held = own.held();
        let turn_ms = held.take_turn(self.now_ms());
        turn_ms.map_or(NoPermit::InUse(held.ask_again_ms), NoPermit::Turn)
    }

    /// Uses a permit that was taken for a new delivery.
    fn take_for_new(&self, limit: &Limit<'_>) -> Option<UsedPermit> {
        {
            let mut held = limit.own.held();
            held.for_new = held.for_new.checked_sub(1)?;
        }
        limit.own.take(self.ends_ms(limit))
    }

    fn take_unless_others_wait(&self, limit: &Limit<'_>) -> Option<UsedPermit> {
        let nobody_waits = limit.own.held().line_until_ms <= self.now_ms();
        nobody_waits.then(|| limit.own.take(self.ends_ms(limit))).flatten()
    }

    /// Returns the latest end of an attempt that begins now.
    fn ends_ms(&self, limit: &Limit<'_>) -> u64 {
        let ends_ms = self.now_ms().saturating_add(limit.lasts_ms);
        ends_ms.min(limit.deadline.ends_ms().unwrap_or(u64::MAX))
    }
}

impl<'a> Limit<'a> {
    fn new(passage: &'a Passage, deadline: &'a Deadline) -> Self {
        let (destination, settings) = (&passage.destination, &passage.subscription.destination);
        let item = destination.key.limits_item(&destination.namespace);
        destination.permits.item.get_or_init(|| item.clone());
        let lasts_ms = settings.response_timeout_ms.saturating_add(settings.late_window_ms);
        let most = settings.max_concurrency.most.max(1);
        Self { key: destination.key, item, own: &destination.permits, most, lasts_ms, deadline }
    }
}

impl NoPermit {
    /// Returns an [`Answer::Wait`] until the time in this value. Limits the wait to `longest_ms`,
    /// but a delivery without a future turn waits for at least a second.
    fn answer(self, longest_ms: u64, now_ms: u64) -> Answer {
        let (until_ms, least_ms, why) = match self {
            Self::Turn(turn_ms) => (turn_ms, 0, WaitReason::Turn),
            // The delivery counts as new when it is received again.
            Self::NoTurn(until_ms) => (until_ms, 2 * SECOND_MS, WaitReason::NoTurn),
            Self::InUse(free_ms) => (free_ms, SECOND_MS, WaitReason::Turn),
        };
        let longest_ms = longest_ms.clamp(SECOND_MS, TURNS_AHEAD_MS);
        let until_ms = until_ms.min(now_ms.saturating_add(longest_ms));
        Answer::Wait { until_ms: until_ms.max(now_ms.saturating_add(least_ms)), why }
    }
}
