//! The cost of a delivery in requests and messages, and the bounds of that cost.
//!
//! Requests: each chain makes at most as many as its policy allows (`verdict::multiplied`).
//!
//! Messages: a message is sent
//! - after an attempt or a postponement that is followed by a wait. A second message follows if the
//!   clock of the receiving process is behind, so that the first one comes early;
//! - after each 900 s of a longer wait, because no delay is longer;
//! - three times per chain in any case: to split a record, as a dead letter, and to a sink;
//! - after a fault: to isolation, again by a repeated invocation (one more chain), or after an
//!   early receive;
//! - for the next turn, if the invocation ran out of time.
//!
//! A dead letter that storage refuses is sent before it is due, 10 s, 1 min and 5 min after its
//! decision, and then every 5 min. If clocks differ, a try may come early by the clock of its
//! process. There are then twice as many tries. A record that waits for the subscriptions is sent
//! after 5, 10, 20 and 40 min, and then once an hour.

use std::collections::BTreeMap;

use delivery::delivery::{Delivery, Hold};
use delivery::ports::QueueName;
use delivery::time::duration::{HOUR_MS, MINUTE_MS, SECOND_MS};
use delivery::waits::DELAY_MAX_MS;
use uuid::Uuid;

use super::queued::Carried;
use super::world::Inner;

/// Messages that each chain may send in any case.
const PER_CHAIN: u64 = 3;
/// Messages of a record before its waits last an hour, and when it moves on.
const PER_RECORD: u64 = 6;
/// Tries to store a dead letter before the tries are 5 min apart.
const TRIES_AT_FIRST: u64 = 3;
/// An invocation lacks time for an attempt only if it has run for longer than this. Response
/// timeouts are cut to the function's timeout less 15 s, and 9 s are reserved for sending.
const TURN_AFTER_MS: u64 = 4 * SECOND_MS;

/// Messages of one kind for one delivery or record.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sends {
    /// All messages, including the excused ones.
    pub(crate) count: u64,
    /// Messages that moved to isolation or to the slow queue, were early, or gave up their turn.
    excused: u64,
    first_ms: u64,
    last_ms: u64,
}

impl Sends {
    fn add(&mut self, now_ms: u64) -> &mut Self {
        if self.count == 0 {
            self.first_ms = now_ms;
        }
        self.count += 1;
        self.last_ms = now_ms;
        self
    }

    /// The number of whole periods between the first and the last message.
    fn periods(&self, period_ms: u64) -> u64 {
        (self.last_ms - self.first_ms) / period_ms
    }
}

/// All messages that were sent.
#[derive(Debug, Default)]
pub(crate) struct Costs {
    /// Messages of deliveries, including the first message of each dead letter.
    pub(crate) deliveries: BTreeMap<Uuid, Sends>,
    /// Messages of waiting dead letters.
    letters: BTreeMap<Uuid, Sends>,
    /// Messages of published records.
    pub(crate) records: BTreeMap<String, Sends>,
}

impl Costs {
    fn sends(&mut self, carried: &Carried, stores: bool) -> Option<&mut Sends> {
        match (carried.id(), carried) {
            (Some(id), _) if stores => Some(self.letters.entry(id).or_default()),
            (Some(id), _) => Some(self.deliveries.entry(id).or_default()),
            (None, Carried::Publication(publication)) => {
                Some(self.records.entry(publication.message.clone()).or_default())
            }
            (
                None,
                Carried::Nothing
                | Carried::Delivery(_)
                | Carried::DeadLetter(_)
                | Carried::ReplayEnd(_),
            ) => None,
        }
    }
}

impl Costs {
    /// Excuses one more message.
    pub(crate) fn excuse(&mut self, carried: &Carried, stores: bool) {
        if let Some(sends) = self.sends(carried, stores) {
            sends.excused += 1;
        }
    }
}

impl Inner {
    /// Counts a message that is sent to a queue, even if the queue refuses it.
    pub(crate) fn count_send(&mut self, queue: QueueName, carried: &Carried, wait_ms: u64) {
        let (now_ms, stores) = (self.now_ms, self.invocation().stores);
        let is_part =
            matches!(carried, Carried::Publication(publication) if publication.part.is_some());
        let moves_on = matches!(queue, QueueName::Isolation | QueueName::Slow);
        let excused = moves_on || is_part || self.check_turn(carried, wait_ms);
        if let Some(sends) = self.ledger.costs.sends(carried, stores) {
            sends.add(now_ms).excused += u64::from(excused);
        }
    }

    /// Excuses one more message, because this one will be received early and sent again.
    pub(crate) fn count_early(&mut self, carried: &Carried) {
        let stores = self.invocation().stores;
        // The function that stores dead letters sends the next message of a dead letter.
        let stores = stores || matches!(carried, Carried::DeadLetter(_));
        self.ledger.costs.excuse(carried, stores);
    }

    /// True if a delivery waits without an attempt. It needs one of these reasons:
    /// - the invocation had no time left, or could not read the subscriptions;
    /// - the delivery waits for a slot of a rate, or for a permit;
    /// - the destination is overloaded, or sent `Retry-After`.
    fn check_turn(&mut self, carried: &Carried, wait_ms: u64) -> bool {
        let Carried::Delivery(delivery) = carried else { return false };
        let invocation = &self.invocations[self.current];
        let given_up = self.gives_up_its_turn(delivery);
        let waits = |hold: Hold| hold.slots.saturating_add(hold.away);
        let slots = self.bases(delivery.id).iter().map(|base| waits(base.hold)).max();
        let got_slot = slots.unwrap_or(0) < waits(delivery.hold);
        let ran_ms = self.now_ms - invocation.started_ms;
        let number = self.ledger.known.get(&delivery.id).and_then(|known| known.subscription);
        let shares =
            |number: usize| self.rules[number].subscription.destination.max_concurrency.is_shared;
        // Other deliveries may hold all permits.
        let excused = invocation.panics > 0
            || invocation.short
            || invocation.unreadable
            || number.is_some_and(shares);
        let waits_for_turn = self.waits_for_turn(delivery, wait_ms);
        if given_up && !excused && !waits_for_turn && ran_ms < TURN_AFTER_MS {
            self.record_violation(delivery.id, "gave up its turn although there was time");
        }
        given_up || got_slot || self.is_left_alone(delivery)
    }

    /// True if a delivery waits once more than it did in its received message.
    pub(crate) fn gives_up_its_turn(&self, delivery: &Delivery) -> bool {
        let waits = |hold: Hold| hold.count + hold.turns + hold.permits;
        let before = self.bases(delivery.id).iter().map(|base| waits(base.hold)).max();
        before.unwrap_or(0) < waits(delivery.hold)
    }
}

/// Deliveries and records with more messages than their attempts, waits and faults explain.
pub(crate) fn too_expensive(world: &Inner) -> Vec<String> {
    let ledger = &world.ledger;
    let mut broken = Vec::new();
    let mut check = |name: String, sends: &Sends, allowed: u64| {
        if sends.count > allowed {
            broken.push(format!("{name}: {} sends, but at most {allowed} are due", sends.count));
        }
    };
    // A delivery that waits for a permit is sent once for each of its turns; `rates` counts them.
    let has_turns = |id: &Uuid| {
        let known = ledger.known.get(id).and_then(|known| known.subscription);
        let rules = known.map(|number| &world.rules[number]);
        rules.is_some_and(|rules| rules.subscription.destination.max_concurrency.is_shared)
    };
    let deliveries = ledger.costs.deliveries.iter();
    for (id, sends) in deliveries.filter(|(id, _)| !has_turns(id)) {
        let chains = u64::from(ledger.chains_allowed(*id).max(1));
        let requests = ledger.seen.get(id).map_or(0, Vec::len) as u64;
        let postponements = ledger.postponements.get(id).map_or(0, Vec::len) as u64;
        let allowed = chains * (PER_CHAIN + sends.periods(DELAY_MAX_MS))
            + 2 * (requests + postponements + sends.excused);
        check(ledger.name(*id), sends, allowed);
    }
    for (id, sends) in &ledger.costs.letters {
        let letters = u64::from(ledger.letters.get(id).copied().unwrap_or(1));
        let chains = letters.max(u64::from(ledger.chains_allowed(*id)));
        // The clocks of different processes differ, so tries may come early.
        let tries_at_first = TRIES_AT_FIRST * if world.limits.processes { 2 } else { 1 };
        let allowed =
            chains * (1 + tries_at_first + 2 * sends.periods(5 * MINUTE_MS)) + sends.excused;
        check(format!("dead letter of {}", ledger.name(*id)), sends, allowed);
    }
    for (message, sends) in &ledger.costs.records {
        let forks = ledger.record_forks.get(message).copied().unwrap_or(0);
        // A reply may have been received several times.
        let record = ledger.has_record(message).then(|| ledger.record_of(message));
        let ids = record.into_iter().flat_map(|record| ledger.ids_of(record));
        let starts = ids.filter_map(|(.., id)| ledger.starts.get(&id)).max().copied().unwrap_or(1);
        let allowed =
            u64::from(starts + forks) * (PER_RECORD + sends.periods(HOUR_MS)) + sends.excused;
        check(format!("record {message}"), sends, allowed);
    }
    broken
}
