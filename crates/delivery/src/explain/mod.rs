//! The attempts, waits and end of a delivery whose endpoint always answers the same.
//!
//! It drives [`arrive`] and [`settle`] with virtual time, so it shows what production does. It
//! computes no wait of its own.
//!
//! Promises: it ends, after at most [`ATTEMPTS_MAX`] attempts; answers are instant, a timeout takes
//! the response timeout, there is no jitter unless requested; a paused subscription is explained as
//! if it were not paused.
//!
//! Does not know the deployment: its default container, and how its functions shorten a response
//! timeout.

pub mod diff;
mod matching;
mod onward;
mod probation;

pub use matching::{ChangedHeader, EventMatch, event_matches};
pub use onward::{Onward, onward};
pub use probation::{ProbationTerms, probation};

use std::str::FromStr;

use crate::delivery::outcome::{Exchange, NoResponse, Outcome, OutcomeName, TransportResult};
use crate::delivery::reason::Reason;
use crate::delivery::{DeadLetter, Delivery, Origin};
use crate::event::{Event, Input};
use crate::machine::step::{Arrival, End, arrive, end_without_success, settle};
use crate::subscription::Subscription;
use crate::subscription::profile::ATTEMPTS_MAX;
use crate::subscription::schedule::Jitter;
use crate::subscription::sink::Container;

/// The event that is delivered; nothing depends on it.
const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/explain","type":"explained"}"#;

/// What an endpoint does, every time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Always {
    /// It answers with this status.
    Status(u16),
    /// It gives no answer within the response timeout.
    Timeout,
    /// It refuses the connection.
    Refused,
    /// It resets the connection.
    Reset,
    /// Its name does not resolve.
    Dns,
    /// Its certificate is refused.
    Tls,
    /// Requests to its address are not allowed.
    Blocked,
    /// No attempt gets that far: something of ours is missing, such as a secret.
    Aborted,
}

impl Always {
    /// An endpoint that always does what it did in this exchange; `None` where no request was made for a reason of
    /// ours.
    #[must_use]
    pub fn as_in(exchange: &Exchange) -> Option<Self> {
        match exchange.result {
            TransportResult::Answered { status, .. } => Some(Self::Status(status)),
            TransportResult::TimedOut => Some(Self::Timeout),
            TransportResult::SocketError => Some(Self::Reset),
            TransportResult::ResolutionError => Some(Self::Dns),
            TransportResult::TlsError => Some(Self::Tls),
            TransportResult::Blocked => Some(Self::Blocked),
            TransportResult::Unsendable | TransportResult::Aborted => None,
        }
    }
}

impl TryFrom<OutcomeName> for Always {
    type Error = String;

    /// An endpoint that always causes this outcome. A word stands for one of its statuses: `Busy` for 503.
    fn try_from(name: OutcomeName) -> Result<Self, String> {
        Ok(match name {
            OutcomeName::Status(status) => Self::Status(status),
            OutcomeName::NoResponse(word) => Self::from(word),
            OutcomeName::Word(outcome) => match outcome {
                Outcome::Success => Self::Status(200),
                Outcome::NotFound => Self::Status(404),
                Outcome::Unauthorized => Self::Status(401),
                Outcome::Forbidden => Self::Status(403),
                Outcome::BadRequest => Self::Status(400),
                Outcome::PayloadTooLarge => Self::Status(413),
                Outcome::TimedOut => Self::Timeout,
                Outcome::Busy => Self::Status(503),
                Outcome::GenericError => Self::Status(500),
                Outcome::SocketError => Self::Reset,
                Outcome::ResolutionError => Self::Dns,
                Outcome::TlsError => Self::Tls,
                Outcome::Blocked => Self::Blocked,
                Outcome::Aborted => Self::Aborted,
                Outcome::Probation => {
                    return Err(format!("{outcome} is no outcome of an attempt: none is made"));
                }
            },
        })
    }
}

impl From<NoResponse> for Always {
    fn from(word: NoResponse) -> Self {
        match word {
            NoResponse::Timeout => Self::Timeout,
            NoResponse::Refused => Self::Refused,
            NoResponse::Reset => Self::Reset,
            NoResponse::Dns => Self::Dns,
            NoResponse::Tls => Self::Tls,
            NoResponse::Blocked => Self::Blocked,
        }
    }
}

impl FromStr for Always {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse::<OutcomeName>()?.try_into()
    }
}

impl std::fmt::Display for Always {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{status}"),
            Self::Timeout => f.write_str("timeout"),
            Self::Refused => f.write_str("refused"),
            Self::Reset => f.write_str("reset"),
            Self::Dns => f.write_str("dns"),
            Self::Tls => f.write_str("tls"),
            Self::Blocked => f.write_str("blocked"),
            Self::Aborted => Outcome::Aborted.fmt(f),
        }
    }
}

/// An endpoint that always behaves the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// What it does.
    pub always: Always,
    /// The `Retry-After` of its answers.
    pub retry_after: Option<String>,
}

impl Endpoint {
    /// One exchange with it, started at this time.
    fn exchange(&self, subscription: &Subscription, started_ms: u64) -> Exchange {
        let retry_after = self.retry_after.clone();
        let result = match self.always {
            Always::Status(status) => {
                TransportResult::Answered { status, retry_after, body: Vec::new() }
            }
            Always::Timeout => {
                let duration_ms = subscription.destination.response_timeout_ms;
                return Exchange::new(TransportResult::TimedOut, started_ms, duration_ms);
            }
            Always::Refused | Always::Reset => TransportResult::SocketError,
            Always::Dns => TransportResult::ResolutionError,
            Always::Tls => TransportResult::TlsError,
            Always::Blocked => TransportResult::Blocked,
            Always::Aborted => TransportResult::Aborted,
        };
        Exchange::new(result, started_ms, 0)
    }
}

/// One attempt of an explained delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Its number; 1 is the first.
    pub attempt: u32,
    /// The wait before it, from the end of the previous one.
    pub wait_ms: u64,
    /// Its start, since publication.
    pub at_ms: u64,
}

/// How and when a dead letter is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// How long after the decision it is written.
    pub after_ms: u64,
    /// Its container; `None` means that of the deployment.
    pub container: Option<Container>,
    /// The name of its format, or of the rule that decides it.
    pub format: &'static str,
}

/// The attempts and the end of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// Its attempts, in order.
    pub attempts: Vec<Attempt>,
    /// Why it ended; `None` when it was delivered.
    pub reason: Option<Reason>,
    /// When that was decided, since publication.
    pub ended_ms: u64,
    /// The wait after the last attempt, when it ended because the next one would be too late; else
    /// 0.
    pub last_wait_ms: u64,
    /// Its dead letter; `None` when it was delivered or dropped.
    pub stored: Option<Stored>,
}

impl Life {
    /// The reason in one word; `Delivered` for a success.
    #[must_use]
    pub fn reason_name(&self) -> String {
        self.reason.map_or_else(|| "Delivered".to_owned(), |reason| reason.to_string())
    }
}

/// Runs a delivery to this endpoint. `published_ms` matters only for a `Retry-After` that is a
/// date.
#[must_use]
pub fn explain(subscription: &Subscription, endpoint: &Endpoint, published_ms: u64) -> Life {
    explain_jittered(subscription, endpoint, published_ms, Jitter::NONE)
}

/// The same, with this jitter before every retry.
#[must_use]
pub fn explain_jittered(
    subscription: &Subscription,
    endpoint: &Endpoint,
    published_ms: u64,
    jitter: Jitter,
) -> Life {
    // Paused, there would be nothing to see but one re-enqueueing after the other.
    let subscription = &Subscription { paused: false, ..subscription.clone() };
    let origin = Origin { message: "explain".to_owned(), index: 0 };
    let event = Event::recall(&EVENT.into(), Input::CloudEvents);
    let mut delivery = Delivery::new(event, subscription.name.clone(), origin, published_ms);
    let mut attempts = Vec::new();
    let (mut now_ms, mut waited_ms) = (published_ms, 0);
    for _ in 0..=ATTEMPTS_MAX {
        let end = match arrive(&delivery, subscription, now_ms) {
            Arrival::NotDue { wait_ms } | Arrival::Paused { wait_ms } => End::Retry { wait_ms },
            Arrival::Expired(reason) => {
                end_without_success(&delivery, subscription, reason, now_ms)
            }
            // Nothing is requested, so there is nothing to fail.
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

/// The life with this end.
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
