//! Finds the recipient at which a stored dead letter failed, and creates the delivery that replays
//! the dead letter there.
//!
//! This module is separate from the reader, because it decides the next step. A dead letter about a
//! published event is replayed to its destination, and one about a reply to the reply address. A
//! dead letter that its sink refused is replayed to that sink. A recipient that has already
//! accepted its request receives nothing again.

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

/// The recipient at which a dead letter failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailedAt {
    /// The destination of the subscription. It refused the event, or its response is an invalid
    /// reply.
    Destination,
    /// The reply address, which refused the reply.
    Reply,
    /// The sink, which refused the dead letter.
    Sink,
}

impl FailedAt {
    /// Returns the name of the recipient, for people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Destination => "destination",
            Self::Reply => "address for replies",
            Self::Sink => "sink",
        }
    }
}

/// The failure that a stored dead letter reports.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'a> {
    /// The recipient that failed.
    pub at: FailedAt,
    /// Address of the recipient.
    pub destination: Option<&'a str>,
    /// The reason why the delivery to this recipient ended.
    pub reason: &'a str,
    /// Details beyond the name of the reason.
    pub detail: Option<&'a str>,
    /// Name of the last attempt's outcome, for example `Busy`.
    pub outcome: Option<&'a str>,
    /// HTTP status of the last attempt; `None` without a response.
    pub status: Option<u16>,
    /// Body of the last response: text, or `base64:` and the encoded bytes.
    pub last_response: Option<&'a str>,
}

impl StoredDeadLetter {
    /// Describes the last failure: of the delivery to the sink if there was one, otherwise of the
    /// original delivery.
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

    /// True if the dead letter is about a response that is not an event. Nothing in such a response
    /// can be sent again.
    #[must_use]
    pub fn is_malformed_reply(&self) -> bool {
        self.is_reply && self.reason == Reason::MalformedEvent.to_string()
    }

    /// True if the delivery did not fail: its subscription was paused, or its destination disabled.
    #[must_use]
    pub fn is_set_aside(&self) -> bool {
        self.reason.parse().is_ok_and(Reason::sets_aside)
    }

    /// Returns the event, in the schema in which it was published.
    #[must_use]
    pub fn published(&self) -> Event {
        let event = Event::recall(&self.event.as_str().into(), Input::Auto);
        match self.shape {
            Some(shape) => event.in_shape(shape),
            None => event,
        }
    }

    /// Creates a delivery with this id. It replays the dead letter to the recipient that failed.
    /// The delivery keeps the trace and has no attempts yet.
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

    /// Returns the dead letter as it was sent to its sink, with the id of the delivery `again`. If
    /// the sink refuses it again, it is stored as a new dead letter.
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

/// Decodes a stored response body: `base64:` and the encoded bytes, or plain text.
fn bytes(response: &str) -> Vec<u8> {
    let decoded = response.strip_prefix("base64:").and_then(|text| STANDARD.decode(text).ok());
    decoded.unwrap_or_else(|| response.as_bytes().to_vec())
}
