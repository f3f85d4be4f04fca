//! Deliveries and dead letters to and from version 1.

use super::history::{history_of, history_v1, last_of, last_v1};
use super::v1::{
    AddressesV1, BatchingV1, DeadLetterV1, DeliveryV1, ErrorDataV1, FormatV1, HoldV1, LayoutV1,
    MappedV1, OriginV1, PublicationV1, ReturnedV1, ShapeV1, TargetV1,
};
use super::{VERSION, WireError};
use crate::delivery::{
    Addresses, Batching, DeadLetter, Delivery, DeliveryTarget, Hold, Origin, Publication, Returned,
    Store,
};
use crate::event::mapping::Mapped;
use crate::event::{Event, Shape};
use crate::subscription::dead_letter_format::{ErrorData, Format, Layout};

pub(super) fn publication_v1(
    Publication { message, published_ms, topic, group, traceparent, hold }: &Publication,
) -> PublicationV1 {
    PublicationV1 {
        v: VERSION,
        message: message.clone(),
        published_ms: *published_ms,
        topic: topic.clone(),
        group: group.clone(),
        traceparent: traceparent.clone(),
        hold: hold_v1(*hold),
    }
}

pub(super) fn publication_of(
    PublicationV1 { v: _, message, published_ms, topic, group, traceparent, hold }: PublicationV1,
) -> Publication {
    Publication { message, published_ms, topic, group, traceparent, hold: hold_of(hold) }
}

fn hold_v1(hold: Hold) -> Option<HoldV1> {
    (hold != Hold::default()).then_some(HoldV1 { count: hold.count, until_ms: hold.until_ms })
}

pub(super) fn hold_of(wire: Option<HoldV1>) -> Hold {
    wire.map_or_else(Hold::default, |HoldV1 { count, until_ms }| Hold { count, until_ms })
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
        hold: hold_v1(delivery.hold),
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
        hold: hold_of(wire.hold),
        history: history_of(wire.history)?,
        last_response: last_of(wire.last)?,
        traceparent: wire.traceparent,
    })
}

/// A dead letter travels only with its delivery to a sink.
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
            letter.ok_or_else(|| {
                WireError::Unreadable("a dead letter within a dead letter".to_owned())
            })
        }
        (None | Some(TargetV1::Reply), Some(_)) | (Some(TargetV1::Sink), None) => {
            Err(WireError::Unreadable(
                "a dead letter travels exactly with a delivery to a sink".to_owned(),
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
        // Left out where it says nothing new: all state has to fit 16 KiB.
        not_before_ms: Some(letter.not_before_ms)
            .filter(|not_before_ms| not_before_ms != decided_ms),
        container: match &letter.store {
            Store::Container(container) => Some(container.to_string()),
            Store::DefaultContainer | Store::Queue(_) => None,
        },
        queue: match &letter.store {
            Store::Queue(queue) => Some(queue.to_string()),
            Store::DefaultContainer | Store::Container(_) => None,
        },
        sink_error: letter.sink_error.clone(),
        returned: letter.returned.as_ref().map(returned_v1),
        format: match letter.format {
            Format::Namespace => FormatV1::Namespace,
            Format::EventGrid => FormatV1::EventGrid,
            Format::CloudEvents => FormatV1::CloudEvents,
            Format::Custom => FormatV1::Custom,
            Format::Knative => FormatV1::Knative,
        },
        layout: match letter.layout {
            Layout::Nested => LayoutV1::Nested,
            Layout::Flat => LayoutV1::Flat,
        },
        error_data: match letter.error_data {
            ErrorData::Text => None,
            ErrorData::Base64 => Some(ErrorDataV1::Base64),
        },
        events_per_blob: Some(letter.events_per_blob).filter(|events| *events != 1),
        // The name on the wire stays as it is: messages with it may be in the queues.
        period_ms: letter.keep_trying_for_ms,
        headers: headers.clone(),
        destination: destination.clone(),
        opaque: delivery.event.shape() == Shape::Opaque,
        mapped: letter.mapped.clone().map(mapped_v1),
        addresses: letter
            .addresses
            .clone()
            .map(|Addresses { subscriber, failed }| AddressesV1 { subscriber, failed }),
    }
}

pub(super) fn dead_letter_of(wire: DeadLetterV1, event: Event) -> Result<DeadLetter, WireError> {
    Ok(DeadLetter {
        delivery: delivery_of(wire.delivery, event)?,
        store: store_of(wire.container.as_deref(), wire.queue.as_deref())?,
        sink_error: wire.sink_error,
        returned: wire.returned.map(returned_of).transpose()?,
        reason: wire.reason.parse().map_err(WireError::Unreadable)?,
        detail: wire.detail,
        decided_ms: wire.decided_ms,
        not_before_ms: wire.not_before_ms.unwrap_or(wire.decided_ms),
        format: match wire.format {
            FormatV1::Namespace => Format::Namespace,
            FormatV1::EventGrid => Format::EventGrid,
            FormatV1::CloudEvents => Format::CloudEvents,
            FormatV1::Custom => Format::Custom,
            FormatV1::Knative => Format::Knative,
        },
        layout: match wire.layout {
            LayoutV1::Nested => Layout::Nested,
            LayoutV1::Flat => Layout::Flat,
        },
        error_data: match wire.error_data {
            None => ErrorData::Text,
            Some(ErrorDataV1::Base64) => ErrorData::Base64,
        },
        events_per_blob: wire.events_per_blob.unwrap_or(1),
        keep_trying_for_ms: wire.period_ms,
        headers: wire.headers,
        destination: wire.destination,
        mapped: wire.mapped.map(mapped_of),
        addresses: wire
            .addresses
            .map(|AddressesV1 { subscriber, failed }| Addresses { subscriber, failed }),
    })
}

fn store_of(container: Option<&str>, queue: Option<&str>) -> Result<Store, WireError> {
    let read = match (container, queue) {
        (None, None) => Ok(Store::DefaultContainer),
        (Some(container), None) => container.parse().map(Store::Container),
        (None, Some(queue)) => queue.parse().map(Store::Queue),
        (Some(_), Some(_)) => Err("a container and a queue at once".to_owned()),
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
        reason: wire.reason.parse().map_err(WireError::Unreadable)?,
        detail: wire.detail,
        attempts: wire.attempts,
        history: history_of(wire.history)?,
        last_response: last_of(wire.last)?,
    })
}

fn mapped_v1(
    Mapped { id, topic, event_time, event_type, subject, data_version }: Mapped,
) -> MappedV1 {
    MappedV1 { id, topic, event_time, event_type, subject, data_version }
}

fn mapped_of(
    MappedV1 { id, topic, event_time, event_type, subject, data_version }: MappedV1,
) -> Mapped {
    Mapped { id, topic, event_time, event_type, subject, data_version }
}
