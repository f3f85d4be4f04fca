//! Validates the endpoint of a subscription with `consent` before the first delivery, and keeps to
//! the rate that the endpoint allows.
//!
//! The rules are in `delivery::machine::consent`. This module looks up the stored consent,
//! validates the endpoint and applies the rate. A delivery that has to wait is re-enqueued. Its
//! wait is not an attempt, and does not extend its time to live.
//!
//! One delivery at a time validates an endpoint, and the others wait for the result. The next
//! validation follows after one minute at the earliest, then after 2, 4, 8 and at most 15 minutes.
//! Each process validates by itself until a consent is stored. While the store cannot be read,
//! nothing is validated. The request offers no address to confirm a consent, because a function
//! cannot listen. `lastmile try --consent --listen` offers one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use adapters::telemetry;
use delivery::delivery::WaitReason;
use delivery::delivery::outcome::Unsendable;
use delivery::machine::consent::{
    self, ASK_TIMEOUT_MS, Answer as Consented, ConsentKey, Granted, Pace, Question, Rate, RateShare,
};
use delivery::ports::{Consents as _, DispatchPorts, SendHttp as _};
use delivery::request::AttemptContext;
use delivery::subscription::secret::Keyring;
use delivery::subscription::{Consent, Subscription};
use delivery::waits;
use futures::FutureExt as _;

use super::Destinations;
use super::answer::Answer;
use super::gates::{same_for_all, unless_open, wait};
use super::known::Destination;
use super::passage::Passage;
use crate::deadline::Deadline;
use crate::invocation::Invocation;
use crate::progress::InFlightDelivery;
use crate::sending::NO_ANSWER;

/// Pause after a failed read of the stored consent. Such a read may take seconds, while the other
/// deliveries of the endpoint wait.
const UNKNOWN_FOR_MS: u64 = 30_000;

/// The validation states of one address, by [`ConsentKey`].
#[derive(Debug, Default)]
pub(super) struct ConsentGates(Mutex<HashMap<ConsentKey, Arc<tokio::sync::Mutex<ConsentGate>>>>);

/// The state of the validation of one endpoint.
#[derive(Debug, Default)]
struct ConsentGate {
    /// End and length in milliseconds of the pause after the last validation.
    closed: Option<(u64, u64)>,
    /// End of the pause after a failed read of the stored consent.
    unknown_until_ms: u64,
    pace: Pace,
}

impl ConsentGates {
    /// Returns the gate of `key`. The caller locks the gate during a validation.
    fn gate(&self, key: &ConsentKey) -> Arc<tokio::sync::Mutex<ConsentGate>> {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(gates.entry(key.clone()).or_default())
    }
}

/// The reason why no request may be sent now.
enum Hold {
    /// The allowed rate is used up.
    RateLimited {
        /// Time until the allowed rate has a free slot.
        wait_ms: u64,
    },
    NotValidated,
}

impl<P: DispatchPorts> Destinations<P> {
    /// Checks that the endpoint has consented to one more request. Without consent, all deliveries
    /// wait.
    pub(super) async fn ask_consent(
        &self,
        due: &[InFlightDelivery],
        passage: &mut Passage,
        invocation: &Invocation<'_>,
    ) -> Option<Vec<Answer>> {
        let subscription = Arc::clone(&passage.subscription);
        let is_asked = passage.is_own && !passage.has_consent;
        let wanted = subscription.destination.consent.as_ref().filter(|_| is_asked)?;
        let began_ms = self.now_ms();
        let hold =
            self.consent_of(&subscription, &passage.destination, wanted, invocation).boxed().await;
        let now_ms = self.now_ms();
        passage.has_waited |= now_ms > began_ms;
        match hold {
            Ok(()) => {
                passage.has_consent = true;
                None
            }
            Err(Hold::RateLimited { wait_ms }) => {
                same_for_all(due, wait(wait_ms, WaitReason::ConsentRate, now_ms))
            }
            Err(Hold::NotValidated) => unless_open(due.iter().map(|in_flight| {
                let wait_ms = waits::consent_ms(now_ms.saturating_sub(in_flight.delivery.due_ms));
                wait(wait_ms, WaitReason::Consent, now_ms)
            })),
        }
    }

    async fn consent_of(
        &self,
        subscription: &Subscription,
        destination: &Destination,
        wanted: &Consent,
        invocation: &Invocation<'_>,
    ) -> Result<(), Hold> {
        let key = ConsentKey::new(
            &subscription.name.topic.namespace,
            &subscription.destination.url,
            wanted,
        );
        let gate = destination.consents.gate(&key);
        // Held during the validation, so that all waiting deliveries share its result.
        let mut gate = gate.lock().await;
        // Checked under the lock, so that deliveries that waited for a failed read do not repeat
        // it.
        if self.now_ms() < gate.unknown_until_ms {
            return Err(Hold::NotValidated);
        }
        let rate = match self.ports.consents().consent(&key).await {
            Ok(Some(granted)) => Some(granted.rate),
            Ok(None) => self.validate_once(subscription, wanted, &key, &mut gate, invocation).await,
            // A failed read is not a consent. It is not a reason to validate either, because the
            // stored consent may be valid.
            Err(error) => {
                telemetry::consent_unknown(subscription, &error.to_string());
                gate.unknown_until_ms = self.now_ms().saturating_add(UNKNOWN_FOR_MS);
                None
            }
        };
        let share = RateShare::new(rate.ok_or(Hold::NotValidated)?, self.functions);
        let slot = gate.pace.go(share, self.now_ms());
        slot.map_err(|wait_ms| Hold::RateLimited { wait_ms })
    }

    /// Validates the endpoint, unless the last validation is too recent or no time is left.
    async fn validate_once(
        &self,
        subscription: &Subscription,
        wanted: &Consent,
        key: &ConsentKey,
        gate: &mut ConsentGate,
        invocation: &Invocation<'_>,
    ) -> Option<Rate> {
        let now_ms = self.now_ms();
        let (closed_until_ms, closed_ms) = gate.closed.unwrap_or_default();
        if now_ms < closed_until_ms {
            return None;
        }
        let wanted_ms = subscription.destination.response_timeout_ms.min(ASK_TIMEOUT_MS);
        // Looked up before `begin` grants the time, because the look-up of secrets takes time too.
        let keyring = self.credentials.keyring(subscription, invocation.deadline).await;
        let now_ms = self.now_ms();
        // `begin` is called only after the check of the pause, because it uses up the privilege of
        // the first request of an invocation.
        let timeout_ms = invocation.deadline.begin(now_ms, wanted_ms)?;
        let pause_ms = waits::handshake_ms(closed_ms);
        // Set before the request, so that the next validation waits even if this one fails or is
        // interrupted.
        gate.closed = Some((now_ms.saturating_add(pause_ms), pause_ms));
        let until_ms = now_ms.saturating_add(timeout_ms);
        let answer =
            self.validate(subscription, wanted, keyring, (until_ms, invocation.deadline)).await;
        telemetry::consent_answered(subscription, &answer);
        let Consented::Granted(rate) = answer else { return None };
        gate.closed = None;
        let granted = Granted::new(&subscription.destination, wanted, rate, self.now_ms());
        // The consent applies even if storing fails. The next delivery then validates again, which
        // is harmless.
        let kept = self.ports.consents().keep_consent(key, &granted);
        match invocation.deadline.in_time(&*self.ports, kept).await {
            Some(Ok(())) => {}
            Some(Err(error)) => telemetry::consent_unknown(subscription, &error.to_string()),
            None => telemetry::consent_unknown(subscription, NO_ANSWER),
        }
        Some(rate)
    }

    /// Sends the validation, and a second one with a new token if the endpoint refused the first
    /// token.
    async fn validate(
        &self,
        subscription: &Subscription,
        wanted: &Consent,
        keyring: Result<Keyring, Unsendable>,
        (until_ms, deadline): (u64, &Deadline),
    ) -> Consented {
        let random = std::array::from_fn(|_| self.ports.next_jitter().0);
        let question = Question::new(random, None);
        let ask = async |keyring: &Keyring| {
            let now_ms = self.now_ms();
            let timeout_ms = until_ms.saturating_sub(now_ms);
            let context = AttemptContext { keyring, now_ms, timeout_ms };
            match consent::ask(subscription, wanted, &question, context) {
                Ok(request) => self.ports.http().exchange(&request).await,
                Err(problem) => problem.exchange(now_ms),
            }
        };
        let asked = match keyring {
            Ok(keyring) => {
                let exchange = ask(&keyring).await;
                let other = self.credentials.keyring_after(
                    &exchange,
                    &keyring,
                    subscription,
                    until_ms,
                    deadline,
                );
                match other.await {
                    Ok(Some(other)) => Ok((ask(&other).await, other)),
                    Ok(None) => Ok((exchange, keyring)),
                    Err(problem) => Err(problem),
                }
            }
            Err(problem) => Err(problem),
        };
        let (exchange, keyring) =
            asked.unwrap_or_else(|problem| (problem.exchange(self.now_ms()), Keyring::default()));
        let credentials = subscription.destination.credentials(&keyring, None);
        consent::judge(wanted, &question, &exchange).redact(&credentials)
    }
}
