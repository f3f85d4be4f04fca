//! Where a subscription asks for consent, nothing is delivered before it is there, and no faster
//! than it allows.
//!
//! The rules are `delivery::machine::consent`; here a consent is looked up, the destination asked, and the
//! pace kept. What has to wait leaves as its own message, uncounted: its time to live goes on.
//!
//! Promises: a destination is asked by one delivery at a time, the others wait for that answer; it
//! is asked again after a minute at the earliest, then after twice as long each time, at most 15
//! minutes. Both per process: others ask for themselves until one has kept a consent. While nobody
//! can say whether there is a consent, nobody is asked. Does not offer an address to confirm a
//! consent by: nobody listens here. `lastmile validate --listen` does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use adapters::telemetry::{self, HoldReason};
use delivery::delivery::DeliveryTarget;
use delivery::delivery::outcome::Unsendable;
use delivery::machine::consent::{
    ASK_TIMEOUT_MS, Answer, ConsentKey, Granted, Pace, Question, Rate, RateShare, ask, judge,
    pause_ms, wait_ms,
};
use delivery::machine::step::End;
use delivery::ports::DispatchPorts;
use delivery::request::{AttemptContext, Request};
use delivery::subscription::secret::SecretName;
use delivery::subscription::{Consent, Subscription};
use futures::FutureExt as _;

use crate::late::Unfinished;
use crate::progress::InFlightDelivery;
use crate::{Dispatch, Invocation};

/// The destinations that this process asks for their consent.
#[derive(Debug)]
pub(crate) struct ConsentGates {
    /// How many functions share an allowed rate.
    functions: u32,
    gates: Mutex<HashMap<ConsentKey, Arc<tokio::sync::Mutex<ConsentGate>>>>,
}

/// Storage that cannot be read may take seconds to say so; all who come meanwhile wait behind one
/// who asks.
const UNKNOWN_FOR_MS: u64 = 30_000;

/// One destination.
#[derive(Debug, Default)]
struct ConsentGate {
    /// Until when it is not asked again, and how long that is.
    closed: Option<(u64, u64)>,
    /// Until when nobody looks for its consent again, because storage did not say.
    unknown_until_ms: u64,
    pace: Pace,
}

/// Whether a request may go now.
enum Allowed {
    Now,
    /// It is over the allowed rate: after so long it is its turn.
    After(u64),
    /// There is no consent yet.
    NotYet,
}

impl ConsentGates {
    /// No destination asked yet; so many functions share each rate.
    pub(crate) fn shared_by(functions: u32) -> Self {
        Self { functions, gates: Mutex::default() }
    }

    fn gate(&self, key: &ConsentKey) -> Arc<tokio::sync::Mutex<ConsentGate>> {
        Arc::clone(
            self.gates
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .entry(key.clone())
                .or_default(),
        )
    }
}

impl<P: DispatchPorts> Dispatch<P> {
    /// Those that may go in one request now: all of them, or none, and then each has left as its
    /// own message.
    pub(crate) async fn check_consent(
        &self,
        due: Vec<InFlightDelivery>,
        subscription: &Subscription,
        of: &Invocation<'_>,
    ) -> Vec<InFlightDelivery> {
        let to_destination =
            due.iter().any(|ticket| ticket.delivery.target == DeliveryTarget::Destination);
        let Some(consent) = subscription.destination.consent.as_ref().filter(|_| to_destination)
        else {
            return due;
        };
        let check_consent = self.consent_of(subscription, consent, of).boxed().await;
        if matches!(check_consent, Allowed::Now) {
            return due;
        }
        self.probations.release(subscription, &due);
        let now_ms = self.ports.now_ms();
        let leaving = due.into_iter().map(|ticket| {
            let (why, wait_ms) = match check_consent {
                Allowed::Now => (HoldReason::Rate, 0),
                Allowed::After(wait_ms) => (HoldReason::Rate, wait_ms),
                Allowed::NotYet => (HoldReason::Consent, wait_ms(ticket.delivery.due_ms, now_ms)),
            };
            telemetry::held(&ticket.delivery, why, wait_ms);
            Unfinished { ticket, end: End::Retry { wait_ms } }
        });
        self.finish_all(of, leaving.collect()).await;
        Vec::new()
    }

    async fn consent_of(
        &self,
        subscription: &Subscription,
        consent: &Consent,
        of: &Invocation<'_>,
    ) -> Allowed {
        let key = ConsentKey::of(&subscription.destination.url, consent);
        let gate = self.gates.gate(&key);
        // Held while the destination is asked, so that all who come meanwhile share the answer.
        let mut gate = gate.lock().await;
        if self.ports.now_ms() < gate.unknown_until_ms {
            return Allowed::NotYet;
        }
        let rate = match self.ports.consent(&key).await {
            Ok(Some(granted)) => Some(granted.rate),
            Ok(None) => self.ask_once(subscription, consent, &key, &mut gate, of).await,
            Err(error) => {
                telemetry::consent_unknown(subscription, &error.to_string());
                gate.unknown_until_ms = self.ports.now_ms().saturating_add(UNKNOWN_FOR_MS);
                None
            }
        };
        let Some(rate) = rate else { return Allowed::NotYet };
        match gate.pace.go(RateShare::of(rate, self.gates.functions), self.ports.now_ms()) {
            Ok(()) => Allowed::Now,
            Err(wait_ms) => Allowed::After(wait_ms),
        }
    }

    /// Asks the destination, unless that was done a moment ago or there is no time left for it.
    async fn ask_once(
        &self,
        subscription: &Subscription,
        consent: &Consent,
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
        let timeout_ms = of.deadline.begin(now_ms, wanted_ms)?;
        let pause_ms = pause_ms(closed_ms);
        gate.closed = Some((now_ms.saturating_add(pause_ms), pause_ms));
        let answer = self.ask(subscription, consent, timeout_ms).await;
        telemetry::consent_answered(subscription, &answer);
        let Answer::Granted(rate) = answer else { return None };
        gate.closed = None;
        let granted =
            Granted::new(&subscription.destination.url, consent, rate, self.ports.now_ms());
        if let Err(error) = self.ports.keep_consent(key, &granted).await {
            telemetry::consent_unknown(subscription, &error.to_string());
        }
        Some(rate)
    }

    async fn ask(&self, subscription: &Subscription, consent: &Consent, timeout_ms: u64) -> Answer {
        let random = std::array::from_fn(|_| self.ports.next_jitter().0);
        let question = Question::new(random, None);
        let exchange = match self.question(subscription, consent, &question, timeout_ms).await {
            Ok(request) => self.ports.exchange(&request).await,
            Err(problem) => problem.exchange(self.ports.now_ms()),
        };
        judge(consent, &question, &exchange)
    }

    async fn question(
        &self,
        subscription: &Subscription,
        consent: &Consent,
        question: &Question,
        timeout_ms: u64,
    ) -> Result<Request, Unsendable> {
        let names: Vec<&SecretName> = subscription.destination.secrets().collect();
        let keyring = self
            .ports
            .keyring(&names)
            .await
            .map_err(|error| Unsendable::Unready(error.to_string()))?;
        ask(
            subscription,
            consent,
            question,
            AttemptContext { keyring: &keyring, now_ms: self.ports.now_ms(), timeout_ms },
        )
    }
}
