//! One HTTP exchange for the deliveries of a group.

mod abandon;

use delivery::delivery::Delivery;
use delivery::delivery::health::DestinationKey;
use delivery::delivery::outcome::Exchange;
use delivery::machine::answer::{self, SentCredentials};
use delivery::ports::{DispatchPorts, Late};
use delivery::request::{self, AttemptContext};
use delivery::subscription::Subscription;
use delivery::subscription::secret::SecretName;

use crate::dispatch::{Dispatch, Invocation};
use crate::progress::{InFlightDelivery, Stage};

impl<P: DispatchPorts> Dispatch<P> {
    /// One exchange for all of them; `None` when the invocation has no time left for it, and when it was
    /// abandoned.
    pub(crate) async fn attempt(
        &self,
        subscription: &Subscription,
        due: &[InFlightDelivery],
        of: &Invocation<'_>,
    ) -> Option<(Exchange, Option<Late>)> {
        let destination = &subscription.destination;
        let admitted = self.health.admission(subscription, due);
        let deliveries: Vec<&Delivery> = due.iter().map(AsRef::as_ref).collect();
        // Before the time of the attempt is granted: looking secrets up takes time of its own.
        let names: Vec<&SecretName> = request::secrets(subscription, &deliveries).collect();
        let keyring = self.keyring(&names, destination, of.deadline).await;
        let now_ms = self.ports.now_ms();
        let timeout_ms = of.deadline.begin(now_ms, destination.response_timeout_ms)?;
        // Before the request: a panic from here on counts as an attempt.
        due.iter().for_each(|in_flight| of.progress.set(in_flight.id, Stage::Attempting));
        let composed = match &keyring {
            Ok(keyring) => {
                let context = AttemptContext { keyring, now_ms, timeout_ms };
                request::compose(subscription, &deliveries, context)
            }
            Err(problem) => Err(problem.clone()),
        };
        if composed.is_ok() {
            deliveries.iter().for_each(|delivery| self.telemetry.attempting(delivery));
        }
        let (exchange, late) = match composed {
            Ok(request) if destination.late_window_ms > 0 => {
                self.ports.exchange_or_late(&request).await
            }
            Ok(request) => {
                let exchange = self.exchange_or_abandon(&request, subscription, due, of).await?;
                (exchange, None)
            }
            Err(problem) => (problem.exchange(now_ms), None),
        };
        admitted.record(&exchange);
        if destination.shares_concurrency {
            let key = DestinationKey::of_limit(subscription);
            self.leases.of(key).held().note_taken(exchange.duration_ms);
        }
        self.note_load(subscription, due, &exchange, of);
        // Hidden here, since the secrets' values are dropped with this attempt.
        let keyring = keyring.unwrap_or_default();
        let sent = || SentCredentials::of(subscription, &deliveries, &keyring);
        let late = match (late, &subscription.reply) {
            (Some(late), Some(_)) => Some(hidden_in_late(late, sent())),
            (late, _) => late,
        };
        let is_kept = answer::is_kept(&exchange, subscription);
        Some((if is_kept { sent().hide_in(exchange) } else { exchange }, late))
    }
}

/// A late answer, with the credentials of its request hidden: it may be a reply.
fn hidden_in_late(late: Late, sent: SentCredentials) -> Late {
    Box::pin(async move { sent.hide_in(late.await) })
}
