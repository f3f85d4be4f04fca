//! The structs of version 1, as JSON.
//!
//! Separate from the conversion, because a delivery may have a dead letter and a dead letter has a
//! delivery. New fields are optional, and no field is renamed or removed, because queues hold
//! messages across deployments. The same rule applies to the small structs that are serialized
//! directly: [`Origin`], [`Hold`], [`Mapped`] and [`Addresses`].
//!
//! Older code drops a new field when it writes the delivery again, because the field would describe
//! an outdated state. Unknown fields of an attempt are kept, because the past does not change.
//! Older code must not ignore a new value of a known field, or a new version. It refuses both, and
//! the message waits.
//!
//! Some values are only reported (an outcome, a reason) or may be ignored (batching). Such a value
//! is a text here and a [`Word`](crate::delivery::Word) inside, so an unknown value is kept. A
//! value that decides what happens is an enum here, so an unknown value is an error.

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
    // Absent if it equals the publication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) starts_ms: Option<u64>,
    pub(super) attempts: u32,
    pub(super) due_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) shape: Option<ShapeV1>,
    // The wire name differs from the name in the code, and must not change.
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
    // The wire name must not change either.
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

/// The replay that created a delivery.
#[derive(Serialize, Deserialize)]
pub(super) struct ReplayV1 {
    pub(super) job: String,
    pub(super) letter: Uuid,
}

/// Schema of an event that is not a CloudEvent, because the input of its topic may change before
/// the next receive. Absent if the schema follows from the bytes.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ShapeV1 {
    EventGrid,
    Custom,
    Opaque,
}

/// Absent for a published event on its way to the subscription's destination.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TargetV1 {
    Reply,
    /// The dead letter is in `letter`.
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

/// Absent for text.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ErrorDataV1 {
    Base64,
}

/// The failed delivery to the sink.
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
