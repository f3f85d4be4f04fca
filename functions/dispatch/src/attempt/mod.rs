//! One HTTP exchange for the deliveries of a request.

mod abandon;

use std::sync::Arc;

use adapters::telemetry::Telemetry;
use delivery::delivery::Delivery;
use delivery::delivery::outcome::{Exchange, Unsendable};
use delivery::machine::answer::{self, SentCredentials};
use delivery::ports::{DispatchPorts, Late, SendHttp as _};
use delivery::request::{self, AttemptContext, Request};
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

/// The attempts of this process.
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

/// One attempt of the deliveries of a group.
pub(crate) struct Attempt<'a> {
    passage: &'a Passage,
    due: &'a [InFlightDelivery],
    deliveries: Vec<&'a Delivery>,
    /// The secrets of the request, or why it cannot be made.
    keyring: Result<Keyring, Unsendable>,
    started_ms: u64,
    timeout_ms: u64,
}

/// The result of an attempt.
pub(crate) struct Made {
    pub(crate) exchange: Exchange,
    late: Option<Late>,
    /// The secrets of the last request.
    keyring: Keyring,
}

impl<P: DispatchPorts> Attempts<P> {
    /// Begins an attempt; `None` when the invocation has no time left for it.
    pub(crate) fn begin<'a>(
        &self,
        due: &'a [InFlightDelivery],
        passage: &'a mut Passage,
        of: &Invocation<'_>,
    ) -> Option<Attempt<'a>> {
        let keyring = passage.take_keyring();
        let (passage, started_ms) = (&*passage, self.ports.now_ms());
        let destination = &passage.subscription.destination;
        // Another process may have the permit after it.
        let until_ms = passage.until_ms().saturating_sub(destination.late_window_ms);
        let left_ms = until_ms.checked_sub(started_ms).filter(|left_ms| *left_ms > 0)?;
        let wanted_ms = destination.response_timeout_ms.min(left_ms);
        let timeout_ms = of.deadline.begin(started_ms, wanted_ms)?;
        // Before the request: a panic after this line counts as an attempt.
        due.iter().for_each(|in_flight| of.progress.set(in_flight.id, Stage::Attempting));
        let deliveries = due.iter().map(AsRef::as_ref).collect();
        Some(Attempt { passage, due, deliveries, keyring, started_ms, timeout_ms })
    }

    /// Makes the request, and a second one with another token if the destination refused its token. `None` when it was abandoned.
    pub(crate) async fn exchange(
        &self,
        attempt: Attempt<'_>,
        request: Result<Request, Unsendable>,
        of: &Invocation<'_>,
    ) -> Option<Made> {
        if request.is_ok() {
            attempt.deliveries.iter().for_each(|delivery| self.telemetry.attempting(delivery));
        }
        let (exchange, late) = self.exchange_once(&attempt, &request, of).await?;
        match attempt.keyring {
            // Boxed: it is rare, and would enlarge the future of every attempt.
            Ok(ref keyring) if keyring.token().is_some() => {
                self.exchange_again(attempt, exchange, late, of).boxed().await
            }
            keyring => Some(Made { exchange, late, keyring: keyring.unwrap_or_default() }),
        }
    }

    async fn exchange_again(
        &self,
        attempt: Attempt<'_>,
        exchange: Exchange,
        late: Option<Late>,
        of: &Invocation<'_>,
    ) -> Option<Made> {
        let until_ms = attempt.started_ms.saturating_add(attempt.timeout_ms);
        let keyring = attempt.keyring.unwrap_or_default();
        let (credentials, subscription) = (&self.credentials, &attempt.passage.subscription);
        let other = credentials
            .keyring_after(&exchange, &keyring, subscription, until_ms, of.deadline)
            .await;
        let now_ms = self.ports.now_ms();
        match other {
            Ok(Some(other)) if now_ms < until_ms => {
                // Both requests are one attempt, so the second one gets the rest of its time.
                let (started_ms, timeout_ms) = (now_ms, until_ms - now_ms);
                let attempt = Attempt { keyring: Ok(other), started_ms, timeout_ms, ..attempt };
                let (exchange, late) = self.exchange_once(&attempt, &attempt.compose(), of).await?;
                Some(Made { exchange, late, keyring: attempt.keyring.unwrap_or_default() })
            }
            Ok(_) => Some(Made { exchange, late, keyring }),
            // Without time for another token the refusal stands.
            Err(_) if now_ms >= until_ms => Some(Made { exchange, late, keyring }),
            Err(problem) => Some(Made { exchange: problem.exchange(now_ms), late: None, keyring }),
        }
    }

    async fn exchange_once(
        &self,
        attempt: &Attempt<'_>,
        request: &Result<Request, Unsendable>,
        of: &Invocation<'_>,
    ) -> Option<(Exchange, Option<Late>)> {
        match request {
            Ok(request) if attempt.passage.subscription.destination.late_window_ms > 0 => {
                Some(self.ports.http().exchange_or_late(request).await)
            }
            Ok(request) => Some((self.exchange_or_abandon(request, attempt, of).await?, None)),
            Err(problem) => Some((problem.exchange(attempt.started_ms), None)),
        }
    }
}

impl Attempt<'_> {
    /// The request, with the secrets of the attempt.
    pub(crate) fn compose(&self) -> Result<Request, Unsendable> {
        let keyring = self.keyring.as_ref().map_err(Clone::clone)?;
        let context =
            AttemptContext { keyring, now_ms: self.started_ms, timeout_ms: self.timeout_ms };
        request::compose(&self.passage.subscription, &self.deliveries, context)
    }
}

impl Made {
    /// The exchange and the late response, if one may come. The secrets of the request are hidden in both, because their values
    /// are dropped here.
    pub(crate) fn without_secrets(
        self,
        due: &[InFlightDelivery],
        subscription: &Subscription,
    ) -> (Exchange, Option<Late>) {
        let Self { exchange, late, keyring } = self;
        let deliveries: Vec<&Delivery> = due.iter().map(AsRef::as_ref).collect();
        let sent = || SentCredentials::of(subscription, &deliveries, &keyring);
        let late = match (late, &subscription.reply) {
            // It may be a reply.
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
