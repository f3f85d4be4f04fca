//! A destination whose file says how many requests it takes at once (`maxConcurrency`) gets no more, from
//! all processes together.
//!
//! A process takes permits from the table for its attempts, uses them again while they are valid, and returns
//! them when nobody needs them. A permit ends little later than its attempt may: if its process is killed, others wait no
//! longer than that. A delivery that gets none is re-enqueued for its turn, which is not an attempt. When that has come
//! it waits a little in place, and then as a message. While the table cannot be reached, each process keeps to its share.

use std::sync::Arc;

use adapters::runtime::contained;
use adapters::telemetry::{self, HoldReason};
use delivery::machine::step::End;
use delivery::ports::DispatchPorts;
use delivery::subscription::Subscription;
use delivery::table::{
    ItemKey, Line, LineName, Permit, PermitAnswer, Refusal, Shares, Table as _, TakePermits,
    TakePlaces,
};
use delivery::time::duration::{MINUTE_MS, SECOND_MS};
use futures::FutureExt as _;
use futures::future::join_all;

use super::{GATHER_MS, can_wait};
use crate::deadline::Deadline;
use crate::dispatch::{Dispatch, IN_PLACE_BELOW_MS, Invocation};
use crate::memory::health::key_of;
use crate::memory::permits::{Grant, OwnPermits, UsedPermit, Waiting};
use crate::progress::{InFlightDelivery, Unfinished};
use crate::sharing::Unreachable;

/// A permit is valid this much longer than the attempt it is taken for. So quick attempts share one.
const MARGIN_MS: u64 = 3 * SECOND_MS;
/// While all permits are in use, a process asks for one this often at most, and at least.
const ASK_AFTER_MS: u64 = SECOND_MS;
/// See [`ASK_AFTER_MS`].
const ASK_WITHIN_MS: u64 = 30 * SECOND_MS;
/// A delivery whose turn has come waits in place for two attempts, but at least and at most this long.
const PATIENCE_MS: (u64, u64) = (3 * SECOND_MS, 12 * SECOND_MS);
/// A delivery that cannot wait as a message waits this much longer than the permits are valid that it found.
const PATIENCE_IN_PLACE_MS: u64 = 30 * SECOND_MS;
/// Deliveries come back together if their turns come within three attempts, but at least and at most this long.
const GROUP_MS: (u64, u64) = (4 * SECOND_MS, 12 * SECOND_MS);
/// Turns are given out for so long ahead: what is known of how long attempts take may soon be wrong. Who
/// finds none left asks again then.
const TURNS_AHEAD_MS: u64 = 15 * MINUTE_MS;
/// The same while nothing is known of it.
const GUESSED_AHEAD_MS: u64 = 5 * SECOND_MS;
/// Turns are given out as if attempts took this many percent of their time, since permits are taken and returned. A
/// permit that is free for a moment costs less than a delivery that comes too early.
const TAKES_PERCENT: u64 = 115;

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
    /// Those that may be sent in one request now, with its permit: all of them, or none, and then each
    /// was re-enqueued.
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
        self.wait_for_free(&limit, until_ms, of).await
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
        match self.wait_for_free(limit, until_ms, of).await {
            Some(permit) => Ok(permit),
            None => Err(self.next_turn(limit).await),
        }
    }

    /// A permit, as soon as one is free; `None` if none will be until then.
    async fn wait_for_free(
        &self,
        limit: &Limit<'_>,
        until_ms: u64,
        of: &Invocation<'_>,
    ) -> Option<UsedPermit> {
        let own = limit.own;
        loop {
            // Made before the count is read, or a permit that is freed in between would be missed.
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
            if is_over || now_ms >= of.deadline.stops_ms() || of.limits.is_full() {
                return None;
            }
            // Whoever has them is not waited for only because this one waits.
            let _pause = of.active_work.pause();
            tokio::select! {
                // Random otherwise, and a simulated lifetime has to be repeatable.
                biased;
                () = freed => {}
                // Others may have returned some.
                () = self.ports.sleep(ask_again_ms.saturating_sub(now_ms).max(1)) => {}
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

    /// Takes permits for all deliveries of this process whose turn it is, unless it was refused some a moment ago.
    async fn ask_in_turn(&self, limit: &Limit<'_>) {
        let own = limit.own;
        let _asking = own.asking.lock().await;
        let (now_ms, ends_ms) = (self.ports.now_ms(), self.ends_ms(limit));
        let has_answer = {
            let held = own.held();
            now_ms < held.ask_again_ms || held.free(ends_ms) > 0
        };
        if has_answer {
            return;
        }
        self.ports.sleep(GATHER_MS).await;
        if self.take_permits(limit, own.waited(), false).await.is_err() {
            self.use_share(limit);
        }
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

    /// Takes permits for so many requests, as far as there are any. How many requests are left without.
    async fn take_permits(
        &self,
        limit: &Limit<'_>,
        wanted: u32,
        is_new: bool,
    ) -> Result<u32, Unreachable> {
        let shares = Shares::of(limit.most);
        let mut uncertain = std::mem::take(&mut limit.own.held().uncertain);
        let now_ms = self.ports.now_ms();
        uncertain.retain(|permit| now_ms < permit.until_ms);
        if !uncertain.is_empty() {
            self.give_back(limit, uncertain).await?;
        }
        if let Some(left) = self.exchange_permits(limit, wanted, shares, is_new).await? {
            return Ok(left);
        }
        // As many as wanted, then as many as were left, once those that have expired are gone.
        let mut count = shares.permits_for(wanted);
        for _ in 0..3 {
            if count == 0 {
                break;
            }
            match self.ask_table(limit, count, Vec::new(), shares, is_new).await? {
                PermitAnswer::Taken => {
                    return Ok(wanted.saturating_sub(count.saturating_mul(shares.requests)));
                }
                PermitAnswer::Refused(refusal) => {
                    count = self.after_refusal(limit, &refusal, shares, is_new).await?.min(count);
                }
            }
        }
        Ok(wanted)
    }

    /// Exchanges permits of this process that are not valid for long enough. `None` if it has none, or no more.
    async fn exchange_permits(
        &self,
        limit: &Limit<'_>,
        wanted: u32,
        shares: Shares,
        is_new: bool,
    ) -> Result<Option<u32>, Unreachable> {
        let old = limit.own.take_too_short(self.ends_ms(limit));
        if old.is_empty() {
            return Ok(None);
        }
        let count = shares.permits_for(wanted).min(u32::try_from(old.len()).unwrap_or(u32::MAX));
        let answer = self.ask_table(limit, count, old.clone(), shares, is_new).await?;
        if answer == PermitAnswer::Taken {
            // The others are probably in use.
            let mut held = limit.own.held();
            held.ask_again_ms = ask_again_ms(held.takes_ms(), self.ports.now_ms());
            return Ok(Some(wanted.saturating_sub(count.saturating_mul(shares.requests))));
        }
        self.give_back(limit, old).await?;
        Ok(None)
    }

    /// Returns permits that this process does not use.
    async fn give_back(&self, limit: &Limit<'_>, permits: Vec<Permit>) -> Result<(), Unreachable> {
        let (takes_ms, now_ms) = (limit.own.held().known_takes_ms(), self.ports.now_ms());
        let returned = self.ports.table().return_permits(&limit.item, &permits, takes_ms, now_ms);
        let answer = self.table_answer(returned, limit.deadline).await;
        answer.inspect_err(|_| limit.own.held().uncertain.extend(permits))
    }

    /// Asks for so many permits, some of them instead of those that this process has.
    async fn ask_table(
        &self,
        limit: &Limit<'_>,
        count: u32,
        instead_of: Vec<Permit>,
        shares: Shares,
        is_new: bool,
    ) -> Result<PermitAnswer, Unreachable> {
        let until_ms = self.ends_ms(limit).saturating_add(MARGIN_MS);
        let take = TakePermits {
            permits: (0..count).map(|_| self.new_permit(until_ms)).collect(),
            instead_of,
            most: shares.permits,
            only_if_nobody_waits: is_new,
        };
        let asked = self.ports.table().take_permits(&limit.item, &take, self.ports.now_ms());
        let Ok(answer) = self.table_answer(asked, limit.deadline).await else {
            limit.own.held().uncertain.extend(take.permits);
            return Err(Unreachable);
        };
        if answer == PermitAnswer::Taken {
            let grants = take.permits.into_iter();
            limit.own.held().add(grants.map(|it| Grant::new(it, shares.requests, true)));
        }
        Ok(answer)
    }

    /// The number of permits to ask for again.
    async fn after_refusal(
        &self,
        limit: &Limit<'_>,
        refusal: &Refusal,
        shares: Shares,
        is_new: bool,
    ) -> Result<u32, Unreachable> {
        let now_ms = self.ports.now_ms();
        let line_until_ms = refusal.line_us.unwrap_or_default() / 1_000;
        {
            let mut held = limit.own.held();
            held.line_until_ms = line_until_ms;
            held.note_taken_elsewhere(refusal.takes_ms);
            // What one of them was taken for is probably over then.
            let longer_ms =
                limit.lasts_ms.saturating_add(MARGIN_MS).saturating_sub(held.takes_ms());
            let first_ms = refusal.given_out.iter().map(|permit| permit.until_ms).min();
            let free_ms = first_ms.unwrap_or_default().saturating_sub(longer_ms);
            let earliest_ms = ask_again_ms(held.takes_ms(), now_ms);
            held.ask_again_ms = free_ms.clamp(earliest_ms, now_ms.saturating_add(ASK_WITHIN_MS));
        }
        if is_new && line_until_ms > now_ms {
            return Ok(0);
        }
        let expired = refusal.expired(now_ms);
        if !expired.is_empty() {
            let returned = self.ports.table().return_permits(&limit.item, &expired, None, now_ms);
            self.table_answer(returned, limit.deadline).await?;
        }
        let gone = u32::try_from(expired.len()).unwrap_or(u32::MAX);
        Ok(refusal.left(shares.permits).saturating_add(gone))
    }

    /// Takes turns for so many deliveries, as far as there are any in the time ahead.
    async fn take_turns(&self, limit: &Limit<'_>, count: u32) -> Result<(), Unreachable> {
        let now_ms = self.ports.now_ms();
        let (takes_ms, ahead_ms, line_until_ms) = {
            let held = limit.own.held();
            let ahead_ms = match held.known_takes_ms() {
                Some(_) => TURNS_AHEAD_MS,
                None => GUESSED_AHEAD_MS,
            };
            (held.takes_ms(), ahead_ms, held.line_until_ms)
        };
        // It is known to be full.
        if line_until_ms >= now_ms.saturating_add(ahead_ms) {
            return Ok(());
        }
        let take = TakePlaces {
            count,
            each_us: (takes_ms.saturating_mul(TAKES_PERCENT * 10) / u64::from(limit.most)).max(1),
            others_wait: line_until_ms > now_ms,
            latest_ms: now_ms.saturating_add(ahead_ms),
            plausible_ms: now_ms.saturating_add(2 * TURNS_AHEAD_MS),
        };
        let asked = self.ports.table().take_places(&limit.item, LineName::Turns, &take, now_ms);
        let line = self.table_answer(asked, limit.deadline).await?;
        let mut held = limit.own.held();
        match line {
            Line::Taken { first_us } => {
                // A place is over when the attempts before it are. Those of one group come back together, in one
                // batch: their process takes the permits once for all.
                let each_ms = (take.each_us / 1_000).max(1);
                let in_group = group(takes_ms, each_ms, limit.most);
                let places_ms = take.places_ms(first_us.saturating_add(take.each_us));
                let places_ms: Vec<u64> = places_ms.collect();
                let groups = places_ms.chunks(in_group);
                held.turns_ms.extend(groups.flat_map(|group| group.iter().map(|_| group[0])));
                held.line_until_ms = first_us.saturating_add(take.all_us()) / 1_000;
            }
            Line::Full { until_ms } => held.line_until_ms = until_ms,
            Line::Overtaken => {}
        }
        Ok(())
    }

    /// While the table cannot be reached, this process makes its share of the requests. Where there are fewer than
    /// functions, only some have one, now these, now those.
    fn use_share(&self, limit: &Limit<'_>) {
        let functions = self.gates.functions;
        let has_one = self.ports.next_jitter().0 % functions < limit.most;
        let share = (limit.most / functions).max(u32::from(has_one));
        let now_ms = self.ports.now_ms();
        let until_ms = self.ends_ms(limit).saturating_add(MARGIN_MS);
        let mut held = limit.own.held();
        held.ask_again_ms = now_ms.saturating_add(ASK_AFTER_MS);
        held.use_share(Grant::new(self.new_permit(until_ms), share, false));
        // Nobody knows of others: each waits for what its process has.
        let new_ones = limit.own.new_ones();
        held.turns_ms.extend((0..new_ones).map(|_| now_ms));
    }

    fn new_permit(&self, until_ms: u64) -> Permit {
        let process = *self.permits.process.get_or_init(|| self.ports.next_jitter().0);
        Permit { until_ms, process, number: self.permits.next_number() }
    }

    /// Returns the permits that nobody needs, so that other processes need not wait for them.
    pub(crate) async fn return_permits(&self, of: &Invocation<'_>) {
        if self.permits.unneeded().is_empty() {
            return;
        }
        // Whoever got what this delivery freed may want a permit now.
        self.ports.sleep(GATHER_MS).await;
        let unneeded = self.permits.unneeded().into_iter();
        let returned = unneeded.map(|own| self.return_unneeded(own, of.deadline));
        contained("return_permits", join_all(returned).map(drop).boxed()).await;
    }

    async fn return_unneeded(&self, own: Arc<OwnPermits>, deadline: &Deadline) {
        let permits = own.take_unneeded();
        let Some(item) = own.item.get().filter(|_| !permits.is_empty()) else { return };
        let takes_ms = own.held().known_takes_ms();
        let returned =
            self.ports.table().return_permits(item, &permits, takes_ms, self.ports.now_ms());
        if self.table_answer(returned, deadline).await.is_err() {
            own.held().uncertain.extend(permits);
        }
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

/// While all permits are in use, the table is not asked for one before.
fn ask_again_ms(takes_ms: u64, now_ms: u64) -> u64 {
    now_ms.saturating_add(takes_ms.clamp(ASK_AFTER_MS, 2 * ASK_AFTER_MS))
}

/// So many deliveries come back together. Those that use the same permits one after the other come in full rounds, so
/// that the next group finds the permits free.
fn group(takes_ms: u64, each_ms: u64, most: u32) -> usize {
    let (shortest_ms, longest_ms) = GROUP_MS;
    let group_ms = (3 * takes_ms).clamp(shortest_ms, longest_ms);
    let most = u64::from(most);
    let count = (group_ms / each_ms).clamp(1, 10);
    let count = if count > most { count - count % most } else { count };
    usize::try_from(count).unwrap_or(1)
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
