//! Probation of dead destinations, implemented a second time: when it starts and when it ends.
//!
//! A failure is a result that the function got. In a world without faults the function sees
//! everything and has to do exactly this; with faults it may know less than the world does, and
//! never more.

use std::collections::BTreeSet;

use delivery::delivery::outcome::{Exchange, Outcome, TransportResult};
use delivery::delivery::{Batching, Delivery};
use delivery::subscription::profile::LIFETIME_MAX_MS;
use delivery::time::duration::{HOUR_MS, MINUTE_MS, SECOND_MS};
use uuid::Uuid;

use super::queues::delay_ms;
use super::requests::Base;
use super::rules::Expected;
use super::world::Inner;

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
    since_ms: u64,
    until_ms: u64,
    lasts_ms: u64,
    probing: bool,
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
        let lasts_ms = match self.probation {
            Some(probation) if probation.probing => (2 * probation.lasts_ms).min(HOUR_MS),
            None if self.row >= 10 && self.of.len() > 1 => first_ms.max(self.lasted_ms / 2),
            Some(_) | None => return,
        };
        let until_ms = exchange.ended_ms() + lasts_ms;
        self.probation = Some(Probation { since_ms: now_ms, until_ms, lasts_ms, probing: false });
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
    /// A request of these deliveries starts. Replies and dead letters do not go to the destination
    /// and are not counted.
    pub(crate) fn watch_request(&mut self, number: usize, ids: &[Uuid]) {
        self.check_left_alone(number, ids);
        let watched = self.rules[number].subscription.destination.probation;
        let (now_ms, [first, ..]) = (self.clock_ms(), ids) else { return };
        if let Some(complaint) =
            self.watches[number].admit(now_ms).filter(|_| watched && self.random.quiet)
        {
            self.record_violation(*first, complaint);
        }
    }

    /// The function gets its result.
    pub(crate) fn watch_result(&mut self, number: usize, ids: &[Uuid], exchange: &Exchange) {
        let now_ms = self.clock_ms();
        if ids.is_empty() {
            return;
        }
        self.note_load(number, exchange);
        if self.rules[number].expected(&exchange.result) == Expected::Delivered {
            self.watches[number].success_seen();
        } else {
            self.watches[number].result_seen(ids, exchange, now_ms);
        }
    }

    /// When a delivery ends without another attempt. The attempt alone after a refused batch has no end of its
    /// own.
    fn ends_ms(&self, number: usize, delivery: &Delivery) -> u64 {
        let own_ms = self.rules[number].subscription.retry.time_to_live_ms;
        let own_ms = own_ms.filter(|_| delivery.batching != Batching::RetryAlone);
        let lives_ms = own_ms.map_or(LIFETIME_MAX_MS, |own_ms| own_ms + delivery.held_ms);
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
        let watch = &self.watches[number];
        let ends_ms = self.ends_ms(number, delivery);
        let exact = watch.probation.is_some_and(|probation| {
            // While one probes, the others wait for its result, ten seconds at most.
            let after_the_probe_ms = now_ms + probation.lasts_ms.min(10 * SECOND_MS);
            // One that ends meanwhile becomes a dead letter then.
            let until =
                [probation.until_ms, after_the_probe_ms].map(|until_ms| until_ms.min(ends_ms));
            until.contains(&delivery.due_ms) && probation.until_ms > 0
        });
        let possible = watch.failed >= 10 && delivery.due_ms <= now_ms + HOUR_MS;
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
        // As long as it waits for its turn, or its destination is left alone.
        if self.gives_up_its_turn(delivery) || self.is_left_alone(delivery, wait_ms) {
            let postponed = (now_ms, now_ms + delay_ms(wait_ms));
            self.ledger.postponements.entry(delivery.id).or_default().push(postponed);
        }
        if is_deferred(delivery) && bases.iter().all(|base| base.due_ms != delivery.due_ms) {
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
