//! What a delivery costs: the requests and the messages that are sent for it, and their bounds.
//!
//! Requests: each chain makes as many as its policy allows (`verdict::multiplied`).
//!
//! Messages: a message is sent
//! - after an attempt or a postponement that is followed by a wait. A second one, if the clock of the
//!   process that receives it is behind that of the one that sent it, so that it comes early;
//! - after each 900 s of a longer wait, as no delay is longer;
//! - three times per chain whatever happens: to be split off, as a dead letter, and to a sink;
//! - after a fault: moved to isolation, sent again by the repeated invocation (a chain more), received
//!   early; and for the next turn, if its invocation ran out of time.
//!
//! A dead letter that storage refuses is sent before it is due, 10 s, 1 min and 5 min after its
//! decision, and then every 5 min. Where clocks differ, a try may come early by the clock of its
//! process: then there are twice as many. A record that waits for the subscriptions is sent after 5,
//! 10, 20 and 40 min, and then once an hour.

use std::collections::BTreeMap;

use delivery::delivery::{Delivery, Hold};
use delivery::ports::QueueName;
use delivery::time::duration::{HOUR_MS, MINUTE_MS, SECOND_MS};
use delivery::waits::DELAY_MAX_MS;
use uuid::Uuid;

use super::queued::Carried;
use super::world::Inner;

/// Messages per chain, whatever happens.
const PER_CHAIN: u64 = 3;
/// Messages of a record before it waits an hour each time, and when it moves on.
const PER_RECORD: u64 = 6;
/// Tries to store a dead letter before they are 5 min apart.
const TRIES_AT_FIRST: u64 = 3;
/// An attempt that is refused for lack of time would end later than this after its invocation began:
/// response timeouts are cut to the function's timeout less 15 s, and 9 s are left for sending.
const TURN_AFTER_MS: u64 = 4 * SECOND_MS;

/// Messages of one kind for one delivery or record.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sends {
    /// All.
    pub(crate) count: u64,
    /// Those that moved to isolation or to the slow lane, were early, or gave up their turn.
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

    /// How many periods passed from the first to the last.
    fn periods(&self, period_ms: u64) -> u64 {
        (self.last_ms - self.first_ms) / period_ms
    }
}

/// All messages that were sent.
#[derive(Debug, Default)]
pub(crate) struct Costs {
    /// Of deliveries, with the first message of a dead letter.
    pub(crate) deliveries: BTreeMap<Uuid, Sends>,
    /// Of dead letters that wait.
    letters: BTreeMap<Uuid, Sends>,
    /// Of published records.
    pub(crate) records: BTreeMap<String, Sends>,
}

impl Costs {
    fn of(&mut self, carried: &Carried, stores: bool) -> Option<&mut Sends> {
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
    /// One message more is explained.
    pub(crate) fn excuse(&mut self, carried: &Carried, stores: bool) {
        if let Some(sends) = self.of(carried, stores) {
            sends.excused += 1;
        }
    }
}

impl Inner {
    /// Counts a message that is sent, or that a queue refuses.
    pub(crate) fn count_send(&mut self, queue: QueueName, carried: &Carried, wait_ms: u64) {
        let (now_ms, stores) = (self.now_ms, self.invocation().stores);
        let is_part = matches!(carried, Carried::Publication(of) if of.part.is_some());
        let moves_on = matches!(queue, QueueName::Isolation | QueueName::Slow);
        let excused = moves_on || is_part || self.check_turn(carried, wait_ms);
        if let Some(sends) = self.ledger.costs.of(carried, stores) {
            sends.add(now_ms).excused += u64::from(excused);
        }
    }

    /// A message will be received early, and be sent once more.
    pub(crate) fn count_early(&mut self, carried: &Carried) {
        let stores = self.invocation().stores;
        // The next to send a dead letter is the function that stores it.
        let stores = stores || matches!(carried, Carried::DeadLetter(_));
        self.ledger.costs.excuse(carried, stores);
    }

    /// A delivery waits without an attempt because its invocation had no time left, or did not know
    /// the subscriptions. Or because it waits for a slot of its destination's rate, or for a turn where
    /// that has too much to do, or is to be left alone.
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
        // Others may have all permits.
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

    /// Whether a delivery waits once more than it did when it was received.
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
    // A delivery that waits for a permit is sent for each of its turns: `rates` counts them.
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
        // Clocks of different processes differ.
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
