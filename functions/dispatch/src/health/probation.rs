//! Deliveries to failing destinations are deferred: the probations of this process.
//!
//! The rule is `delivery::delivery::probation`; this file applies it before each attempt and records
//! each outcome. It lives as long as the process, over many invocations.

use std::sync::{Mutex, PoisonError};

use adapters::telemetry;
use delivery::delivery::outcome::Exchange;
use delivery::delivery::probation::Admission;
use delivery::delivery::{Delivery, DeliveryTarget, probation};
use delivery::subscription::Subscription;
use url::Url;
use uuid::Uuid;

use super::are_to_destination;
use crate::progress::InFlightDelivery;

/// The destinations whose attempts failed in this process.
#[derive(Debug, Default)]
pub(crate) struct Probations(Mutex<probation::Probations<Url>>);

impl Probations {
    /// Defers a delivery whose destination is on probation, and returns for how long. No attempt.
    pub(crate) fn defer(
        &self,
        delivery: &mut Delivery,
        subscription: &Subscription,
        now_ms: u64,
    ) -> Option<u64> {
        // Replies and sinks have other addresses, which say nothing about this one.
        if !subscription.destination.probation || delivery.target != DeliveryTarget::Destination {
            return None;
        }
        match self.with(|probations| probations.admit(&subscription.destination.url, now_ms)) {
            Admission::Admitted => None,
            Admission::Deferred { until_ms } => {
                let wait_ms = until_ms.saturating_sub(now_ms);
                delivery.defer(now_ms, until_ms);
                telemetry::deferred(delivery, wait_ms);
                Some(wait_ms)
            }
        }
    }

    fn record(&self, subscription: &Subscription, due: &[InFlightDelivery], exchange: &Exchange) {
        if applies(subscription, due) {
            let ids: Vec<Uuid> = due.iter().map(|in_flight| in_flight.delivery.id).collect();
            let outcome = exchange.outcome(&subscription.retry);
            let change = self.with(|of| {
                of.record_outcome(&subscription.destination.url, &ids, outcome, exchange.ended_ms())
            });
            if let Some(change) = change {
                telemetry::probation(subscription, outcome, change);
            }
        }
    }

    /// Admitted deliveries were not attempted after all.
    pub(crate) fn release(&self, subscription: &Subscription, due: &[InFlightDelivery]) {
        if applies(subscription, due) {
            self.with(|probations| probations.release(&subscription.destination.url));
        }
    }

    /// The admission of deliveries that are about to be attempted. Unless an outcome is recorded, it is
    /// returned, also if the attempt panics: another delivery has to be able to probe.
    pub(crate) fn admission<'a>(
        &'a self,
        subscription: &'a Subscription,
        due: &'a [InFlightDelivery],
    ) -> Admitted<'a> {
        Admitted { probations: self, subscription, due, is_used: false }
    }

    fn with<T>(&self, act: impl FnOnce(&mut probation::Probations<Url>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An admission that is used by recording what the attempt brought.
pub(crate) struct Admitted<'a> {
    probations: &'a Probations,
    subscription: &'a Subscription,
    due: &'a [InFlightDelivery],
    is_used: bool,
}

impl Admitted<'_> {
    /// Records what the attempt brought.
    pub(crate) fn record(mut self, exchange: &Exchange) {
        self.is_used = true;
        self.probations.record(self.subscription, self.due, exchange);
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if !self.is_used {
            self.probations.release(self.subscription, self.due);
        }
    }
}

fn applies(subscription: &Subscription, due: &[InFlightDelivery]) -> bool {
    subscription.destination.probation && are_to_destination(due)
}
