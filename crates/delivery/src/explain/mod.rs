//! Computes the attempts, waits and end of a delivery to an endpoint that always behaves in the
//! same way.
//!
//! The module calls [`arrive`] and [`settle`] with virtual time and computes no wait itself, so the
//! result is what production does. There are at most [`ATTEMPTS_MAX`] attempts. Responses are
//! instant, a timeout lasts for the response timeout, and there is no jitter unless requested. A
//! paused subscription is explained as if it were not paused.
//!
//! The result depends neither on the default container of a deployment nor on the time limit of its
//! functions.

pub mod diff;
mod endpoint;
mod matching;
mod onward;
mod probation;

pub use endpoint::{Always, Endpoint};
pub use matching::{ChangedHeader, EventMatch, event_matches};
pub use onward::{Onward, onward};
pub use probation::{ProbationTerms, probation};

use crate::delivery::reason::Reason;
use crate::delivery::{DeadLetter, Delivery, Origin};
use crate::event::{Event, Input};
use crate::machine::step::{Arrival, End, arrive, end_without_success, settle};
use crate::subscription::Subscription;
use crate::subscription::profile::ATTEMPTS_MAX;
use crate::subscription::sink::Container;
use crate::waits::Jitter;

/// The delivered event, which does not affect the result.
const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/explain","type":"explained"}"#;

/// One attempt of an explained delivery, with the wait before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Number of the attempt; 1 is the first.
    pub attempt: u32,
    /// Wait before the attempt in milliseconds, counted from the end of the previous attempt or
    /// from publication.
    pub wait_ms: u64,
    /// Start of the attempt in milliseconds since publication.
    pub at_ms: u64,
}

/// The storage of a dead letter: its delay, its container and its format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Time between the decision to end the delivery and the write, in milliseconds.
    pub after_ms: u64,
    /// The container; `None` for the default container of the deployment.
    pub container: Option<Container>,
    /// Name of the blob's format. If the format depends on the event, this is the name of the rule
    /// that selects it.
    pub format: &'static str,
}

/// The attempts of an explained delivery, and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// All attempts in the order in which they are made.
    pub attempts: Vec<Attempt>,
    /// The reason why the delivery failed; `None` if it succeeded.
    pub reason: Option<Reason>,
    /// Time at which the delivery ended, in milliseconds since publication.
    pub ended_ms: u64,
    /// Wait in milliseconds after the last attempt, if the next attempt would have been too late; 0
    /// if the delivery ended for a different reason.
    pub last_wait_ms: u64,
    /// The storage of the dead letter; `None` if the delivery succeeded or its dead letter is
    /// dropped.
    pub stored: Option<Stored>,
}

impl Life {
    /// Returns the name of the reason; `Delivered` if the delivery succeeded.
    #[must_use]
    pub fn reason_name(&self) -> String {
        self.reason.map_or_else(|| "Delivered".to_owned(), |reason| reason.to_string())
    }
}

/// Computes the attempts of a delivery to this endpoint. `published_ms` matters only if the
/// endpoint's `Retry-After` is a date.
#[must_use]
pub fn explain(subscription: &Subscription, endpoint: &Endpoint, published_ms: u64) -> Life {
    explain_jittered(subscription, endpoint, published_ms, Jitter::NONE)
}

/// Computes the attempts of a delivery to this endpoint, with this jitter before every retry.
#[must_use]
pub fn explain_jittered(
    subscription: &Subscription,
    endpoint: &Endpoint,
    published_ms: u64,
    jitter: Jitter,
) -> Life {
    // The explanation of a paused subscription would contain only a dead letter.
    let subscription = &Subscription { paused: false, ..subscription.clone() };
    let origin = Origin { message: "explain".to_owned(), index: 0 };
    let event = Event::recall(&EVENT.into(), Input::CloudEvents);
    let delivery = Delivery::new(event, subscription.name.clone(), origin, published_ms);
    let mut delivery = delivery.delayed(subscription.delay_ms);
    let mut attempts = Vec::new();
    let (mut now_ms, mut waited_ms) = (published_ms, 0);
    for _ in 0..=ATTEMPTS_MAX {
        let end = match arrive(&delivery, subscription, now_ms) {
            Arrival::NotDue { wait_ms } => End::Retry { wait_ms },
            Arrival::Ended(reason) => end_without_success(&delivery, subscription, reason, now_ms),
            // No request is sent, so nothing can fail.
            Arrival::Forward(_) => End::Done,
            Arrival::Attempt => {
                let at_ms = now_ms.saturating_sub(published_ms);
                let wait_ms = std::mem::take(&mut waited_ms);
                attempts.push(Attempt {
                    attempt: delivery.attempts.saturating_add(1),
                    wait_ms,
                    at_ms,
                });
                let exchange = endpoint.exchange(subscription, now_ms);
                now_ms = exchange.ended_ms();
                settle(&mut delivery, subscription, &exchange, now_ms, jitter).end
            }
        };
        match end {
            End::Retry { wait_ms } => {
                waited_ms = wait_ms;
                now_ms = now_ms.saturating_add(wait_ms);
            }
            end @ (End::Done | End::DeadLetter(_) | End::ToSink(_) | End::Drop(_)) => {
                let life = ended(subscription, attempts, &end, now_ms.saturating_sub(published_ms));
                return Life { last_wait_ms: waited_ms, ..life };
            }
        }
    }
    let end =
        end_without_success(&delivery, subscription, Reason::MaxDeliveryAttemptsExceeded, now_ms);
    ended(subscription, attempts, &end, now_ms.saturating_sub(published_ms))
}

/// Creates the explanation of a delivery that ended with `end` at `ended_ms`.
fn ended(subscription: &Subscription, attempts: Vec<Attempt>, end: &End, ended_ms: u64) -> Life {
    let (reason, stored) = match end {
        End::Done | End::Retry { .. } => (None, None),
        End::Drop(reason) => (Some(*reason), None),
        End::DeadLetter(letter) | End::ToSink(letter) => {
            (letter.reason.known(), Some(stored(subscription, letter)))
        }
    };
    Life { attempts, reason, ended_ms, last_wait_ms: 0, stored }
}

fn stored(subscription: &Subscription, letter: &DeadLetter) -> Stored {
    Stored {
        after_ms: letter.not_before_ms.saturating_sub(letter.decided_ms),
        container: letter.store.container().cloned(),
        format: subscription.dead_letter.format.name_for(subscription.destination.schema),
    }
}

#[cfg(test)]
mod tests;
