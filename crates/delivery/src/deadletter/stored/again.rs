//! Who failed last at a stored dead letter, and the delivery that replays it there.
//!
//! Separate from reading because this is about what happens next. A dead letter about a published event is
//! delivered to its destination again, one about a reply to the address for replies, and one that came back
//! from its sink to that sink: whoever took what came before does not get it once more.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use uuid::Uuid;

use super::letter::{StoredAttempt, StoredDeadLetter};
use crate::delivery::reason::Reason;
use crate::delivery::replay::Replay;
use crate::delivery::{DeadLetter, Delivery, DeliveryTarget, Entry, History, Origin, Word};
use crate::event::{Event, Input, Shape};

/// Whose fault a dead letter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailedAt {
    /// The destination of its subscription: it did not accept the event, or its answer is no reply.
    Destination,
    /// The address for replies, which did not accept the reply.
    Reply,
    /// The sink, which did not accept the dead letter.
    Sink,
}

impl FailedAt {
    /// The party, for people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Destination => "destination",
            Self::Reply => "address for replies",
            Self::Sink => "sink",
        }
    }
}

/// What the party said that failed last.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'a> {
    /// The party.
    pub at: FailedAt,
    /// Its address.
    pub destination: Option<&'a str>,
    /// Why the delivery there ended.
    pub reason: &'a str,
    /// What the reason's name does not say.
    pub detail: Option<&'a str>,
    /// The outcome of the last attempt.
    pub outcome: Option<&'a str>,
    /// The status of the last attempt, where there was an answer.
    pub status: Option<u16>,
    /// The last answer's body: text, or `base64:` and the encoded bytes.
    pub last_response: Option<&'a str>,
}

impl StoredDeadLetter {
    /// What the party said that failed last.
    #[must_use]
    pub fn failure(&self) -> Failure<'_> {
        if let Some(sink) = &self.sink {
            let newest = sink.history.last();
            return Failure {
                at: FailedAt::Sink,
                destination: sink.destination.as_deref(),
                reason: &sink.reason,
                detail: sink.detail.as_deref(),
                outcome: newest.map(|attempt| attempt.outcome.as_str()),
                status: newest.and_then(|attempt| attempt.status),
                last_response: sink.last_response.as_deref(),
            };
        }
        Failure {
            at: match self.is_reply && !self.is_malformed_reply() {
                true => FailedAt::Reply,
                false => FailedAt::Destination,
            },
            destination: self.destination.as_deref(),
            reason: &self.reason,
            detail: self.detail.as_deref(),
            outcome: self.outcome.as_deref(),
            status: self.status,
            last_response: self.last_response.as_deref(),
        }
    }

    /// Whether it holds an answer that is no event: nothing in it can be sent again.
    #[must_use]
    pub fn is_malformed_reply(&self) -> bool {
        self.is_reply && self.reason == Reason::MalformedEvent.to_string()
    }

    /// True if nothing failed: a person has stopped the delivery.
    #[must_use]
    pub fn is_set_aside(&self) -> bool {
        self.reason.parse().is_ok_and(Reason::sets_aside)
    }

    /// The event, in the schema that it was published in.
    #[must_use]
    pub fn published(&self) -> Event {
        let event = Event::recall(&self.event.as_str().into(), Input::Auto);
        match self.shape {
            Some(shape) => event.in_shape(shape),
            None => event,
        }
    }

    /// A new delivery with this id to the party that failed, with no attempts and the same trace.
    #[must_use]
    pub fn again(&self, id: Uuid, replay: Option<Replay>, now_ms: u64) -> Delivery {
        let event = self.published();
        let origin = Origin { message: self.id.to_string(), index: 0 };
        let new = Delivery::new(event, self.subscription.clone(), origin, now_ms);
        let delivery = Delivery { id, traceparent: self.traceparent.clone(), ..new };
        let target = match self.failure().at {
            FailedAt::Destination => DeliveryTarget::Destination,
            FailedAt::Reply => DeliveryTarget::Reply,
            FailedAt::Sink => DeliveryTarget::Sink(Box::new(self.returned(&delivery, now_ms))),
        };
        Delivery { target, replay, ..delivery }
    }

    /// The dead letter itself, as it was on its way to its sink, with the id of this delivery: should the sink
    /// refuse it again, it is stored as a new one.
    fn returned(&self, again: &Delivery, now_ms: u64) -> DeadLetter {
        let delivery = Delivery {
            published_ms: self.published_ms.unwrap_or(now_ms),
            attempts: self.attempts,
            target: if self.is_reply { DeliveryTarget::Reply } else { DeliveryTarget::Destination },
            history: history(&self.history, self.omitted),
            last_response: self.last_response.as_deref().map(bytes),
            last_headers: self.last_headers.clone(),
            failing: self.failing.clone(),
            ..again.clone()
        };
        let is_mapped = delivery.event.shape() == Shape::Custom;
        let reason = Word::read(&self.reason, self.reason.parse().ok());
        DeadLetter {
            reason: reason.unwrap_or_else(|_| Reason::ProcessingFailed.into()),
            detail: self.detail.clone(),
            format: self.format,
            layout: self.layout,
            headers: self.headers.clone(),
            destination: self.destination.clone(),
            mapped: self.mapped.clone().filter(|_| is_mapped),
            addresses: self.addresses.clone(),
            ..DeadLetter::without_subscription(delivery, Reason::ProcessingFailed, now_ms)
        }
    }
}

fn history(attempts: &[StoredAttempt], omitted: u32) -> History {
    let entries = attempts.iter().filter_map(|attempt| {
        let outcome = Word::read(&attempt.outcome, attempt.outcome.parse().ok()).ok()?;
        let StoredAttempt { at_ms, status, duration_ms, .. } = *attempt;
        Some(Entry { at_ms, outcome, status, duration_ms, more: BTreeMap::new() })
    });
    History::restore(entries.collect(), omitted)
}

/// The bytes of a stored response.
fn bytes(response: &str) -> Vec<u8> {
    let decoded = response.strip_prefix("base64:").and_then(|text| STANDARD.decode(text).ok());
    decoded.unwrap_or_else(|| response.as_bytes().to_vec())
}
