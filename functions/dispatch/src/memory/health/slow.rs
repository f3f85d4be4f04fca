//! Deliveries to destinations that are slow to answer go to a queue of their own.

use std::slice;
use std::sync::atomic::Ordering;

use adapters::telemetry;
use delivery::delivery::health::shared::Attempted;
use delivery::delivery::health::{DestinationKey, Finding};
use delivery::delivery::outcome::Exchange;
use delivery::ports::QueueName;
use delivery::subscription::Subscription;
use delivery::time::duration::MINUTE_MS;

use super::{Health, Memory, are_to_destination, key_of};
use crate::message::{APART_MAX, fits_a_message};
use crate::progress::InFlightDelivery;

/// The slow lane is not used for this long after it refused a message. Otherwise a delivery could go
/// from queue to queue and never be attempted.
const REFUSED_MS: u64 = MINUTE_MS;

impl Health {
    /// Whether an attempt with so many events, from this queue, may be left to the slow lane. In the lane
    /// itself it has time. In isolation a record is alone, and has to be attempted there: moved on
    /// before it crashes us again, it would never use up its receives.
    pub(crate) fn may_move(&self, queue: QueueName, events: usize, now_ms: u64) -> bool {
        let leads_there = match queue {
            QueueName::Slow | QueueName::Isolation => false,
            QueueName::Events
            | QueueName::FanOut
            | QueueName::Retry
            | QueueName::DeadLetter
            | QueueName::Unprocessed
            | QueueName::LastResort => true,
        };
        leads_there
            && events <= APART_MAX
            && now_ms >= self.lane_refused_until_ms.load(Ordering::Relaxed)
    }

    /// Whether a delivery that may move is attempted in the lane and not here.
    pub(crate) fn should_move(&self, in_flight: &InFlightDelivery, now_ms: u64) -> bool {
        let InFlightDelivery { delivery, subscription, .. } = in_flight;
        let is_slow = || {
            let memory = self.memory();
            // Nearly always nothing is slow: then no address is hashed.
            !memory.slow.is_empty()
                && are_to_destination(slice::from_ref(in_flight))
                && memory.slow.is_slow(&key_of(subscription), now_ms)
        };
        (delivery.abandoned || is_slow()) && fits_a_message(delivery)
    }

    /// Notes that a queue did not take a message.
    pub(crate) fn note_refusal(&self, queue: QueueName, now_ms: u64) {
        if queue == QueueName::Slow {
            self.lane_refused_until_ms.store(now_ms.saturating_add(REFUSED_MS), Ordering::Relaxed);
        }
    }

    /// Records that an attempt that began at this time was abandoned.
    pub(crate) fn record_abandoned(
        &self,
        subscription: &Subscription,
        due: &[InFlightDelivery],
        started_ms: u64,
        now_ms: u64,
    ) {
        if !are_to_destination(due) {
            return;
        }
        let (mut memory, key) = (self.memory(), key_of(subscription));
        let Some(found) = memory.slow.note_slow(&key, now_ms) else { return };
        let findings = memory.findings(key, subscription);
        findings.slow = Some((found, now_ms));
        findings.add_attempt(Attempted::abandoned(started_ms, now_ms));
        drop(memory);
        telemetry::slow_destination(subscription, found);
    }
}

/// What the time that an attempt took shows.
pub(super) fn found(
    memory: &mut Memory,
    key: DestinationKey,
    exchange: &Exchange,
    is_slow: bool,
) -> Option<Finding> {
    match exchange.answer() {
        _ if is_slow => memory.slow.note_slow(&key, exchange.ended_ms()),
        Some(_) => memory.slow.note_in_time(&key),
        // Refused connections and the like come fast, and say nothing about answers.
        None => None,
    }
}
