//! Makes attempts: `begin` reserves time, `compose` makes the request, and `exchange` sends it. A
//! request with a refused token is sent once more with a new one.
//!
//! A failure of the endpoint is an `Exchange`, never an error. No secret leaves this module.

mod abandon;

use std::sync::Arc;

use adapters::telemetry::Telemetry;
use delivery::delivery::Delivery;
use delivery::delivery::outcome::{Exchange, Unsendable};
use delivery::machine::answer::{self, SentCredentials};
use delivery::ports::{DispatchPorts, Late, SendHttp as _};
use delivery::request::{self, AttemptContext, RenderedCredentials, Request};
use delivery::subscription::Subscription;
use delivery::subscription::secret::Keyring;
use futures::FutureExt as _;

use crate::credentials::Credentials;
use crate::destination::{Destinations, Passage};
use crate::endings::Endings;
use crate::invocation::Invocation;
use crate::news;
use crate::progress::{InFlightDelivery, Stage};
use crate::slow_lane::SlowLane;

#[derive(Debug)]
pub(crate) struct Attempts<P> {
    pub(crate) ports: Arc<P>,
    pub(crate) credentials: Arc<Credentials<P>>,
    pub(crate) destinations: Arc<Destinations<P>>,
    pub(crate) news: Arc<news::Exchange<P>>,
    pub(crate) endings: Arc<Endings<P>>,
    pub(crate) slow_lane: Arc<SlowLane>,
    pub(crate) telemetry: Arc<Telemetry>,
}

/// One attempt, for all deliveries of a group.
pub(crate) struct Attempt<'d, 'p> {
    passage: &'p Passage,
    due: &'d [InFlightDelivery],
    deliveries: Vec<&'d Delivery>,
    /// The secrets of the request, or the reason why the request cannot be made.
    keyring: Result<Keyring, Unsendable>,
    started_ms: u64,
    timeout_ms: u64,
}

/// The result of an attempt. The response may repeat secrets of the request until
/// [`Self::without_secrets`] hides them.
pub(crate) struct AttemptResult<'a> {
    pub(crate) exchange: Exchange,
    late: Option<Late>,
    deliveries: Vec<&'a Delivery>,
    keyring: Keyring,
    /// The credentials that templates rendered for the first request. A second request changes only
    /// the token.
    rendered: RenderedCredentials,
}

impl<P: DispatchPorts> Attempts<P> {
    /// Begins an attempt; `None` if the invocation or the permit has no time left.
    pub(crate) fn begin<'d, 'p>(
        &self,
        due: &'d [InFlightDelivery],
        passage: &'p mut Passage,
        invocation: &Invocation<'_>,
    ) -> Option<Attempt<'d, 'p>> {
        let keyring = passage.take_keyring();
        let (passage, started_ms) = (&*passage, self.ports.now_ms());
        let destination = &passage.subscription.destination;
        // After this time, another process may have the permit.
        let until_ms = passage.until_ms().saturating_sub(destination.late_window_ms);
        let left_ms = until_ms.checked_sub(started_ms).filter(|left_ms| *left_ms > 0)?;
        let wanted_ms = destination.response_timeout_ms.min(left_ms);
        let timeout_ms = invocation.deadline.begin(started_ms, wanted_ms)?;
        // Set the stage before the request, so that a panic during the request counts as an
        // attempt.
        due.iter().for_each(|in_flight| invocation.progress.set(in_flight.id, Stage::Attempting));
        let deliveries = due.iter().map(AsRef::as_ref).collect();
        Some(Attempt { passage, due, deliveries, keyring, started_ms, timeout_ms })
    }

    /// Sends the request, and a second one with a new token if the destination refused the first
    /// token. Returns `None` if the attempt was abandoned.
    pub(crate) async fn exchange<'a>(
        &self,
        attempt: Attempt<'a, '_>,
        request: Result<Request, Unsendable>,
        invocation: &Invocation<'_>,
    ) -> Option<AttemptResult<'a>> {
        if request.is_ok() {
            attempt.deliveries.iter().for_each(|delivery| self.telemetry.attempting(delivery));
        }
        let (exchange, late) = self.exchange_once(&attempt, &request, invocation).await?;
        let destination = &attempt.passage.subscription.destination;
        let rendered =
            request.as_ref().map(|request| RenderedCredentials::collect(destination, request));
        let rendered = rendered.unwrap_or_default();
        match attempt.keyring {
            // Boxed: this rare future would enlarge the future of every attempt.
            Ok(ref keyring) if keyring.token().is_some() => {
                let again =
                    self.exchange_again(attempt, exchange, late, invocation).boxed().await?;
                Some(AttemptResult { rendered, ..again })
            }
            keyring => Some(AttemptResult {
                exchange,
                late,
                deliveries: attempt.deliveries,
                keyring: keyring.unwrap_or_default(),
                rendered,
            }),
        }
    }

    async fn exchange_again<'a>(
        &self,
        attempt: Attempt<'a, '_>,
        exchange: Exchange,
        late: Option<Late>,
        invocation: &Invocation<'_>,
    ) -> Option<AttemptResult<'a>> {
        let until_ms = attempt.started_ms.saturating_add(attempt.timeout_ms);
        let keyring = attempt.keyring.unwrap_or_default();
        let (credentials, subscription) = (&self.credentials, &attempt.passage.subscription);
        let other = credentials
            .keyring_after(&exchange, &keyring, subscription, until_ms, invocation.deadline)
            .await;
        let now_ms = self.ports.now_ms();
        let (exchange, late, keyring) = match other {
            Ok(Some(other)) if now_ms < until_ms => {
                // Both requests are one attempt, so the second one gets the rest of the time.
                let (started_ms, timeout_ms) = (now_ms, until_ms - now_ms);
                let deliveries = attempt.deliveries.clone();
                let keyring = Ok(other);
                let again = Attempt { keyring, started_ms, timeout_ms, deliveries, ..attempt };
                let (exchange, late) =
                    self.exchange_once(&again, &again.compose(), invocation).await?;
                (exchange, late, again.keyring.unwrap_or_default())
            }
            Ok(_) => (exchange, late, keyring),
            // Without time for a new token, the refusal is the result.
            Err(_) if now_ms >= until_ms => (exchange, late, keyring),
            Err(problem) => (problem.exchange(now_ms), None, keyring),
        };
        let rendered = RenderedCredentials::default();
        Some(AttemptResult { exchange, late, deliveries: attempt.deliveries, keyring, rendered })
    }

    async fn exchange_once(
        &self,
        attempt: &Attempt<'_, '_>,
        request: &Result<Request, Unsendable>,
        invocation: &Invocation<'_>,
    ) -> Option<(Exchange, Option<Late>)> {
        let destination = &attempt.passage.subscription.destination;
        // A late response of an AWS service is not a reply.
        let may_be_late = destination.late_window_ms > 0 && destination.aws.is_none();
        match request {
            Ok(request) if may_be_late => Some(self.ports.http().exchange_or_late(request).await),
            Ok(request) => {
                let exchange = self.exchange_or_abandon(request, attempt, invocation).await?;
                Some((request.understood(exchange), None))
            }
            Err(problem) => Some((problem.exchange(attempt.started_ms), None)),
        }
    }
}

impl Attempt<'_, '_> {
    /// Composes the HTTP request, with the secrets of the attempt.
    pub(crate) fn compose(&self) -> Result<Request, Unsendable> {
        let keyring = self.keyring.as_ref().map_err(Clone::clone)?;
        let context =
            AttemptContext { keyring, now_ms: self.started_ms, timeout_ms: self.timeout_ms };
        request::compose(&self.passage.subscription, &self.deliveries, context)
    }
}

impl AttemptResult<'_> {
    /// Returns the exchange, and the late response if one may come. Hides the secrets of the
    /// request in a response that may be stored or become a reply. Then drops the values of the
    /// secrets.
    pub(crate) fn without_secrets(self, subscription: &Subscription) -> (Exchange, Option<Late>) {
        let Self { exchange, late, deliveries, keyring, rendered } = self;
        let sent = || SentCredentials::collect(subscription, &deliveries, &keyring, &rendered);
        let late = match (late, &subscription.reply) {
            // Only a reply needs the body of a late response.
            (Some(late), Some(_)) => Some(hidden_in_late(late, sent())),
            (late, _) => late,
        };
        let is_kept = answer::is_kept(&exchange, subscription);
        (if is_kept { sent().hide_in(exchange) } else { exchange }, late)
    }
}

fn hidden_in_late(late: Late, sent: SentCredentials) -> Late {
    Box::pin(async move { sent.hide_in(late.await) })
}
