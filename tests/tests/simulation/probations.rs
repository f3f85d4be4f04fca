//! Probation of dead destinations, implemented a second time: when it starts and when it ends.
//!
//! A failure is a result that the function got. In a world without faults the function sees
//! everything and has to do exactly this; with faults it may know less than the world does, and
//! never more.

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

/// The longest probation.
const LONGEST_MS: u64 = 5 * MINUTE_MS;
/// Deliveries come back within this time after it.
const SPREAD_MS: u64 = 15 * MINUTE_MS;
/// A delivery is attempted this long before its end, whatever is known of its destination.
const LAST_ATTEMPT_MS: u64 = 5 * SECOND_MS;

/// What is known of one destination.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watch {
    /// Failures less what successes took away, and of which deliveries.
    row: u32,
    /// How long the last probation was.
    lasted_ms: u64,
    of: BTreeSet<Uuid>,
    /// All requests that failed.
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
    /// A delivery comes back at its end, as the probe.
    has_probe: bool,
}

impl Probation {
    /// The earliest and the latest time at which a delivery comes back that is deferred now, were its time to live
    /// endless.
    fn defer(&mut self, now_ms: u64) -> (u64, u64) {
        let is_first = now_ms < self.until_ms && !std::mem::replace(&mut self.has_probe, true);
        if is_first {
            return (self.until_ms, self.until_ms);
        }
        let from_ms = self.until_ms.max(now_ms);
        (from_ms, from_ms + SPREAD_MS.min(from_ms - self.outage_ms))
    }
}

/// How long such a result puts a destination on probation.
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
    /// The function got the result of this exchange.
    fn result_seen(&mut self, ids: &[Uuid], exchange: &Exchange, now_ms: u64) {
        if matches!(
            exchange.result,
            TransportResult::Blocked | TransportResult::Unsendable | TransportResult::Aborted
        ) {
            // Nothing was sent.
            self.probation.iter_mut().for_each(|probation| probation.probing = false);
            return;
        }
        self.row += 1;
        self.of.extend(ids);
        let Some(first_ms) = first_ms(&exchange.result) else {
            self.probation.iter_mut().for_each(|probation| probation.probing = false);
            return;
        };
        let ended_ms = exchange.ended_ms();
        let (lasts_ms, outage_ms) = match self.probation {
            Some(probation) if probation.probing => {
                ((2 * probation.lasts_ms).min(LONGEST_MS), probation.outage_ms)
            }
            None if self.row >= 10 && self.of.len() > 1 => {
                (first_ms.max(self.lasted_ms / 2), ended_ms)
            }
            Some(_) | None => return,
        };
        let (since_ms, until_ms) = (now_ms, ended_ms + lasts_ms);
        let (probing, has_probe) = (false, false);
        let probation = Probation { outage_ms, since_ms, until_ms, lasts_ms, probing, has_probe };
        self.probation = Some(probation);
    }

    /// The function got an answer that is a success.
    fn success_seen(&mut self) {
        if let Some(probation) = self.probation.take() {
            (self.row, self.lasted_ms) = (10, probation.lasts_ms);
        }
        self.row /= 2;
        if self.row == 0 {
            *self = Self { failed: self.failed, ..Self::default() };
        }
    }

    /// A request was given up: if it was the probe, there may be another.
    pub(crate) fn release(&mut self) {
        self.probation.iter_mut().for_each(|probation| probation.probing = false);
    }

    /// A request starts; returns why it is not allowed.
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
    /// A request of these deliveries starts.
    pub(crate) fn watch_request(&mut self, number: usize, ids: &[Uuid]) {
        let (now_ms, [first, ..]) = (self.clock_ms(), ids) else { return };
        let Some(address) = self.address_of(*first) else { return };
        self.check_left_alone(address, ids);
        let watched = self.rules[number].subscription.destination.probation;
        // Deliveries that would end meanwhile are attempted.
        if ids.iter().all(|id| self.ends_soon(number, *id, now_ms)) {
            return;
        }
        if let Some(complaint) =
            self.watches[address].admit(now_ms).filter(|_| watched && self.random.quiet)
        {
            self.record_violation(*first, complaint);
        }
    }

    /// The function gets its result.
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
        // A delivery that follows from a dead letter was published with its message.
        let of_messages = || self.bases(id).iter().map(|base| base.published_ms).min();
        let published_ms = self.ledger.published_ms(id).or_else(of_messages);
        published_ms.is_some_and(|from_ms| now_ms + LAST_ATTEMPT_MS >= from_ms + lives_ms)
    }

    /// When a delivery ends without another attempt. The attempt alone after a refused batch has no end of its
    /// own.
    fn ends_ms(&self, number: usize, delivery: &Delivery) -> u64 {
        let own_ms = self.rules[number].subscription.retry.time_to_live_ms;
        let own_ms = own_ms.filter(|_| delivery.batching != Batching::RetryAlone);
        let delayed_ms = self.delayed_ms(delivery.id);
        let lives_ms = own_ms.map_or(u64::MAX, |own_ms| own_ms + delayed_ms);
        delivery.published_ms + lives_ms.min(LIFETIME_MAX_MS)
    }

    /// A delivery was postponed: only its due time changed, and its destination is on probation.
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
        let possible = watch.failed >= 10 && delivery.due_ms <= latest_ms;
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

    /// Records that a delivery was postponed, also of one whose chains were received together: each
    /// postponement costs a message.
    pub(crate) fn note_deferred(&mut self, delivery: &Delivery, bases: &[Base], wait_ms: u64) {
        let now_ms = self.clock_ms();
        // As long as its destination is left alone, or it waits for its turn.
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

/// Whether the newest history entry of a delivery is a postponement.
pub(crate) fn is_deferred(delivery: &Delivery) -> bool {
    delivery.history.newest().is_some_and(|entry| entry.outcome == Outcome::Probation)
}

/// The entries of a history that are attempts, or may be.
pub(crate) fn entries_of_attempts(delivery: &Delivery) -> (u32, u32) {
    let kept = delivery.history.first().iter().chain(delivery.history.last());
    let attempts = kept.filter(|entry| entry.outcome != Outcome::Probation).count() as u32;
    (attempts, attempts + delivery.history.omitted())
}
