//! Requests permits from the table and returns them. All deliveries that wait in one process share
//! a request.

use std::sync::Arc;

use adapters::runtime::contained;
use delivery::ports::DispatchPorts;
use delivery::table::{Permit, PermitAnswer, Refusal, Shares, Table as _, TakePermits};
use delivery::time::duration::SECOND_MS;
use futures::FutureExt as _;
use futures::future::join_all;

use super::own::{Grant, OwnPermits};
use super::{Limit, MARGIN_MS};
use crate::deadline::Deadline;
use crate::destination::{Destinations, GATHER_MS};
use crate::invocation::Invocation;
use crate::table::Unreachable;

/// Minimum interval between requests to the table while all permits are in use.
const ASK_AFTER_MS: u64 = SECOND_MS;
/// Maximum interval between requests to the table while all permits are in use.
const ASK_WITHIN_MS: u64 = 30 * SECOND_MS;
/// Maximum number of tries while other processes take and return permits.
const TRIES: u32 = 3;

impl<P: DispatchPorts> Destinations<P> {
    /// Takes permits for all deliveries of this process whose turn has come. Makes no request if
    /// the table has just refused a request.
    pub(super) async fn ask_in_turn(&self, limit: &Limit<'_>) {
        let own = limit.own;
        let _asking = own.asking.lock().await;
        let (now_ms, ends_ms) = (self.now_ms(), self.ends_ms(limit));
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

    /// Takes permits for up to `wanted` requests. Returns the number of requests that got no
    /// permit.
    pub(super) async fn take_permits(
        &self,
        limit: &Limit<'_>,
        wanted: u32,
        is_new: bool,
    ) -> Result<u32, Unreachable> {
        let shares = Shares::new(limit.most);
        let mut uncertain = std::mem::take(&mut limit.own.held().uncertain);
        let now_ms = self.now_ms();
        uncertain.retain(|permit| now_ms < permit.until_ms);
        if !uncertain.is_empty() {
            self.give_back(limit, uncertain).await?;
        }
        if let Some(left) = self.exchange_permits(limit, wanted, shares, is_new).await? {
            return Ok(left);
        }
        // The first try asks for all. Later tries ask for as many as the table had left, including
        // removed expired permits.
        let mut count = shares.permits_for(wanted);
        for _ in 0..TRIES {
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

    /// Replaces permits of this process that expire too early with new permits. Returns `None` if
    /// no permit expires too early, or the table refuses.
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
        let answer = self.ask_table(limit, count, old.clone(), shares, is_new).await;
        let answer = answer.inspect_err(|_| limit.own.held().uncertain.extend(old.clone()))?;
        if answer == PermitAnswer::Taken {
            // The other permits are probably in use.
            let mut held = limit.own.held();
            held.ask_again_ms = ask_again_ms(held.takes_ms(), self.now_ms());
            return Ok(Some(wanted.saturating_sub(count.saturating_mul(shares.requests))));
        }
        self.give_back(limit, old).await?;
        Ok(None)
    }

    /// Returns permits of this process to the table.
    async fn give_back(&self, limit: &Limit<'_>, permits: Vec<Permit>) -> Result<(), Unreachable> {
        let (takes_ms, now_ms) = (limit.own.held().known_takes_ms(), self.now_ms());
        let returned = self.table.port().return_permits(&limit.item, &permits, takes_ms, now_ms);
        let answer = self.table.answer(returned, limit.deadline).await;
        answer.inspect_err(|_| limit.own.held().uncertain.extend(permits))
    }

    /// Requests `count` permits from the table, and returns the permits in `instead_of` in the same
    /// request.
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
        let asked = self.table.port().take_permits(&limit.item, &take, self.now_ms());
        let Ok(answer) = self.table.answer(asked, limit.deadline).await else {
            self.permits.note_held(limit.key, limit.own);
            limit.own.held().uncertain.extend(take.permits);
            return Err(Unreachable);
        };
        if answer == PermitAnswer::Taken {
            self.permits.note_held(limit.key, limit.own);
            let grants = take.permits.into_iter();
            limit.own.held().add(grants.map(|permit| Grant::new(permit, shares.requests, true)));
        }
        Ok(answer)
    }

    /// Adopts the state that the table returns with a refusal, and removes expired permits from the
    /// table. Returns the number of permits to request next.
    async fn after_refusal(
        &self,
        limit: &Limit<'_>,
        refusal: &Refusal,
        shares: Shares,
        is_new: bool,
    ) -> Result<u32, Unreachable> {
        let now_ms = self.now_ms();
        let line_until_ms = refusal.line_us.unwrap_or_default() / 1_000;
        {
            let mut held = limit.own.held();
            held.line_until_ms = line_until_ms;
            held.note_taken_elsewhere(refusal.takes_ms);
            // Most attempts end before their permit expires, so the next request is earlier than
            // the expiry.
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
            let returned = self.table.port().return_permits(&limit.item, &expired, None, now_ms);
            self.table.answer(returned, limit.deadline).await?;
        }
        let gone = u32::try_from(expired.len()).unwrap_or(u32::MAX);
        Ok(refusal.left(shares.permits).saturating_add(gone))
    }

    /// Limits this process to its share of the requests while the table is unreachable. If the
    /// limit is below the number of functions, each function draws at random whether it may send.
    pub(super) fn use_share(&self, limit: &Limit<'_>) {
        let functions = self.functions;
        let now_ms = self.now_ms();
        let until_ms = self.ends_ms(limit).saturating_add(MARGIN_MS);
        let mut held = limit.own.held();
        let share = held.share(now_ms, || {
            let has_one = self.ports.next_jitter().0 % functions < limit.most;
            (limit.most / functions).max(u32::from(has_one))
        });
        held.ask_again_ms = now_ms.saturating_add(ASK_AFTER_MS);
        held.use_share(Grant::new(self.new_permit(until_ms), share, false));
        // The queue of other processes is unknown, so each delivery waits for the permits of its
        // own process.
        let new_ones = limit.own.new_ones();
        held.turns_ms.extend((0..new_ones).map(|_| now_ms.saturating_add(GATHER_MS)));
    }

    fn new_permit(&self, until_ms: u64) -> Permit {
        let process = *self.permits.process.get_or_init(|| self.ports.next_jitter().0);
        Permit { until_ms, process, number: self.permits.next_number() }
    }

    /// Returns unneeded permits to the table, so that other processes do not wait for them.
    pub(crate) async fn return_permits(&self, invocation: &Invocation<'_>) {
        if self.permits.unneeded().is_empty() {
            return;
        }
        // Another delivery of this process may need a permit now.
        self.ports.sleep(GATHER_MS).await;
        let unneeded = self.permits.unneeded().into_iter();
        let returned = unneeded.map(|own| self.return_unneeded(own, invocation.deadline));
        contained("return_permits", join_all(returned).map(drop).boxed()).await;
    }

    async fn return_unneeded(&self, own: Arc<OwnPermits>, deadline: &Deadline) {
        let permits = own.take_unneeded();
        let Some(item) = own.item.get().filter(|_| !permits.is_empty()) else { return };
        let takes_ms = own.held().known_takes_ms();
        let returned = self.table.port().return_permits(item, &permits, takes_ms, self.now_ms());
        if self.table.answer(returned, deadline).await.is_err() {
            own.held().uncertain.extend(permits);
        }
    }
}

/// Returns the time of the next request to the table while all permits are in use.
fn ask_again_ms(takes_ms: u64, now_ms: u64) -> u64 {
    now_ms.saturating_add(takes_ms.clamp(ASK_AFTER_MS, 2 * ASK_AFTER_MS))
}
