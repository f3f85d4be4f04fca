//! Which destinations are slow to answer, as far as this process knows. The rule is
//! `delivery::delivery::slow`.

use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use adapters::telemetry;
use delivery::delivery::outcome::Exchange;
use delivery::delivery::slow::{Change, SlowDestinations};
use delivery::ports::QueueName;
use delivery::subscription::Subscription;
use delivery::time::duration::MINUTE_MS;
use url::Url;

use super::are_to_destination;
use crate::message::fits_a_message;
use crate::progress::InFlightDelivery;

/// The slow lane is not used for this long after it refused a message. Otherwise a delivery could go
/// from queue to queue and never be attempted.
const REFUSED_MS: u64 = MINUTE_MS;
/// A request with more events is not moved: its events would be received one by one, and sent in many
/// requests instead of one.
const EVENTS_MAX: usize = 10;

/// The destinations that are slow to answer, as far as this process knows.
#[derive(Debug, Default)]
pub(crate) struct KnownSlow {
    destinations: Mutex<SlowDestinations<Url>>,
    refused_until_ms: AtomicU64,
}

impl KnownSlow {
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
            && events <= EVENTS_MAX
            && now_ms >= self.refused_until_ms.load(Ordering::Relaxed)
    }

    /// Whether a delivery that may move is attempted in the lane and not here.
    pub(crate) fn should_move(&self, in_flight: &InFlightDelivery, now_ms: u64) -> bool {
        let InFlightDelivery { delivery, subscription, .. } = in_flight;
        let url = &subscription.destination.url;
        let is_slow = || {
            are_to_destination(slice::from_ref(in_flight))
                && self.with(|slow| slow.is_slow(url, now_ms))
        };
        (delivery.abandoned || is_slow()) && fits_a_message(delivery)
    }

    /// Notes that a queue did not take a message.
    pub(crate) fn note_refusal(&self, queue: QueueName, now_ms: u64) {
        if queue == QueueName::Slow {
            self.refused_until_ms.store(now_ms.saturating_add(REFUSED_MS), Ordering::Relaxed);
        }
    }

    /// Records how long an attempt took.
    pub(crate) fn record(
        &self,
        subscription: &Subscription,
        due: &[InFlightDelivery],
        exchange: &Exchange,
    ) {
        let destination = &subscription.destination;
        if !are_to_destination(due) {
            return;
        }
        let change = self.with(|slow| match exchange.answer() {
            _ if exchange.duration_ms > destination.slow_after_ms => {
                slow.note_slow(&destination.url, exchange.ended_ms())
            }
            Some(_) => slow.note_in_time(&destination.url),
            // Refused connections and the like come fast, and say nothing about answers.
            None => None,
        });
        report(subscription, change);
    }

    /// Records that an attempt was abandoned.
    pub(crate) fn record_abandoned(
        &self,
        subscription: &Subscription,
        due: &[InFlightDelivery],
        now_ms: u64,
    ) {
        if !are_to_destination(due) {
            return;
        }
        let url = &subscription.destination.url;
        report(subscription, self.with(|slow| slow.note_slow(url, now_ms)));
    }

    fn with<T>(&self, act: impl FnOnce(&mut SlowDestinations<Url>) -> T) -> T {
        act(&mut self.destinations.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn report(subscription: &Subscription, change: Option<Change>) {
    if let Some(change) = change {
        telemetry::slow_destination(subscription, change);
    }
}
