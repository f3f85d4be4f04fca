//! One HTTP exchange for the deliveries of a request.

mod abandon;

use std::sync::Arc;

use adapters::telemetry::Telemetry;
use delivery::delivery::Delivery;
use delivery::delivery::outcome::{Exchange, Unsendable};
use delivery::machine::answer::{self, SentCredentials};
use delivery::ports::{DispatchPorts, Late};
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

impl<P: DispatchPorts> Attempts<P> {
    /// One exchange for all of them; `None` when the invocation has no time left for it, or it was abandoned.
    pub(crate) async fn attempt(
        &self,
        due: &[InFlightDelivery],
        passage: &mut Passage,
        of: &Invocation<'_>,
    ) -> Option<(Exchange, Option<Late>)> {
        let subscription = Arc::clone(&passage.subscription);
        let destination = &subscription.destination;
        let deliveries: Vec<&Delivery> = due.iter().map(AsRef::as_ref).collect();
        let keyring = passage.take_keyring();
        let now_ms = self.ports.now_ms();
        // Another process may have the permit after it.
        let until_ms = passage.until_ms().saturating_sub(destination.late_window_ms);
        let left_ms = until_ms.checked_sub(now_ms).filter(|left_ms| *left_ms > 0)?;
        let wanted_ms = destination.response_timeout_ms.min(left_ms);
        let timeout_ms = of.deadline.begin(now_ms, wanted_ms)?;
        // Before the request: a panic after this line counts as an attempt.
        due.iter().for_each(|in_flight| of.progress.set(in_flight.id, Stage::Attempting));
        let attempt = Attempt {
            passage,
            subscription: &subscription,
            due,
            deliveries: &deliveries,
            timeout_ms,
            of,
        };
        let (exchange, late, keyring) = match keyring {
            Ok(keyring) => self.make(&attempt, keyring, now_ms).await?,
            Err(problem) => (problem.exchange(now_ms), None, Keyring::default()),
        };
        if passage.record(due, &exchange) {
            self.news.share_health(of).boxed().await;
        }
        self.destinations.report_results(passage, of).await;
        // Hidden here, since the secrets' values are dropped with this attempt.
        let sent = || SentCredentials::of(&subscription, &deliveries, &keyring);
        let late = match (late, &subscription.reply) {
            (Some(late), Some(_)) => Some(hidden_in_late(late, sent())),
            (late, _) => late,
        };
        let is_kept = answer::is_kept(&exchange, &subscription);
        Some((if is_kept { sent().hide_in(exchange) } else { exchange }, late))
    }
}

/// One attempt of the deliveries of a group.
struct Attempt<'a> {
    passage: &'a Passage,
    subscription: &'a Subscription,
    due: &'a [InFlightDelivery],
    deliveries: &'a [&'a Delivery],
    timeout_ms: u64,
    of: &'a Invocation<'a>,
}

impl<P: DispatchPorts> Attempts<P> {
    /// Makes the request, and a second one with another token if the destination refused its token. Returns the secrets of the
    /// last request; `None` when it was abandoned.
    async fn make(
        &self,
        attempt: &Attempt<'_>,
        keyring: Keyring,
        now_ms: u64,
    ) -> Option<(Exchange, Option<Late>, Keyring)> {
        let composed = attempt.compose(&keyring, now_ms);
        if composed.is_ok() {
            attempt.deliveries.iter().for_each(|delivery| self.telemetry.attempting(delivery));
        }
        let (exchange, late) = self.exchange_once(attempt, &composed, now_ms).await?;
        if keyring.token().is_none() {
            return Some((exchange, late, keyring));
        }
        // Boxed: it is rare, and would enlarge the future of every attempt.
        self.make_again(attempt, exchange, late, keyring, now_ms).boxed().await
    }

    async fn make_again(
        &self,
        attempt: &Attempt<'_>,
        exchange: Exchange,
        late: Option<Late>,
        keyring: Keyring,
        started_ms: u64,
    ) -> Option<(Exchange, Option<Late>, Keyring)> {
        let until_ms = started_ms.saturating_add(attempt.timeout_ms);
        let (subscription, deadline) = (attempt.subscription, attempt.of.deadline);
        let credentials = &self.credentials;
        let other =
            credentials.keyring_after(&exchange, &keyring, subscription, until_ms, deadline).await;
        let now_ms = self.ports.now_ms();
        match other {
            Ok(Some(keyring)) if now_ms < until_ms => {
                // Both requests are one attempt, so the second one gets the rest of its time.
                let timeout_ms = until_ms - now_ms;
                let attempt = Attempt { timeout_ms, ..*attempt };
                let composed = attempt.compose(&keyring, now_ms);
                let (exchange, late) = self.exchange_once(&attempt, &composed, now_ms).await?;
                Some((exchange, late, keyring))
            }
            Ok(_) => Some((exchange, late, keyring)),
            // Without time for another token the refusal stands.
            Err(_) if now_ms >= until_ms => Some((exchange, late, keyring)),
            Err(problem) => Some((problem.exchange(now_ms), None, keyring)),
        }
    }

    async fn exchange_once(
        &self,
        attempt: &Attempt<'_>,
        composed: &Result<Request, Unsendable>,
        now_ms: u64,
    ) -> Option<(Exchange, Option<Late>)> {
        let Attempt { passage, subscription, due, of, .. } = attempt;
        match composed {
            Ok(request) if subscription.destination.late_window_ms > 0 => {
                Some(self.ports.exchange_or_late(request).await)
            }
            Ok(request) => {
                let exchange = self.exchange_or_abandon(request, due, passage, of).await?;
                Some((exchange, None))
            }
            Err(problem) => Some((problem.exchange(now_ms), None)),
        }
    }
}

impl Attempt<'_> {
    fn compose(&self, keyring: &Keyring, now_ms: u64) -> Result<Request, Unsendable> {
        let context = AttemptContext { keyring, now_ms, timeout_ms: self.timeout_ms };
        request::compose(self.subscription, self.deliveries, context)
    }
}

/// A late response, with the credentials of its request hidden: it may be a reply.
fn hidden_in_late(late: Late, sent: SentCredentials) -> Late {
    Box::pin(async move { sent.hide_in(late.await) })
}
