//! What this process knows of destinations that are not healthy: those that keep failing, and those
//! that are slow to answer. It lives as long as the process, over many invocations.
//!
//! The rules are `delivery::delivery::health`. This folder applies them before each attempt
//! ([`failing`], [`slow`]), records what each attempt showed, and keeps what is told to other processes and
//! learnt from them ([`exchange`]).

mod exchange;
mod failing;
mod slow;

pub use exchange::READ_EVERY_MS;
pub(crate) use exchange::UNREACHABLE_MS;
pub(crate) use failing::Probe;

use std::collections::BTreeMap;
use std::slice;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use adapters::telemetry;
use delivery::delivery::DeliveryTarget;
use delivery::delivery::health::probation::Probations;
use delivery::delivery::health::shared::{Attempted, Findings};
use delivery::delivery::health::slow::SlowDestinations;
use delivery::delivery::health::{DestinationKey, Finding};
use delivery::delivery::outcome::{Exchange, Outcome};
use delivery::subscription::{Disabled, Subscription};

use crate::progress::InFlightDelivery;

/// The destinations that are not healthy, as far as this process knows.
#[derive(Debug, Default)]
pub(crate) struct Health {
    memory: Mutex<Memory>,
    /// Until when nothing is moved to the slow lane, because it refused a message.
    lane_refused_until_ms: AtomicU64,
}

#[derive(Debug, Default)]
struct Memory {
    probations: Probations<DestinationKey>,
    slow: SlowDestinations<DestinationKey>,
    /// As an operator said, or because they failed for too long.
    disabled: BTreeMap<DestinationKey, Switch>,
    /// What other processes cannot know yet.
    unshared: BTreeMap<DestinationKey, Findings>,
    /// When it read the news last.
    read_ms: Option<u64>,
    /// Until when the table is not asked, because it did not answer.
    unreachable_until_ms: u64,
    /// When it is logged again that it did not.
    log_next_ms: u64,
}

/// The switch of a disabled destination.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Switch {
    pub(crate) disabled: Disabled,
    /// Its item says so, and not only the news: whoever may tell which topics were changed may write any news.
    pub(crate) is_certain: bool,
}

impl Memory {
    fn findings(&mut self, key: DestinationKey, subscription: &Subscription) -> &mut Findings {
        let findings = self.unshared.entry(key).or_insert_with(|| {
            Findings::new(subscription.destination.display(), subscription.name.to_string())
        });
        findings.disable = subscription.destination.disable;
        findings
    }
}

impl Health {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The switch of this delivery's destination, if that is disabled.
    pub(crate) fn switch(&self, in_flight: &InFlightDelivery) -> Option<Switch> {
        let memory = self.memory();
        // Nearly always none is: then no address is hashed.
        if memory.disabled.is_empty() || !are_to_destination(slice::from_ref(in_flight)) {
            return None;
        }
        memory.disabled.get(&key_of(&in_flight.subscription)).copied()
    }

    /// Records what an attempt showed about its destination.
    fn record(&self, subscription: &Subscription, due: &[InFlightDelivery], exchange: &Exchange) {
        if !are_to_destination(due) {
            return;
        }
        let (outcome, is_slow) =
            (exchange.outcome(&subscription.retry), is_slow(subscription, exchange));
        let mut memory = self.memory();
        // Nearly always: then no address is hashed.
        let is_known = !memory.probations.is_empty() || !memory.slow.is_empty();
        if outcome == Outcome::Success && !is_slow && !is_known {
            return;
        }
        let (key, at_ms) = (key_of(subscription), exchange.ended_ms());
        let failing = failing::found(&mut memory, key, subscription, due, (outcome, at_ms));
        let slow = slow::found(&mut memory, key, exchange, is_slow);
        if failing.is_some() || slow.is_some() {
            let (started_ms, took_ms) = (exchange.started_ms, exchange.duration_ms);
            let attempted = Attempted::new(started_ms, outcome, exchange.status(), took_ms);
            let findings = memory.findings(key, subscription);
            findings.failing = failing.map(|found| (found, at_ms)).or(findings.failing);
            findings.slow = slow.map(|found| (found, at_ms)).or(findings.slow);
            findings.add_attempt(attempted);
        }
        drop(memory);
        report(subscription, outcome, failing, slow);
    }
}

fn report(
    subscription: &Subscription,
    outcome: Outcome,
    failing: Option<Finding>,
    slow: Option<Finding>,
) {
    if let Some(found) = failing {
        telemetry::probation(subscription, outcome, found);
    }
    if let Some(found) = slow {
        telemetry::slow_destination(subscription, found);
    }
}

fn is_slow(subscription: &Subscription, exchange: &Exchange) -> bool {
    exchange.duration_ms > subscription.destination.slow_after_ms
}

pub(crate) fn key_of(subscription: &Subscription) -> DestinationKey {
    DestinationKey::of_subscription(subscription)
}

/// Whether an attempt of these deliveries says something about the destination: replies and sinks have
/// other addresses.
pub(crate) fn are_to_destination(due: &[InFlightDelivery]) -> bool {
    due.iter().all(|one| one.delivery.target == DeliveryTarget::Destination)
}
