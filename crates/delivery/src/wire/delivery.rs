//! The wire form of a delivery, version 1.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::history::{EntryV1, LastV1, history_of, history_v1, last_of, last_v1};
use super::letter::{LetterV1, letter_of, letter_v1};
use super::{VERSION, WireError};
use crate::delivery::{Company, Delivery, Leg, Origin};
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leg: Option<LegV1>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    letter: Option<Box<LetterV1>>,
    #[serde(default, skip_serializing_if = "is_zero")]
    hops: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    via: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    company: Option<CompanyV1>,
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
enum LegV1 {
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
enum CompanyV1 {
    OwedAlone,
    Alone,
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
        leg: match &delivery.leg {
            Leg::Event => None,
            Leg::Reply => Some(LegV1::Reply),
            Leg::Sink(_) => Some(LegV1::Sink),
        },
        letter: match &delivery.leg {
            Leg::Event | Leg::Reply => None,
            Leg::Sink(letter) => Some(Box::new(letter_v1(letter))),
        },
        hops: delivery.hops,
        via: delivery.via.iter().map(ToString::to_string).collect(),
        company: match delivery.company {
            Company::Welcome => None,
            Company::OwedAlone => Some(CompanyV1::OwedAlone),
            Company::Alone => Some(CompanyV1::Alone),
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
        leg: leg_of(wire.leg, wire.letter, &event)?,
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
        company: match wire.company {
            None => Company::Welcome,
            Some(CompanyV1::OwedAlone) => Company::OwedAlone,
            Some(CompanyV1::Alone) => Company::Alone,
        },
        history: history_of(wire.history)?,
        last_response: last_of(wire.last)?,
        traceparent: wire.traceparent,
    })
}

/// A letter travels with the delivery that brings it to its sink, and with no other.
fn leg_of(
    leg: Option<LegV1>,
    letter: Option<Box<LetterV1>>,
    event: &Event,
) -> Result<Leg, WireError> {
    match (leg, letter) {
        (None, None) => Ok(Leg::Event),
        (Some(LegV1::Reply), None) => Ok(Leg::Reply),
        (Some(LegV1::Sink), Some(letter)) => {
            let letter = letter_of(*letter, event.clone())?;
            let is_on_its_way = matches!(letter.delivery.leg, Leg::Sink(_));
            let letter =
                Some(letter).filter(|_| !is_on_its_way).map(|letter| Leg::Sink(Box::new(letter)));
            letter.ok_or_else(|| WireError::Unreadable("a letter within a letter".to_owned()))
        }
        (None | Some(LegV1::Reply), Some(_)) | (Some(LegV1::Sink), None) => Err(
            WireError::Unreadable("a letter travels to a sink, and nothing else does".to_owned()),
        ),
    }
}
