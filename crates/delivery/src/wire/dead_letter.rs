//! The wire form of a dead letter, version 1: the delivery, and what was decided about it.

use serde::{Deserialize, Serialize};

use super::WireError;
use super::delivery::{DeliveryV1, delivery_of, delivery_v1};
use super::history::{EntryV1, LastV1, history_of, history_v1, last_of, last_v1};
use crate::delivery::{Addresses, DeadLetter, Returned, Store};
use crate::event::mapping::Mapped;
use crate::event::{Event, Shape};
use crate::subscription::dead_letter_format::{ErrorData, Format, Layout};

#[derive(Serialize, Deserialize)]
pub(super) struct DeadLetterV1 {
    #[serde(flatten)]
    delivery: DeliveryV1,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    decided_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queue: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sink_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    returned: Option<ReturnedV1>,
    format: FormatV1,
    layout: LayoutV1,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error_data: Option<ErrorDataV1>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    events_per_blob: Option<u32>,
    period_ms: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) opaque: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mapped: Option<MappedV1>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    addresses: Option<AddressesV1>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FormatV1 {
    Namespace,
    EventGrid,
    CloudEvents,
    Custom,
    Knative,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LayoutV1 {
    Nested,
    Flat,
}

/// Absent: as text.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ErrorDataV1 {
    Base64,
}

/// What the topic's mapping said of a custom event.
#[derive(Serialize, Deserialize)]
struct MappedV1 {
    id: String,
    topic: String,
    event_time: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data_version: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct AddressesV1 {
    subscriber: String,
    failed: String,
}

/// How a letter fared at its sink.
#[derive(Serialize, Deserialize)]
struct ReturnedV1 {
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    attempts: u32,
    history: Vec<EntryV1>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<LastV1>,
}

pub(super) fn dead_letter_v1(letter: &DeadLetter) -> DeadLetterV1 {
    let DeadLetter { delivery, reason, detail, decided_ms, headers, destination, .. } = letter;
    DeadLetterV1 {
        delivery: delivery_v1(delivery),
        reason: reason.to_string(),
        detail: detail.clone(),
        decided_ms: *decided_ms,
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
