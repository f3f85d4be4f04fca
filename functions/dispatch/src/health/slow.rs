//! Which destinations are slow to answer, as far as this process knows. The rule is
//! `delivery::delivery::slow`.

use std::sync::{Mutex, PoisonError};

use adapters::telemetry;
use delivery::delivery::outcome::Exchange;
use delivery::delivery::slow::{Change, SlowDestinations};
use delivery::delivery::{Delivery, DeliveryTarget};
use delivery::ports::QueueName;
use delivery::subscription::Subscription;
use url::Url;

use crate::message::fits_a_message;
use crate::progress::InFlightDelivery;

/// The destinations that are slow to answer, as far as this process knows.
#[derive(Debug, Default)]
pub(crate) struct SlowLane(Mutex<SlowDestinations<Url>>);

impl SlowLane {
    /// Whether a delivery that is due is attempted in the lane and not here.
    pub(crate) fn takes(
        &self,
        in_flight: &InFlightDelivery,
        queue: QueueName,
        now_ms: u64,
    ) -> bool {
        let InFlightDelivery { delivery, subscription, .. } = in_flight;
        let url = &subscription.destination.url;
        let is_slow = || applies(delivery) && self.with(|slow| slow.is_slow(url, now_ms));
        is_left_early(queue) && (delivery.abandoned || is_slow()) && fits_a_message(delivery)
    }

    /// Records how long an attempt took.
    pub(crate) fn record(
        &self,
        subscription: &Subscription,
        due: &[InFlightDelivery],
        exchange: &Exchange,
    ) {
        let destination = &subscription.destination;
        if !due.iter().all(|one| applies(&one.delivery)) {
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
        if !due.iter().all(|one| applies(&one.delivery)) {
            return;
        }
        let url = &subscription.destination.url;
        report(subscription, self.with(|slow| slow.note_slow(url, now_ms)));
    }

    fn with<T>(&self, act: impl FnOnce(&mut SlowDestinations<Url>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether slow destinations are left early where this queue is read. In the lane itself they have
/// time. In isolation a record is alone, and has to be attempted there: moved on before it crashes us
/// again, it would never use up its receives.
pub(crate) fn is_left_early(queue: QueueName) -> bool {
    !matches!(queue, QueueName::Slow | QueueName::Isolation)
}

/// Replies and sinks have other addresses, which say nothing about the destination.
fn applies(delivery: &Delivery) -> bool {
    delivery.target == DeliveryTarget::Destination
}

fn report(subscription: &Subscription, change: Option<Change>) {
    if let Some(change) = change {
        telemetry::slow_destination(subscription, change);
    }
}
