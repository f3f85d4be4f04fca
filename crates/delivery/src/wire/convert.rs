//! Converts deliveries and dead letters to and from version 1 of the wire format.

use super::history::{history_of, history_v1, last_of, last_v1};
use super::v1::{DeadLetterV1, DeliveryV1, ErrorDataV1, ReplayV1, ReturnedV1, ShapeV1, TargetV1};
use super::version::{VERSION, WireError};
use crate::delivery::reason::Reason;
use crate::delivery::replay::Replay;
use crate::delivery::{Batching, DeadLetter, Delivery, DeliveryTarget, Returned, Store, Word};
use crate::event::{Event, Shape};
use crate::subscription::dead_letter_format::ErrorData;

/// The name of [`Batching::RetryAlone`] in messages. A message without a name means
/// [`Batching::Allowed`].
const RETRY_ALONE: &str = "owed_alone";
/// The name of [`Batching::Disabled`] in messages.
const DISABLED: &str = "alone";

pub(super) fn delivery_v1(delivery: &Delivery) -> DeliveryV1 {
    DeliveryV1 {
        v: VERSION,
        id: delivery.id,
        subscription: delivery.subscription.to_string(),
        origin: delivery.origin.clone(),
        published_ms: delivery.published_ms,
        starts_ms: Some(delivery.starts_ms).filter(|starts_ms| *starts_ms != delivery.published_ms),
        attempts: delivery.attempts,
        due_ms: delivery.due_ms,
        shape: match delivery.event.shape() {
            Shape::CloudEvent => None,
            Shape::EventGrid => Some(ShapeV1::EventGrid),
            Shape::Custom => Some(ShapeV1::Custom),
            Shape::Opaque => Some(ShapeV1::Opaque),
        },
        target: match &delivery.target {
            DeliveryTarget::Destination => None,
            DeliveryTarget::Reply => Some(TargetV1::Reply),
            DeliveryTarget::Sink(_) => Some(TargetV1::Sink),
        },
        letter: match &delivery.target {
            DeliveryTarget::Destination | DeliveryTarget::Reply => None,
            DeliveryTarget::Sink(letter) => Some(Box::new(dead_letter_v1(letter))),
        },
        hops: delivery.hops,
        replies_left: delivery.replies_left,
        via: delivery.via.clone(),
        batching: match &delivery.batching {
            Word::Known(Batching::Allowed) => None,
            Word::Known(Batching::RetryAlone) => Some(RETRY_ALONE.to_owned()),
            Word::Known(Batching::Disabled) => Some(DISABLED.to_owned()),
            Word::Other(word) => Some(word.to_string()),
        },
        abandoned: delivery.abandoned,
        hold: delivery.hold,
        history: history_v1(&delivery.history),
        last: last_v1(delivery.last_response.as_deref()),
        last_headers: delivery.last_headers.clone(),
        last_detail: delivery.last_detail.clone(),
        failing: delivery.failing.clone(),
        traceparent: delivery.traceparent.clone(),
        replay: delivery.replay.as_ref().map(replay_v1),
    }
}

pub(super) fn delivery_of(wire: DeliveryV1, event: Event) -> Result<Delivery, WireError> {
    let event = match wire.shape {
        None => event,
        Some(ShapeV1::EventGrid) => event.in_shape(Shape::EventGrid),
        Some(ShapeV1::Custom) => event.in_shape(Shape::Custom),
        Some(ShapeV1::Opaque) => event.in_shape(Shape::Opaque),
    };
    Ok(Delivery {
        id: wire.id,
        target: target_of(wire.target, wire.letter, &event)?,
        event,
        subscription: wire.subscription.parse().map_err(WireError::Unreadable)?,
        origin: wire.origin,
        published_ms: wire.published_ms,
        starts_ms: wire.starts_ms.unwrap_or(wire.published_ms),
        attempts: wire.attempts,
        due_ms: wire.due_ms,
        hops: wire.hops,
        replies_left: wire.replies_left,
        via: wire.via,
        batching: batching_of(wire.batching.as_deref())?,
        abandoned: wire.abandoned,
        hold: wire.hold,
        history: history_of(wire.history)?,
        last_response: last_of(wire.last)?,
        last_headers: wire.last_headers,
        last_detail: wire.last_detail,
        failing: wire.failing,
        traceparent: wire.traceparent,
        // An invalid job name is dropped: the event is delivered, and the result is not recorded.
        replay: wire.replay.as_ref().and_then(replay_of),
    })
}

pub(super) fn replay_v1(replay: &Replay) -> ReplayV1 {
    ReplayV1 { job: replay.job().to_owned(), letter: replay.letter }
}

pub(super) fn replay_of(wire: &ReplayV1) -> Option<Replay> {
    Replay::new(&wire.job, wire.letter)
}

/// Parses a [`Batching`] value. If the name is unknown, the delivery is sent in a request of its
/// own, which is always allowed.
fn batching_of(word: Option<&str>) -> Result<Word<Batching>, WireError> {
    let Some(word) = word else { return Ok(Batching::Allowed.into()) };
    let known = match word {
        RETRY_ALONE => Some(Batching::RetryAlone),
        DISABLED => Some(Batching::Disabled),
        _ => None,
    };
    Word::read(word, known).map_err(WireError::Unreadable)
}

fn reason_of(word: &str) -> Result<Word<Reason>, WireError> {
    Word::read(word, word.parse().ok()).map_err(WireError::Unreadable)
}

/// Combines the target and the dead letter of a message. A message contains a dead letter only if
/// its target is a sink.
fn target_of(
    target: Option<TargetV1>,
    letter: Option<Box<DeadLetterV1>>,
    event: &Event,
) -> Result<DeliveryTarget, WireError> {
    match (target, letter) {
        (None, None) => Ok(DeliveryTarget::Destination),
        (Some(TargetV1::Reply), None) => Ok(DeliveryTarget::Reply),
        (Some(TargetV1::Sink), Some(letter)) => {
            let letter = dead_letter_of(*letter, event.clone())?;
            let is_on_its_way = matches!(letter.delivery.target, DeliveryTarget::Sink(_));
            if is_on_its_way {
                let why = "a dead letter contains another dead letter";
                return Err(WireError::Unreadable(why.to_owned()));
            }
            Ok(DeliveryTarget::Sink(Box::new(letter)))
        }
        (None | Some(TargetV1::Reply), Some(_)) | (Some(TargetV1::Sink), None) => {
            Err(WireError::Unreadable(
                "a dead letter and the target sink require each other".to_owned(),
            ))
        }
    }
}

pub(super) fn dead_letter_v1(letter: &DeadLetter) -> DeadLetterV1 {
    let DeadLetter { delivery, reason, detail, decided_ms, headers, destination, .. } = letter;
    DeadLetterV1 {
        delivery: delivery_v1(delivery),
        reason: reason.to_string(),
        detail: detail.clone(),
        decided_ms: *decided_ms,
        // The time is omitted if it equals the time of the decision, because the whole state must
        // fit into 16 KiB.
        not_before_ms: Some(letter.not_before_ms)
            .filter(|not_before_ms| not_before_ms != decided_ms),
        container: letter.store.container().map(ToString::to_string),
        queue: match &letter.store {
            Store::Queue(queue) => Some(queue.to_string()),
            Store::DefaultContainer | Store::Container(_) => None,
        },
        sink_error: letter.sink_error.clone(),
        returned: letter.returned.as_ref().map(returned_v1),
        format: letter.format,
        layout: letter.layout,
        error_data: match letter.error_data {
            ErrorData::Text => None,
            ErrorData::Base64 => Some(ErrorDataV1::Base64),
        },
        // Messages call this field `period_ms`. That name must not change.
        period_ms: letter.keep_trying_for_ms,
        headers: headers.clone(),
        destination: destination.clone(),
        opaque: delivery.event.shape() == Shape::Opaque,
        mapped: letter.mapped.clone(),
        addresses: letter.addresses.clone(),
    }
}

pub(super) fn dead_letter_of(wire: DeadLetterV1, event: Event) -> Result<DeadLetter, WireError> {
    Ok(DeadLetter {
        delivery: delivery_of(wire.delivery, event)?,
        store: store_of(wire.container.as_deref(), wire.queue.as_deref())?,
        sink_error: wire.sink_error,
        returned: wire.returned.map(returned_of).transpose()?,
        reason: reason_of(&wire.reason)?,
        detail: wire.detail,
        decided_ms: wire.decided_ms,
        not_before_ms: wire.not_before_ms.unwrap_or(wire.decided_ms),
        format: wire.format,
        layout: wire.layout,
        error_data: match wire.error_data {
            None => ErrorData::Text,
            Some(ErrorDataV1::Base64) => ErrorData::Base64,
        },
        keep_trying_for_ms: wire.period_ms,
        headers: wire.headers,
        destination: wire.destination,
        mapped: wire.mapped,
        addresses: wire.addresses,
    })
}

fn store_of(container: Option<&str>, queue: Option<&str>) -> Result<Store, WireError> {
    let read = match (container, queue) {
        (None, None) => Ok(Store::DefaultContainer),
        (Some(container), None) => container.parse().map(Store::Container),
        (None, Some(queue)) => queue.parse().map(Store::Queue),
        (Some(_), Some(_)) => Err("both a container and a queue are set".to_owned()),
    };
    read.map_err(WireError::Unreadable)
}

fn returned_v1(
    Returned { address, reason, detail, attempts, history, last_response }: &Returned,
) -> ReturnedV1 {
    ReturnedV1 {
        address: address.clone(),
        reason: reason.to_string(),
        detail: detail.clone(),
        attempts: *attempts,
        history: history_v1(history),
        last: last_v1(last_response.as_deref()),
    }
}

fn returned_of(wire: ReturnedV1) -> Result<Returned, WireError> {
    Ok(Returned {
        address: wire.address,
        reason: reason_of(&wire.reason)?,
        detail: wire.detail,
        attempts: wire.attempts,
        history: history_of(wire.history)?,
        last_response: last_of(wire.last)?,
    })
}
