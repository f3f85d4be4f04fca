//! Deliveries to destinations that keep failing are deferred.

use std::slice;

use delivery::delivery::health::probation::Admission;
use delivery::delivery::health::{DestinationKey, Finding};
use delivery::delivery::outcome::{Exchange, Outcome};
use delivery::subscription::Subscription;
use uuid::Uuid;

use super::{Health, Memory, are_to_destination, key_of};
use crate::progress::InFlightDelivery;

impl Health {
    /// Whether a delivery may be attempted at its destination now, as far as this process knows.
    pub(crate) fn admit(
        &self,
        in_flight: &InFlightDelivery,
        moves: bool,
        now_ms: u64,
    ) -> Admission {
        let subscription = &in_flight.subscription;
        let mut memory = self.memory();
        // Replies and sinks have other addresses, which say nothing about this one.
        if memory.probations.is_empty() || !applies(subscription, slice::from_ref(in_flight)) {
            return Admission::Admitted;
        }
        let key = key_of(subscription);
        if !moves {
            return memory.probations.admit(&key, now_ms);
        }
        // It will be the probe where it is attempted.
        let deferral_ms = memory.probations.deferral_ms(&key, now_ms);
        deferral_ms.map_or(Admission::Admitted, |until_ms| Admission::Deferred { until_ms })
    }

    /// Whether one of these is the probe of its destination.
    pub(crate) fn is_probe(&self, subscription: &Subscription, due: &[InFlightDelivery]) -> bool {
        let memory = self.memory();
        !memory.probations.is_empty()
            && applies(subscription, due)
            && memory.probations.is_probing(&key_of(subscription))
    }

    /// Admitted deliveries were not attempted after all: another one has to be able to probe.
    pub(crate) fn release(&self, subscription: &Subscription, due: &[InFlightDelivery]) {
        let mut memory = self.memory();
        if memory.probations.is_empty() || !applies(subscription, due) {
            return;
        }
        let key = key_of(subscription);
        if memory.probations.release(&key) {
            memory.findings(key, subscription).is_unprobed = true;
        }
    }

    /// The admission of deliveries that are about to be attempted. Unless an outcome is recorded, it is
    /// returned, also if the attempt panics: another delivery has to be able to probe.
    pub(crate) fn admission<'a>(
        &'a self,
        subscription: &'a Subscription,
        due: &'a [InFlightDelivery],
    ) -> Admitted<'a> {
        Admitted { health: self, subscription, due, is_used: false }
    }
}

/// A probe of this process that others may know nothing of yet, or may have claimed before. Dropped, it
/// is none.
pub(crate) struct Probe<'a> {
    health: &'a Health,
    key: DestinationKey,
    is_mine: bool,
}

impl<'a> Probe<'a> {
    pub(crate) fn of(health: &'a Health, key: DestinationKey) -> Self {
        Self { health, key, is_mine: false }
    }

    /// It will be made.
    pub(crate) fn keep(mut self) {
        self.is_mine = true;
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        if !self.is_mine {
            self.health.memory().probations.release(&self.key);
        }
    }
}

/// What an outcome of this time shows.
pub(super) fn found(
    memory: &mut Memory,
    key: DestinationKey,
    subscription: &Subscription,
    due: &[InFlightDelivery],
    (outcome, at_ms): (Outcome, u64),
) -> Option<Finding> {
    if !applies(subscription, due) {
        return None;
    }
    let ids: Vec<Uuid> = due.iter().map(|in_flight| in_flight.delivery.id).collect();
    let probed = memory.probations.is_probing(&key);
    let found = memory.probations.record_outcome(&key, &ids, outcome, at_ms);
    // The outcome says nothing about the destination: another delivery has to probe, of any process.
    if probed && found.is_none() && !memory.probations.is_probing(&key) {
        memory.findings(key, subscription).is_unprobed = true;
    }
    found
}

/// An admission that is used by recording what the attempt brought.
pub(crate) struct Admitted<'a> {
    health: &'a Health,
    subscription: &'a Subscription,
    due: &'a [InFlightDelivery],
    is_used: bool,
}

impl Admitted<'_> {
    /// Records what the attempt brought.
    pub(crate) fn record(mut self, exchange: &Exchange) {
        self.is_used = true;
        self.health.record(self.subscription, self.due, exchange);
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if !self.is_used {
            self.health.release(self.subscription, self.due);
        }
    }
}

fn applies(subscription: &Subscription, due: &[InFlightDelivery]) -> bool {
    subscription.destination.probation && are_to_destination(due)
}
