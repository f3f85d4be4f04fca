//! What travels beside an event: one versioned message attribute, in ASCII JSON.
//!
//! Two attributes are ours: `delivery` (a delivery that goes on) and `deadletter` (one that ended). The structs here
//! are the wire and nothing else; version 1 of them is read for ever, and its examples stand in `fixtures/wire/v1`.
//! An unknown version is an error, so that a newer writer's message waits for a newer reader instead of being lost.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use crate::deadletter::{Addresses, ErrorData, Format, Layout, Letter};
use crate::delivery::{Company, Delivery, Entry, History, Leg, Origin};
use crate::event::{Event, Input, Shape};
use crate::mapping::Mapped;

/// The attribute of a delivery that goes on.
pub const DELIVERY_ATTRIBUTE: &str = "delivery";
/// The attribute of a dead letter on its way to storage.
pub const DEADLETTER_ATTRIBUTE: &str = "deadletter";
/// The attribute that names the topic; set by the publisher and sent again.
pub const TOPIC_ATTRIBUTE: &str = "topic";

/// One of our attributes is never longer.
pub const ATTRIBUTE_MAX_BYTES: usize = 16 * 1_024;

/// The version that is written.
const VERSION: u32 = 1;

/// Why an attribute cannot be read. Its record is given back, never dead-lettered by us.
#[derive(Debug, Error)]
pub enum WireError {
    /// It is not the JSON we write.
    #[error("the attribute is not what this version writes: {0}")]
    Unreadable(String),
    /// A newer version wrote it.
    #[error("the attribute has version {0}, and this program reads version {VERSION} only: deploy the newer version")]
    UnknownVersion(u32),
}

#[derive(Serialize, Deserialize)]
struct Versioned {
    v: u32,
}

#[derive(Serialize, Deserialize)]
struct DeliveryV1 {
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
    #[serde(default, skip_serializing_if = "is_zero")]
    hops: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    company: Option<CompanyV1>,
    history: Vec<EntryV1>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<LastV1>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
}

/// The shape of an event that is no CloudEvent: its topic may be read differently when it comes back. Absent: what its
/// bytes look like.
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

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum EntryV1 {
    Attempt {
        at_ms: u64,
        outcome: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        duration_ms: u64,
    },
    Omitted {
        omitted: u32,
    },
}

/// The last answer's body: text where it is text.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LastV1 {
    Response(String),
    ResponseBase64(String),
}

#[derive(Serialize, Deserialize)]
struct LetterV1 {
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
    opaque: bool,
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

/// Writes the `delivery` attribute.
#[must_use]
pub fn write_delivery(delivery: &Delivery) -> String {
    ascii_json(&delivery_v1(delivery))
}

/// Reads the `delivery` attribute; the event is the message's body.
///
/// # Errors
/// [`WireError`] when it is not ours or of an unknown version.
pub fn read_delivery(attribute: &str, event: Event) -> Result<Delivery, WireError> {
    check_version(attribute)?;
    delivery_of(serde_json::from_str(attribute).map_err(unreadable)?, event)
}

/// Writes the `deadletter` attribute.
#[must_use]
pub fn write_letter(letter: &Letter) -> String {
    let Letter { delivery, reason, detail, decided_ms, container, headers, destination, .. } = letter;
    ascii_json(&LetterV1 {
        delivery: delivery_v1(delivery),
        reason: reason.to_string(),
        detail: detail.clone(),
        decided_ms: *decided_ms,
        not_before_ms: Some(letter.not_before_ms).filter(|not_before_ms| not_before_ms != decided_ms),
        container: container.as_ref().map(ToString::to_string),
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
        addresses: letter.addresses.clone().map(|Addresses { subscriber, failed }| AddressesV1 { subscriber, failed }),
    })
}

/// Reads the `deadletter` attribute; the event is the message's body.
///
/// # Errors
/// [`WireError`] when it is not ours or of an unknown version.
pub fn read_letter(attribute: &str, body: &Arc<str>) -> Result<Letter, WireError> {
    check_version(attribute)?;
    let wire: LetterV1 = serde_json::from_str(attribute).map_err(unreadable)?;
    // Nobody here knows the topic any more: whether its text is to be looked into travels with the letter.
    let event = Event::recall(body, if wire.opaque { Input::Opaque } else { Input::Auto });
    Ok(Letter {
        delivery: delivery_of(wire.delivery, event)?,
        reason: wire.reason.parse().map_err(WireError::Unreadable)?,
        detail: wire.detail,
        decided_ms: wire.decided_ms,
        not_before_ms: wire.not_before_ms.unwrap_or(wire.decided_ms),
        container: wire.container.map(|text| text.parse()).transpose().map_err(WireError::Unreadable)?,
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
        addresses: wire.addresses.map(|AddressesV1 { subscriber, failed }| Addresses { subscriber, failed }),
    })
}

fn mapped_v1(Mapped { id, topic, event_time, event_type, subject, data_version }: Mapped) -> MappedV1 {
    MappedV1 { id, topic, event_time, event_type, subject, data_version }
}

fn mapped_of(MappedV1 { id, topic, event_time, event_type, subject, data_version }: MappedV1) -> Mapped {
    Mapped { id, topic, event_time, event_type, subject, data_version }
}

fn check_version(attribute: &str) -> Result<(), WireError> {
    match serde_json::from_str(attribute).map_err(unreadable)? {
        Versioned { v: VERSION } => Ok(()),
        Versioned { v } => Err(WireError::UnknownVersion(v)),
    }
}

fn unreadable(error: serde_json::Error) -> WireError {
    WireError::Unreadable(error.to_string())
}

fn delivery_v1(delivery: &Delivery) -> DeliveryV1 {
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
        leg: match delivery.leg {
            Leg::Event => None,
            Leg::Reply => Some(LegV1::Reply),
        },
        hops: delivery.hops,
        company: match delivery.company {
            Company::Welcome => None,
            Company::OwedAlone => Some(CompanyV1::OwedAlone),
            Company::Alone => Some(CompanyV1::Alone),
        },
        history: history_v1(&delivery.history),
        last: delivery.last_response.as_deref().map(|bytes| match std::str::from_utf8(bytes) {
            Ok(text) => LastV1::Response(text.to_owned()),
            Err(_) => LastV1::ResponseBase64(STANDARD.encode(bytes)),
        }),
        traceparent: delivery.traceparent.clone(),
    }
}

fn history_v1(history: &History) -> Vec<EntryV1> {
    let attempt = |entry: &Entry| EntryV1::Attempt {
        at_ms: entry.at_ms,
        outcome: entry.outcome.to_string(),
        status: entry.status,
        duration_ms: entry.duration_ms,
    };
    let omitted = (history.omitted() > 0).then_some(EntryV1::Omitted { omitted: history.omitted() });
    history.first().iter().map(attempt).chain(omitted).chain(history.last().map(attempt)).collect()
}

fn delivery_of(wire: DeliveryV1, event: Event) -> Result<Delivery, WireError> {
    let mut entries = Vec::with_capacity(wire.history.len());
    let mut left_out = 0;
    for entry in wire.history {
        match entry {
            EntryV1::Attempt { at_ms, outcome, status, duration_ms } => {
                let outcome = outcome.parse().map_err(WireError::Unreadable)?;
                entries.push(Entry { at_ms, outcome, status, duration_ms });
            }
            EntryV1::Omitted { omitted } => left_out = omitted,
        }
    }
    let last_response = match wire.last {
        None => None,
        Some(LastV1::Response(text)) => Some(text.into_bytes()),
        Some(LastV1::ResponseBase64(text)) => {
            Some(STANDARD.decode(text).map_err(|error| WireError::Unreadable(error.to_string()))?)
        }
    };
    Ok(Delivery {
        id: wire.id,
        event: match wire.shape {
            None => event,
            Some(ShapeV1::EventGrid) => event.in_shape(Shape::EventGrid),
            Some(ShapeV1::Custom) => event.in_shape(Shape::Custom),
            Some(ShapeV1::Opaque) => event.in_shape(Shape::Opaque),
        },
        subscription: wire.subscription.parse().map_err(WireError::Unreadable)?,
        origin: Origin { message: wire.origin.message, index: wire.origin.index },
        published_ms: wire.published_ms,
        attempts: wire.attempts,
        first_ms: wire.first_ms,
        due_ms: wire.due_ms,
        leg: match wire.leg {
            None => Leg::Event,
            Some(LegV1::Reply) => Leg::Reply,
        },
        hops: wire.hops,
        company: match wire.company {
            None => Company::Welcome,
            Some(CompanyV1::OwedAlone) => Company::OwedAlone,
            Some(CompanyV1::Alone) => Company::Alone,
        },
        history: History::restore(entries, left_out),
        last_response,
        traceparent: wire.traceparent,
    })
}

/// JSON in which everything outside ASCII is `\u`-escaped. Outside its strings JSON is ASCII already.
fn ascii_json(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("wire structs have string keys and no failing serializers");
    if json.is_ascii() {
        return json;
    }
    let mut ascii = String::with_capacity(json.len() * 2);
    for character in json.chars() {
        if character.is_ascii() {
            ascii.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                ascii.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    ascii
}
