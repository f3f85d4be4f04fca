//! Overloaded destinations, implemented a second time: which deliveries may wait for a turn, and
//! until when `Retry-After` holds requests back.
//!
//! A process knows only the results of its own requests. The number of concurrent requests is not
//! computed here; property tests check that rule. A delivery may give up its turn only if a
//! response showed overload and other deliveries of its invocation are attempted.

use std::collections::{BTreeMap, BTreeSet};

use delivery::delivery::Delivery;
use delivery::delivery::health::adaptive::MANY;
use delivery::delivery::outcome::{Exchange, TransportResult};
use delivery::time::duration::{HOUR_MS, MINUTE_MS, SECOND_MS};
use uuid::Uuid;

use super::limits::SKEW_MAX_MS;
use super::queued::Queued;
use super::requests::Base;
use super::rules::Expected;
use super::world::Inner;

/// Maximum time between computing a wait and sending its message, if no call is slow.
const SENT_WITHIN_MS: u64 = 500;

/// The load of destinations, as the processes observed it.
#[derive(Debug, Default)]
pub(crate) struct Loads {
    /// Each process with the number of an address that it found overloaded.
    pressed: BTreeSet<(usize, usize)>,
    /// By process and address: when a response with `Retry-After` arrived, and when the wait ends.
    requested: BTreeMap<(usize, usize), Vec<(u64, u64)>>,
}

impl Loads {
    /// True if some process found this destination overloaded.
    pub(crate) fn is_pressed(&self, number: usize) -> bool {
        self.pressed.iter().any(|(_, address)| *address == number)
    }
}

impl Loads {
    /// True if this address sent `Retry-After` to some process.
    pub(crate) fn was_to_be_left_alone(&self, address: usize) -> bool {
        self.requested.keys().any(|(_, requested)| *requested == address)
    }
}

impl Inner {
    /// Records the load that the result of a request shows.
    pub(crate) fn note_load(&mut self, number: usize, address: usize, exchange: &Exchange) {
        let key = (self.invocation().process, address);
        // With many concurrent attempts, longer response times may also have shown overload.
        let of_it = |(subscription, _): &&(usize, Uuid)| *subscription == number;
        if self.invocation().attempted.iter().filter(of_it).count() >= MANY as usize {
            self.loads.pressed.insert(key);
        }
        if self.rules[number].expected(&exchange.result) == Expected::Delivered {
            return;
        }
        let is_too_much = match &exchange.result {
            TransportResult::Answered { status, .. } => matches!(status, 408 | 429 | 503),
            TransportResult::TimedOut => true,
            TransportResult::SocketError
            | TransportResult::ResolutionError
            | TransportResult::TlsError
            | TransportResult::Blocked
            | TransportResult::Unsendable
            | TransportResult::Aborted => false,
        };
        if is_too_much {
            self.loads.pressed.insert(key);
        }
        if let TransportResult::Answered { status: 429 | 503, retry_after: Some(text), .. } =
            &exchange.result
        {
            let asked_ms = text.parse::<u64>().map_or(0, |seconds| seconds * SECOND_MS);
            let ended_ms = exchange.ended_ms();
            let requested = (ended_ms, ended_ms + asked_ms.min(HOUR_MS));
            self.loads.requested.entry(key).or_default().push(requested);
        }
    }

    /// Checks, in a world without faults, that a new request respects `Retry-After`.
    pub(crate) fn check_left_alone(&mut self, address: usize, ids: &[Uuid]) {
        let (now_ms, [first, ..]) = (self.clock_ms(), ids) else { return };
        let key = (self.invocation().process, address);
        let requested = self.loads.requested.get(&key).into_iter().flatten();
        let disobeys =
            requested.clone().any(|(asked_ms, until_ms)| *asked_ms < now_ms && now_ms < *until_ms);
        if disobeys && self.random.quiet && !ids.iter().any(|id| self.is_big(*id)) {
            self.record_violation(*first, "attempted although its destination is to be left alone");
        }
    }

    /// True if a due delivery waits because its destination sent `Retry-After`.
    pub(crate) fn is_left_alone(&self, delivery: &Delivery) -> bool {
        let Some(address) = self.address_of(delivery.id) else { return false };
        // An unchanged due time means that the delivery waits for the rest of an earlier wait.
        if self.bases(delivery.id).iter().any(|base| base.due_ms == delivery.due_ms) {
            return false;
        }
        let invocation = &self.invocations[self.current];
        let slack_ms = if invocation.slow { HOUR_MS } else { SENT_WITHIN_MS };
        let requested = self.loads.requested.get(&(invocation.process, address));
        requested.into_iter().flatten().any(|(_, until_ms)| {
            let left_ms = until_ms.saturating_sub(self.clock_ms());
            // Deliveries are spread over the time that they waited, at most a minute.
            let latest_ms = until_ms + (left_ms + slack_ms).min(MINUTE_MS);
            (*until_ms..=latest_ms).contains(&delivery.due_ms)
        }) && !self.waits_for_its_retry(delivery)
    }

    /// True if the due time is the retry time that follows from the last attempt.
    fn waits_for_its_retry(&self, delivery: &Delivery) -> bool {
        let invocation = &self.invocations[self.current];
        let known = self.ledger.known.get(&delivery.id).and_then(|known| known.subscription);
        let (Some(number), Some(tally)) = (known, invocation.tallies.get(&delivery.id)) else {
            return false;
        };
        let Some((ended_ms, Expected::Retry(least_ms))) = tally.last else { return false };
        let bases = self.bases(delivery.id);
        let first_ms = bases.first().and_then(|base| base.first_ms).or(tally.first_ms);
        let first_ms = first_ms.unwrap_or(ended_ms);
        let (least_ms, most_ms) =
            self.rules[number].wait_ms(delivery.attempts, first_ms, ended_ms, least_ms);
        (ended_ms + least_ms..=ended_ms + most_ms).contains(&delivery.due_ms)
    }

    /// True if a delivery may wait for its turn at an overloaded destination. This requires that:
    /// - the process knows of the overload;
    /// - the invocation has run for `slowAfter`, or has little time;
    /// - the invocation handles other deliveries to the destination;
    /// - the wait follows from the number of turns.
    pub(crate) fn waits_for_turn(&self, delivery: &Delivery, wait_ms: u64) -> bool {
        let invocation = &self.invocations[self.current];
        let number = self.ledger.known.get(&delivery.id).and_then(|known| known.subscription);
        let Some(number) = number else { return false };
        let waited_ms = self.now_ms - invocation.started_ms;
        let destination = &self.rules[number].subscription.destination;
        let waited = waited_ms >= destination.slow_after_ms || invocation.short;
        // A delivery that a fault multiplied may wait for its own copy.
        let is_alone = self.bases(delivery.id).len() == 1;
        let is_other = |(subscription, id): &(usize, Uuid)| {
            *subscription == number && (*id != delivery.id || !is_alone)
        };
        let mut attempted = invocation.attempted.iter();
        // Another delivery may also wait in place: until it is due, for a slot of the rate, or for
        // `Retry-After`.
        let has_rate = destination.max_per_second.is_some();
        let address = self.address_of(delivery.id).unwrap_or_default();
        let key = (invocation.process, address);
        let earliest_ms = invocation.started_ms.saturating_sub(SKEW_MAX_MS);
        let mut requested = self.loads.requested.get(&key).into_iter().flatten();
        let is_asked = requested.any(|(_, until_ms)| *until_ms > earliest_ms);
        let waits_in_place = |held: &Queued| {
            held.carried.delivery().is_some_and(|other| {
                let subscription =
                    self.ledger.known.get(&other.id).and_then(|known| known.subscription);
                let waits = has_rate || is_asked || other.due_ms > earliest_ms;
                subscription.is_some_and(|subscription| is_other(&(subscription, other.id)))
                    && waits
            })
        };
        // A single process runs all invocations, which then share its limit.
        let are_others = invocation.slow
            || !self.limits.processes
            || attempted.any(is_other)
            || invocation.taken.iter().any(|(_, held)| waits_in_place(held));
        let turns_ms = u64::from(delivery.hold.turns.min(30)) * SECOND_MS;
        let is_known = self.loads.pressed.contains(&key);
        is_known && waited && are_others && wait_ms == turns_ms
    }

    /// Checks that a due delivery has a reason to be re-enqueued unchanged.
    pub(crate) fn check_unchanged(&mut self, delivery: &Delivery, base: &Base, wait_ms: u64) {
        let number = self.ledger.known.get(&delivery.id).and_then(|known| known.subscription);
        let Some(number) = number else { return };
        let was = (base.attempts, base.due_ms, base.hold, base.abandoned);
        let is = (delivery.attempts, delivery.due_ms, delivery.hold, delivery.abandoned);
        let was_due = base.due_ms <= self.clock_ms();
        // A delivery keeps its due time if no slot of the rate is free in time. A recovering
        // destination has a rate, too.
        let destination = &self.rules[number].subscription.destination;
        let has_rate = destination.max_per_second.is_some() || destination.probation;
        let is_excused = has_rate || self.invocations[self.current].slow;
        if was == is && was_due && wait_ms > 0 && !is_excused && !self.is_left_alone(delivery) {
            self.record_violation(delivery.id, "has to wait although it is due");
        }
    }
}
