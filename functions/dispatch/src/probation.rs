//! Dead destinations are left alone: the probations that this process knows of.
//!
//! The rule is `delivery::probation`; here it is asked before each attempt and told what each one brought. It lives as
//! long as the process, over many invocations.

use std::sync::{Mutex, PoisonError};

use delivery::delivery::Leg;
use delivery::outcome::Exchange;
use delivery::ports::{DispatchPorts, QueueName};
use delivery::probation::{self, Admission};
use delivery::subscription::Subscription;
use url::Url;
use uuid::Uuid;

use crate::book::Ticket;
use crate::{Dispatch, Invocation};

/// The destinations that this process has had trouble with.
#[derive(Debug, Default)]
pub(crate) struct Probations(Mutex<probation::Probations<Url>>);

impl Probations {
    fn admit(&self, subscription: &Subscription, ticket: &Ticket, now_ms: u64) -> Admission {
        if !subscription.destination.probation || ticket.delivery.leg != Leg::Event {
            return Admission::Admitted;
        }
        self.with(|probations| probations.admit(&subscription.destination.url, now_ms))
    }

    /// Takes note of what an attempt brought.
    pub(crate) fn note(&self, subscription: &Subscription, due: &[Ticket], exchange: &Exchange) {
        let to_destination = due.iter().all(|ticket| ticket.delivery.leg == Leg::Event);
        if subscription.destination.probation && to_destination {
            let ids: Vec<Uuid> = due.iter().map(|ticket| ticket.delivery.id).collect();
            let outcome = exchange.outcome(&subscription.retry);
            self.with(|of| of.note(&subscription.destination.url, &ids, outcome, exchange.ended_ms()));
        }
    }

    /// A delivery that was admitted was not attempted after all.
    pub(crate) fn release(&self, subscription: &Subscription) {
        if subscription.destination.probation {
            self.with(|probations| probations.release(&subscription.destination.url));
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut probation::Probations<Url>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<P: DispatchPorts> Dispatch<P> {
    /// The delivery, if its destination is not on probation; else it is put off, without an attempt.
    pub(crate) async fn admit(
        &self,
        mut ticket: Ticket,
        subscription: &Subscription,
        of: &Invocation<'_>,
    ) -> Option<Ticket> {
        let now_ms = self.ports.now_ms();
        match self.probations.admit(subscription, &ticket, now_ms) {
            Admission::Admitted => Some(ticket),
            Admission::PutOff { until_ms } => {
                ticket.delivery.put_off(now_ms, until_ms);
                adapters::telemetry::put_off(&ticket.delivery, until_ms.saturating_sub(now_ms));
                let wait_ms = until_ms.saturating_sub(now_ms);
                self.pass_on(&of.book, &ticket, QueueName::Retry, wait_ms).await;
                None
            }
        }
    }
}
