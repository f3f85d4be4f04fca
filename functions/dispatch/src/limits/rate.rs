//! A destination that takes so many requests a second (`maxPerSecond`) gets no more, from all processes
//! together.
//!
//! The rule is `delivery::delivery::health::slots`. Here slots are reserved in the shared document, once
//! for all deliveries of an invocation that wait for them, and used: at once, after a short wait in
//! place, or later, and then the delivery is re-enqueued until its slot. That is not an attempt, and its
//! time to live continues. While storage is down, each process keeps to its share of the rate.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use adapters::telemetry::{self, HoldReason};
use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::slots::{LATE_MS, OwnSlots, Slots};
use delivery::delivery::{Delivery, DeliveryTarget};
use delivery::machine::step::End;
use delivery::ports::DispatchPorts;
use delivery::subscription::Subscription;
use futures::FutureExt as _;

use crate::deadline::Deadline;
use crate::dispatch::{Dispatch, IN_PLACE_BELOW_MS, Invocation};
use crate::progress::{InFlightDelivery, Unfinished};

/// Before slots are reserved, the other deliveries of the invocation may ask for theirs: then it is one
/// reservation for all.
const GATHER_MS: u64 = 5;

/// The destinations with a rate that this process has sent to.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<HashMap<DestinationKey, Arc<RateOfOne>>>);

/// The slots of one destination that this process has.
#[derive(Debug, Default)]
struct RateOfOne {
    /// How many slots those who wait for the lock want.
    wanted: AtomicU32,
    own: tokio::sync::Mutex<Own>,
}

#[derive(Debug, Default)]
struct Own {
    slots: OwnSlots,
    /// The slots of this process's share, while storage is down.
    share: Slots,
}

impl Rates {
    fn of(&self, key: DestinationKey) -> Arc<RateOfOne> {
        let mut rates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(rates.entry(key).or_default())
    }
}

impl<P: DispatchPorts> Dispatch<P> {
    /// Those that may be sent in one request now: all of them, or none, and then each was re-enqueued
    /// until its slot.
    pub(crate) async fn take_slot(
        &self,
        due: Vec<InFlightDelivery>,
        subscription: &Subscription,
        of: &Invocation<'_>,
    ) -> Vec<InFlightDelivery> {
        let Some(per_second) = subscription.destination.max_per_second else { return due };
        let now_ms = self.ports.now_ms();
        let to_destination =
            |one: &InFlightDelivery| one.delivery.target == DeliveryTarget::Destination;
        if !due.iter().any(to_destination) || due.iter().any(|one| has_slot(&one.delivery, now_ms))
        {
            return due;
        }
        self.wait_for_slot(due, subscription, per_second, of).boxed().await
    }

    async fn wait_for_slot(
        &self,
        due: Vec<InFlightDelivery>,
        subscription: &Subscription,
        per_second: u32,
        of: &Invocation<'_>,
    ) -> Vec<InFlightDelivery> {
        let key = DestinationKey::of(&subscription.destination.url);
        let first_ms = self.next_slot(key, per_second, of.deadline).await;
        let wait_ms = first_ms.saturating_sub(self.ports.now_ms());
        if wait_ms <= IN_PLACE_BELOW_MS {
            self.ports.sleep(wait_ms).await;
            return due;
        }
        // Admitted on arrival but not sent: another delivery has to be able to probe.
        self.health.release(subscription, &due);
        let (mut leaving, mut slot_ms) = (Vec::new(), Some(first_ms));
        for mut in_flight in due {
            // They may come back apart, so each needs a slot of its own.
            let due_ms = match slot_ms.take() {
                Some(slot_ms) => slot_ms,
                None => self.next_slot(key, per_second, of.deadline).await,
            };
            in_flight.delivery.wait_for_slot(due_ms);
            let wait_ms = due_ms.saturating_sub(self.ports.now_ms());
            telemetry::held(&in_flight.delivery, HoldReason::Rate, wait_ms);
            leaving.push(Unfinished { in_flight, end: End::Retry { wait_ms } });
        }
        self.finish_all(of, leaving).await;
        Vec::new()
    }

    /// When the next slot is that nobody else has.
    async fn next_slot(&self, key: DestinationKey, per_second: u32, deadline: &Deadline) -> u64 {
        let rate = self.rates.of(key);
        rate.wanted.fetch_add(1, Ordering::Relaxed);
        let mut own = rate.own.lock().await;
        let mut slot_ms = own.slots.take(self.ports.now_ms());
        if slot_ms.is_none() {
            self.ports.sleep(GATHER_MS).await;
            self.reserve_slots(&rate.wanted, &mut own, key, per_second, deadline).await;
            slot_ms = own.slots.take(self.ports.now_ms());
        }
        rate.wanted.fetch_sub(1, Ordering::Relaxed);
        // Only an answer that took very long can have brought slots that are over.
        slot_ms.unwrap_or_else(|| self.ports.now_ms())
    }

    async fn reserve_slots(
        &self,
        wanted: &AtomicU32,
        own: &mut Own,
        key: DestinationKey,
        per_second: u32,
        deadline: &Deadline,
    ) {
        let ahead = own.slots.per_second(self.ports.now_ms());
        let reserve = |slots: Option<Slots>| {
            let mut slots = slots.unwrap_or_default();
            let wanted = wanted.load(Ordering::Relaxed);
            let reserved = slots.reserve(per_second, self.ports.now_ms(), wanted, ahead);
            (slots, reserved)
        };
        let reserved = match self.update_shared(&key.slots_document(), reserve, deadline).await {
            Some((_, reserved)) => reserved,
            // This process's share of the rate.
            None => {
                let (per_second, now_ms) = (per_second / self.gates.functions, self.ports.now_ms());
                own.share.reserve(per_second, now_ms, wanted.load(Ordering::Relaxed), 0)
            }
        };
        own.slots.add(reserved);
    }
}

/// Whether a delivery comes for the slot that it has waited for.
fn has_slot(delivery: &Delivery, now_ms: u64) -> bool {
    match delivery.hold.slots {
        0 => false,
        1 => now_ms <= delivery.due_ms.saturating_add(LATE_MS),
        // It came too late before: it is not sent round for ever.
        _ => true,
    }
}
