//! Probation of dead destinations, implemented a second time: when it starts and when it ends.
//!
//! A failure is a result that the function received. Without faults, the function sees every
//! result, so its probations must match exactly. With faults, it may see fewer results than the
//! world, but never more.

use std::collections::BTreeSet;

use delivery::delivery::outcome::{Exchange, Outcome, TransportResult};
use delivery::delivery::{Batching, Delivery};
use delivery::subscription::profile::LIFETIME_MAX_MS;
use delivery::time::duration::{MINUTE_MS, SECOND_MS};
use uuid::Uuid;

use super::limits::SKEW_MAX_MS;
use super::queues::delay_ms;
use super::requests::Base;
use super::rules::Expected;
use super::world::Inner;

/// Maximum duration of a probation.
const LONGEST_MS: u64 = 5 * MINUTE_MS;
/// Deferred deliveries return within this time after the end of probation.
const SPREAD_MS: u64 = 15 * MINUTE_MS;
/// A delivery is attempted this long before its time to live ends, even during probation.
const LAST_ATTEMPT_MS: u64 = 5 * SECOND_MS;

/// The failures and the probation of one destination.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watch {
    /// Recent failures: each failure adds one, and a success halves the number.
    row: u32,
    /// Duration of the last probation.
    lasted_ms: u64,
    deliveries: BTreeSet<Uuid>,
    /// The number of all failed requests.
    pub(crate) failed: u32,
    probation: Option<Probation>,
}

#[derive(Debug, Clone, Copy)]
struct Probation {
    /// The end of the attempt that began the first probation of the outage.
    outage_ms: u64,
    since_ms: u64,
    until_ms: u64,
    lasts_ms: u64,
    probing: bool,
    /// True if a deferred delivery returns at the end of the period, as the probe.
    has_probe: bool,
}

impl Probation {
    /// The earliest and the latest return of a delivery that is deferred now, regardless of its
    /// time to live.
    fn defer(&mut self, now_ms: u64) -> (u64, u64) {
        let is_first = now_ms < self.until_ms && !std::mem::replace(&mut self.has_probe, true);
        if is_first {
            return (self.until_ms, self.until_ms);
        }
        let from_ms = self.until_ms.max(now_ms);
        (from_ms, from_ms + SPREAD_MS.min(from_ms - self.outage_ms))
    }
}

/// Duration of the first probation after such a result; `None` if the result begins no probation.
fn first_ms(result: &TransportResult) -> Option<u64> {
    match result {
        TransportResult::Answered { status: 408 | 429 | 503, .. } | TransportResult::TimedOut => {
            Some(10 * SECOND_MS)
        }
        TransportResult::SocketError | TransportResult::TlsError => Some(30 * SECOND_MS),
        TransportResult::Answered { status: 401 | 403 | 404, .. }
        | TransportResult::ResolutionError => Some(5 * MINUTE_MS),
        TransportResult::Answered { status: 500..=599, .. } => Some(30 * SECOND_MS),
        TransportResult::Answered { .. }
        | TransportResult::Blocked
        | TransportResult::Unsendable
        | TransportResult::Aborted => None,
    }
}

impl Watch {
    /// Records a failed exchange, which may begin a probation or make it longer.
    fn result_seen(&mut self, ids: &[Uuid], exchange: &Exchange, now_ms: u64) {
        if matches!(
            exchange.result,
            TransportResult::Blocked | TransportResult::Unsendable | TransportResult::Aborted
        ) {
            // No request was sent.
            self.probation.iter_mut().for_each(|probation| probation.probing = false);
            return;
        }
        self.row += 1;
        self.deliveries.extend(ids);
        let Some(first_ms) = first_ms(&exchange.result) else {
            self.probation.iter_mut().for_each(|probation| probation.probing = false);
            return;
        };
        let ended_ms = exchange.ended_ms();
        let (lasts_ms, outage_ms) = match self.probation {
            Some(probation) if probation.probing => {
                ((2 * probation.lasts_ms).min(LONGEST_MS), probation.outage_ms)
            }
            None if self.row >= 10 && self.deliveries.len() > 1 => {
                (first_ms.max(self.lasted_ms / 2), ended_ms)
            }
            Some(_) | None => return,
        };
        let (since_ms, until_ms) = (now_ms, ended_ms + lasts_ms);
        let (probing, has_probe) = (false, false);
        let probation = Probation { outage_ms, since_ms, until_ms, lasts_ms, probing, has_probe };
        self.probation = Some(probation);
    }

    /// Records a success, which ends a probation.
    fn success_seen(&mut self) {
        if let Some(probation) = self.probation.take() {
            (self.row, self.lasted_ms) = (10, probation.lasts_ms);
        }
        self.row /= 2;
        if self.row == 0 {
            *self = Self { failed: self.failed, ..Self::default() };
        }
    }

    /// True if the destination has failed often enough for a probation.
    pub(crate) fn may_have_been_on_probation(&self) -> bool {
        self.failed >= 10
    }

    /// Records that a request was abandoned. If it was the probe, another probe may follow.
    pub(crate) fn release(&mut self) {
        self.probation.iter_mut().for_each(|probation| probation.probing = false);
    }

    /// Records the start of a request; returns a complaint if the request is not allowed.
    fn admit(&mut self, now_ms: u64) -> Option<&'static str> {
        let probation = self.probation.as_mut().filter(|probation| probation.since_ms < now_ms)?;
        if now_ms < probation.until_ms {
            return Some("attempted although its destination is on probation");
        }
        let second = std::mem::replace(&mut probation.probing, true);
        second.then_some("attempted although another delivery probes")
    }
}

impl Inner {
    /// Checks the start of a request for these deliveries.
    pub(crate) fn watch_request(&mut self, number: usize, ids: &[Uuid]) {
        let (now_ms, [first, ..]) = (self.clock_ms(), ids) else { return };
        let Some(address) = self.address_of(*first) else { return };
        self.check_left_alone(address, ids);
        let watched = self.rules[number].subscription.destination.probation;
        // Deliveries that would end during probation are attempted.
        if ids.iter().all(|id| self.ends_soon(number, *id, now_ms)) {
            return;
        }
        // So are deliveries whose state no message can carry. Such a delivery may be the probe.
        let checks = watched && self.random.quiet && !ids.iter().all(|id| self.is_big(*id));
        if let Some(complaint) = self.watches[address].admit(now_ms).filter(|_| checks) {
            self.record_violation(*first, complaint);
        }
    }

    /// Records the result of a request for these deliveries.
    pub(crate) fn watch_result(&mut self, number: usize, ids: &[Uuid], exchange: &Exchange) {
        let now_ms = self.clock_ms();
        let Some(address) = ids.first().and_then(|id| self.address_of(*id)) else { return };
        self.note_load(number, address, exchange);
        if self.rules[number].expected(&exchange.result) == Expected::Delivered {
            self.watches[address].success_seen();
        } else {
            self.watches[address].result_seen(ids, exchange, now_ms);
        }
    }

    /// True at the last chance to attempt a delivery.
    fn ends_soon(&self, number: usize, id: Uuid, now_ms: u64) -> bool {
        let lives_ms = self.rules[number].subscription.retry.time_to_live_ms;
        let own_ms = lives_ms.map_or(u64::MAX, |own_ms| own_ms + self.delayed_ms(id));
        let lives_ms = own_ms.min(LIFETIME_MAX_MS);
        // A delivery that follows from a dead letter has the publication time of its message.
        let of_messages = || self.bases(id).iter().map(|base| base.published_ms).min();
        let published_ms = self.ledger.published_ms(id).or_else(of_messages);
        published_ms.is_some_and(|from_ms| now_ms + LAST_ATTEMPT_MS >= from_ms + lives_ms)
    }

    /// True if the event of a delivery leaves no room for a state in its message.
    pub(crate) fn is_big(&self, id: Uuid) -> bool {
        self.ledger.published[self.ledger.known[&id].record].1.big
    }

    /// The time at which a delivery ends without another attempt. A retry alone after a refused
    /// batch ignores the time to live.
    fn ends_ms(&self, number: usize, delivery: &Delivery) -> u64 {
        let own_ms = self.rules[number].subscription.retry.time_to_live_ms;
        let own_ms = own_ms.filter(|_| delivery.batching != Batching::RetryAlone);
        let delayed_ms = self.delayed_ms(delivery.id);
        let lives_ms = own_ms.map_or(u64::MAX, |own_ms| own_ms + delayed_ms);
        delivery.published_ms + lives_ms.min(LIFETIME_MAX_MS)
    }

    /// Checks a deferred delivery. Its destination must be on probation, and its new due time must
    /// follow from that probation.
    pub(crate) fn check_deferred(
        &mut self,
        number: usize,
        delivery: &Delivery,
        base: &Base,
        requests: u32,
    ) {
        let (id, now_ms) = (delivery.id, self.clock_ms());
        let last_ms = self.ends_ms(number, delivery).saturating_sub(LAST_ATTEMPT_MS);
        let Some(address) = self.address_of(id) else { return };
        let watch = &mut self.watches[address];
        let exact = watch.probation.as_mut().is_some_and(|probation| {
            let (from_ms, until_ms) = probation.defer(now_ms);
            (from_ms.min(last_ms)..=until_ms.min(last_ms)).contains(&delivery.due_ms)
        });
        let latest_ms = now_ms + LONGEST_MS + SPREAD_MS + SKEW_MAX_MS;
        let possible = watch.may_have_been_on_probation() && delivery.due_ms <= latest_ms;
        let watched = self.rules[number].subscription.destination.probation;
        if !watched || !possible || (self.random.quiet && !exact) {
            self.record_violation(
                id,
                &format!(
                    "postponed until {} although its destination is on no such probation",
                    delivery.due_ms
                ),
            );
        }
        if requests == 0 && delivery.due_ms <= base.due_ms {
            self.record_violation(id, "postponed to an earlier time");
        }
    }

    /// Records that a delivery was postponed, because each postponement costs a message. This
    /// includes a delivery whose chains were received together.
    pub(crate) fn note_deferred(&mut self, delivery: &Delivery, bases: &[Base], wait_ms: u64) {
        let now_ms = self.clock_ms();
        // The delivery waits for `Retry-After`, or for its turn.
        let until_ms = if self.is_left_alone(delivery) {
            Some(delivery.due_ms)
        } else {
            self.gives_up_its_turn(delivery).then(|| now_ms + delay_ms(wait_ms))
        };
        if let Some(until_ms) = until_ms {
            let postponed = (now_ms, until_ms);
            self.ledger.postponements.entry(delivery.id).or_default().push(postponed);
        }
        let is_left_alone = self.is_left_alone(delivery);
        let is_later = bases.iter().all(|base| base.due_ms != delivery.due_ms);
        if is_deferred(delivery) && is_later && !is_left_alone {
            let postponed = (self.clock_ms(), delivery.due_ms);
            self.ledger.postponements.entry(delivery.id).or_default().push(postponed);
        }
    }
}

/// True if the newest history entry of a delivery has the outcome `Probation`.
pub(crate) fn is_deferred(delivery: &Delivery) -> bool {
    delivery.history.newest().is_some_and(|entry| entry.outcome == Outcome::Probation)
}

/// The smallest and the largest number of attempts in a history. Omitted entries may be attempts.
pub(crate) fn entries_of_attempts(delivery: &Delivery) -> (u32, u32) {
    let kept = delivery.history.first().iter().chain(delivery.history.last());
    let attempts = kept.filter(|entry| entry.outcome != Outcome::Probation).count() as u32;
    (attempts, attempts + delivery.history.omitted())
}
