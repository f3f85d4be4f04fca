//! The endpoint of a subscription with `consent` is validated before the first delivery, and is sent
//! no more than it allows.
//!
//! The rules are `delivery::machine::consent`; here a stored consent is looked up, the endpoint
//! validated, and the rate kept. A delivery that has to wait is
//! re-enqueued. That is not an attempt, and its time to live continues.
//!
//! Promises: one delivery at a time validates an endpoint, the others wait for its answer; the next
//! validation is after a minute at the earliest, then after twice as long each time, at most 15
//! minutes. Both per process: others validate for themselves until one has stored a consent. While
//! the store cannot be read, nothing is validated. Does not offer an address to confirm a consent
//! by: a function cannot listen. `lastmile validate --listen` does.

use adapters::telemetry::{self, HoldReason};
use delivery::delivery::DeliveryTarget;
use delivery::delivery::outcome::Unsendable;
use delivery::machine::consent::{
    self, ASK_TIMEOUT_MS, Answer, ConsentKey, Granted, Question, Rate, RateShare,
};
use delivery::machine::step::End;
use delivery::ports::DispatchPorts;
use delivery::request::AttemptContext;
use delivery::subscription::secret::Keyring;
use delivery::subscription::{Consent, Subscription};
use futures::FutureExt as _;

use crate::deadline::Deadline;
use crate::dispatch::{Dispatch, Invocation};
use crate::memory::consent_gates::ConsentGate;
use crate::progress::{InFlightDelivery, Unfinished};
use crate::send::NO_ANSWER;

/// A store that cannot be read may take seconds to fail, and the other deliveries of the endpoint
/// wait meanwhile: after a failure it is not read again for this long.
const UNKNOWN_FOR_MS: u64 = 30_000;

/// Why no request may be sent now.
enum Hold {
    /// It is over the allowed rate.
    RateLimited {
        /// When its slot is.
        wait_ms: u64,
    },
    /// There is no consent yet.
    NotValidated,
}

impl<P: DispatchPorts> Dispatch<P> {
    /// Those that may be sent in one request now: all of them, or none, and then each was
    /// re-enqueued.
    pub(crate) async fn check_consent(
        &self,
        due: Vec<InFlightDelivery>,
        subscription: &Subscription,
        of: &Invocation<'_>,
    ) -> Vec<InFlightDelivery> {
        let to_destination =
            due.iter().any(|in_flight| in_flight.delivery.target == DeliveryTarget::Destination);
        let Some(wanted) = subscription.destination.consent.as_ref().filter(|_| to_destination)
        else {
            return due;
        };
        let Err(hold) = self.consent_of(subscription, wanted, of).boxed().await else {
            return due;
        };
        // Admitted on arrival but not sent: another delivery has to be able to probe.
        self.health.release(subscription, &due);
        let now_ms = self.ports.now_ms();
        let leaving = due.into_iter().map(|in_flight| {
            let (why, wait_ms) = match hold {
                Hold::RateLimited { wait_ms } => (HoldReason::Rate, wait_ms),
                Hold::NotValidated => {
                    (HoldReason::Consent, consent::wait_ms(in_flight.delivery.due_ms, now_ms))
                }
            };
            telemetry::held(&in_flight.delivery, why, wait_ms);
            Unfinished { in_flight, end: End::Retry { wait_ms } }
        });
        self.finish_all(of, leaving.collect()).await;
        Vec::new()
    }

    async fn consent_of(
        &self,
        subscription: &Subscription,
        wanted: &Consent,
        of: &Invocation<'_>,
    ) -> Result<(), Hold> {
        let key = ConsentKey::of(
            &subscription.name.topic.namespace,
            &subscription.destination.url,
            wanted,
        );
        let gate = self.gates.gate(&key);
        // Held during the validation, so that all waiting deliveries share its answer.
        let mut gate = gate.lock().await;
        // Checked under the lock, so that those who waited for a failed read do not repeat it.
        if self.ports.now_ms() < gate.unknown_until_ms {
            return Err(Hold::NotValidated);
        }
        let rate = match self.ports.consent(&key).await {
            Ok(Some(granted)) => Some(granted.rate),
            Ok(None) => self.validate_once(subscription, wanted, &key, &mut gate, of).await,
            // Not knowing is no consent, and no reason to validate: a stored one may well be valid.
            Err(error) => {
                telemetry::consent_unknown(subscription, &error.to_string());
                gate.unknown_until_ms = self.ports.now_ms().saturating_add(UNKNOWN_FOR_MS);
                None
            }
        };
        let share = RateShare::of(rate.ok_or(Hold::NotValidated)?, self.gates.functions);
        let slot = gate.pace.go(share, self.ports.now_ms());
        slot.map_err(|wait_ms| Hold::RateLimited { wait_ms })
    }

    /// Validates the endpoint, unless the pause after the last validation has not ended, or no time is left.
    async fn validate_once(
        &self,
        subscription: &Subscription,
        wanted: &Consent,
        key: &ConsentKey,
        gate: &mut ConsentGate,
        of: &Invocation<'_>,
    ) -> Option<Rate> {
        let now_ms = self.ports.now_ms();
        let (closed_until_ms, closed_ms) = gate.closed.unwrap_or_default();
        if now_ms < closed_until_ms {
            return None;
        }
        let wanted_ms = subscription.destination.response_timeout_ms.min(ASK_TIMEOUT_MS);
        // Before the time is granted: looking secrets up takes time of its own.
        let keyring = self.keyring(&subscription.destination, of.deadline).await;
        let now_ms = self.ports.now_ms();
        // After the pause: `begin` uses up the privilege of the first request of an invocation.
        let timeout_ms = of.deadline.begin(now_ms, wanted_ms)?;
        let pause_ms = consent::pause_ms(closed_ms);
        // Before the answer: whatever goes wrong meanwhile, the next validation waits.
        gate.closed = Some((now_ms.saturating_add(pause_ms), pause_ms));
        let until_ms = now_ms.saturating_add(timeout_ms);
        let answer = self.validate(subscription, wanted, keyring, (until_ms, of.deadline)).await;
        telemetry::consent_answered(subscription, &answer);
        let Answer::Granted(rate) = answer else { return None };
        gate.closed = None;
        let granted = Granted::new(&subscription.destination, wanted, rate, self.ports.now_ms());
        // Used even if it is not stored: then the next delivery validates again, which is harmless.
        match self.in_time(self.ports.keep_consent(key, &granted), of.deadline).await {
            Some(Ok(())) => {}
            Some(Err(error)) => telemetry::consent_unknown(subscription, &error.to_string()),
            None => telemetry::consent_unknown(subscription, NO_ANSWER),
        }
        Some(rate)
    }

    /// Asks the endpoint, and once more with another token where it refused its token.
    async fn validate(
        &self,
        subscription: &Subscription,
        wanted: &Consent,
        keyring: Result<Keyring, Unsendable>,
        (until_ms, deadline): (u64, &Deadline),
    ) -> Answer {
        let random = std::array::from_fn(|_| self.ports.next_jitter().0);
        let question = Question::new(random, None);
        let ask = async |keyring: &Keyring| {
            let now_ms = self.ports.now_ms();
            let timeout_ms = until_ms.saturating_sub(now_ms);
            let context = AttemptContext { keyring, now_ms, timeout_ms };
            match consent::ask(subscription, wanted, &question, context) {
                Ok(request) => self.ports.exchange(&request).await,
                Err(problem) => problem.exchange(now_ms),
            }
        };
        let asked = match keyring {
            Ok(keyring) => {
                let exchange = ask(&keyring).await;
                let other =
                    self.keyring_after(&exchange, &keyring, subscription, until_ms, deadline);
                match other.await {
                    Ok(Some(other)) => Ok((ask(&other).await, other)),
                    Ok(None) => Ok((exchange, keyring)),
                    Err(problem) => Err(problem),
                }
            }
            Err(problem) => Err(problem),
        };
        let (exchange, keyring) = asked
            .unwrap_or_else(|problem| (problem.exchange(self.ports.now_ms()), Keyring::default()));
        let credentials = subscription.destination.credentials(&keyring, None);
        consent::judge(wanted, &question, &exchange).redact(&credentials)
    }
}
