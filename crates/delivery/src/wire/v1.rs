//! Declares the structs of version 1 of the wire format, as JSON.
//!
//! This module is separate from the conversion. It declares all structs together, because a
//! delivery may contain a dead letter, and a dead letter contains a delivery. New fields are
//! optional, and no field is renamed or removed, because queues hold messages across deployments.
//! The same rule applies to the small structs that are serialized directly: [`Origin`], [`Hold`],
//! [`Mapped`] and [`Addresses`].
//!
//! Older code drops a new field when it writes the delivery again, because the field would describe
//! an outdated state. Unknown fields of an attempt are kept, because the past does not change.
//! Older code must not ignore a new value of a known field, or a new version. It refuses both, and
//! the message waits.
//!
//! Some values are only reported (an outcome, a reason) or may be ignored (batching). Such a value
//! is a text here and a [`Word`](crate::delivery::Word) in all other code, so an unknown value is
//! kept. A value that determines an action is an enum here, so an unknown value is an error.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::history::{EntryV1, LastV1};
use crate::delivery::{Addresses, FailingDestination, Hold, Origin, is_zero};
use crate::event::mapping::Mapped;
use crate::subscription::dead_letter_format::{Format, Layout};
use crate::subscription::name::TopicName;

#[derive(Serialize, Deserialize)]
pub(super) struct DeliveryV1 {
    pub(super) v: u32,
    pub(super) id: Uuid,
    pub(super) subscription: String,
    pub(super) origin: Origin,
    pub(super) published_ms: u64,
    // The field is omitted if the delivery starts at its publication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) starts_ms: Option<u64>,
    pub(super) attempts: u32,
    pub(super) due_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) shape: Option<ShapeV1>,
    // Messages call this field `leg`. That name must not change.
    #[serde(rename = "leg", default, skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<TargetV1>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) letter: Option<Box<DeadLetterV1>>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) hops: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) replies_left: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) via: Vec<TopicName>,
    // Messages call this field `company`. That name must not change.
    #[serde(rename = "company", default, skip_serializing_if = "Option::is_none")]
    pub(super) batching: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) abandoned: bool,
    #[serde(default, skip_serializing_if = "Hold::is_none")]
    pub(super) hold: Hold,
    pub(super) history: Vec<EntryV1>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last: Option<LastV1>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) last_headers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last_detail: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failing: Option<FailingDestination>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) replay: Option<ReplayV1>,
}

/// The replay that created a delivery, in the form that message attributes contain.
#[derive(Serialize, Deserialize)]
pub(super) struct ReplayV1 {
    pub(super) job: String,
    pub(super) letter: Uuid,
}

/// The schema of an event that is not a CloudEvent. It is stored because the input of the topic may
/// change before the next receive. Omitted if the schema follows from the bytes of the event.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ShapeV1 {
    EventGrid,
    Custom,
    Opaque,
}

/// The target of a delivery. Omitted if the target is the subscription's destination.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TargetV1 {
    Reply,
    /// The delivery sends the dead letter in the field `letter` to a sink.
    Sink,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_false(value: &bool) -> bool {
    !value
}

#[derive(Serialize, Deserialize)]
pub(super) struct DeadLetterV1 {
    #[serde(flatten)]
    pub(super) delivery: DeliveryV1,
    pub(super) reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<String>,
    pub(super) decided_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) not_before_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) container: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) queue: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sink_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) returned: Option<ReturnedV1>,
    #[serde(with = "FormatV1")]
    pub(super) format: Format,
    #[serde(with = "LayoutV1")]
    pub(super) layout: Layout,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error_data: Option<ErrorDataV1>,
    pub(super) period_ms: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) headers: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) destination: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) opaque: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mapped: Option<Mapped>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) addresses: Option<Addresses>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Format", rename_all = "lowercase")]
enum FormatV1 {
    Namespace,
    EventGrid,
    CloudEvents,
    Custom,
    Knative,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Layout", rename_all = "snake_case")]
enum LayoutV1 {
    Nested,
    Flat,
}

/// The encoding of the last response in `knativeerrordata`, a member of the Knative format. Omitted
/// if the response is text.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ErrorDataV1 {
    Base64,
}

/// The failed delivery of a dead letter to its sink.
#[derive(Serialize, Deserialize)]
pub(super) struct ReturnedV1 {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) address: Option<String>,
    pub(super) reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<String>,
    pub(super) attempts: u32,
    pub(super) history: Vec<EntryV1>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last: Option<LastV1>,
}
