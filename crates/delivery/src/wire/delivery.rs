//! The wire form of a delivery, version 1.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::dead_letter::{DeadLetterV1, dead_letter_of, dead_letter_v1};
use super::history::{EntryV1, LastV1, history_of, history_v1, last_of, last_v1};
use super::{VERSION, WireError};
use crate::delivery::{Batching, Delivery, DeliveryTarget, Origin};
use crate::event::{Event, Shape};

#[derive(Serialize, Deserialize)]
pub(super) struct DeliveryV1 {
    v: u32,
    id: Uuid,
    subscription: String,
    origin: OriginV1,
    published_ms: u64,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_ms: Option<u64>,
    due_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shape: Option<ShapeV1>,
    #[serde(rename = "leg", default, skip_serializing_if = "Option::is_none")]
    target: Option<TargetV1>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    letter: Option<Box<DeadLetterV1>>,
    #[serde(default, skip_serializing_if = "is_zero")]
    hops: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    via: Vec<String>,
    #[serde(rename = "company", default, skip_serializing_if = "Option::is_none")]
    batching: Option<BatchingV1>,
    history: Vec<EntryV1>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<LastV1>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
}

/// The shape of an event that is no CloudEvent: its topic may be read differently when it comes
/// back. Absent: what its bytes look like.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ShapeV1 {
    EventGrid,
    Custom,
    Opaque,
}

/// Absent: a published event, to the subscription's destination.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TargetV1 {
    Reply,
    /// With the letter beside it.
    Sink,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Absent: it may share a request with others.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BatchingV1 {
    #[serde(rename = "owed_alone")]
    RetryAlone,
    #[serde(rename = "alone")]
    Disabled,
}

#[derive(Serialize, Deserialize)]
struct OriginV1 {
    message: String,
    index: u32,
}

pub(super) fn delivery_v1(delivery: &Delivery) -> DeliveryV1 {
    DeliveryV1 {
        v: VERSION,
        id: delivery.id,
        subscription: delivery.subscription.to_string(),
        origin: OriginV1 { message: delivery.origin.message.clone(), index: delivery.origin.index },
        published_ms: delivery.published_ms,
        attempts: delivery.attempts,
        first_ms: delivery.first_ms,
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
        via: delivery.via.iter().map(ToString::to_string).collect(),
        batching: match delivery.batching {
            Batching::Allowed => None,
            Batching::RetryAlone => Some(BatchingV1::RetryAlone),
            Batching::Disabled => Some(BatchingV1::Disabled),
        },
        history: history_v1(&delivery.history),
        last: last_v1(delivery.last_response.as_deref()),
        traceparent: delivery.traceparent.clone(),
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
        origin: Origin { message: wire.origin.message, index: wire.origin.index },
        published_ms: wire.published_ms,
        attempts: wire.attempts,
        first_ms: wire.first_ms,
        due_ms: wire.due_ms,
        hops: wire.hops,
        via: wire
            .via
            .iter()
            .map(|topic| topic.parse())
            .collect::<Result<_, _>>()
            .map_err(WireError::Unreadable)?,
        batching: match wire.batching {
            None => Batching::Allowed,
            Some(BatchingV1::RetryAlone) => Batching::RetryAlone,
            Some(BatchingV1::Disabled) => Batching::Disabled,
        },
        history: history_of(wire.history)?,
        last_response: last_of(wire.last)?,
        traceparent: wire.traceparent,
    })
}

/// A letter travels with the delivery that brings it to its sink, and with no other.
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
            let letter = Some(letter)
                .filter(|_| !is_on_its_way)
                .map(|letter| DeliveryTarget::Sink(Box::new(letter)));
            letter.ok_or_else(|| WireError::Unreadable("a letter within a letter".to_owned()))
        }
        (None | Some(TargetV1::Reply), Some(_)) | (Some(TargetV1::Sink), None) => Err(
            WireError::Unreadable("a letter travels to a sink, and nothing else does".to_owned()),
        ),
    }
}
