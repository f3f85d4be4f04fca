//! The key and the bytes of a dead letter's blob: pure functions of the letter.
//!
//! Because the key depends on nothing but what the message carries, a message handled twice writes
//! one blob. The event's own text stands in the blob as it was published; what is added comes after
//! it, and where the two share an object, what was replaced is kept.
//!
//! A format that has no place for an event (text in a format of JSON members, a custom event
//! without a type in one of CloudEvents) holds it in the nested layout of the namespace format: no
//! event is bent to fit.

use uuid::Uuid;

use super::about::About;
use super::{cloudevents, custom, eventgrid, knative, namespace};
use crate::delivery::{DELIVERY_NAMESPACE, DeadLetter, Delivery, Store};
use crate::event::json::escaped;
use crate::subscription::dead_letter_format::{Format, Layout};
use crate::subscription::name::{SubscriptionName, segment};
use crate::time::moment;

/// What letters have in common that share a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobKey {
    subscription: SubscriptionName,
    hour: String,
    store: Store,
    format: Format,
    layout: Layout,
}

/// With what a letter may share its blob; `None` when it wants one of its own.
#[must_use]
pub fn blob_key(letter: &DeadLetter) -> Option<BlobKey> {
    let DeadLetter { delivery, store, format, layout, .. } = letter;
    let is_blob = !matches!(store, Store::Queue(_));
    (letter.events_per_blob > 1 && is_blob).then(|| BlobKey {
        subscription: delivery.subscription.clone(),
        hour: moment::hour_folder(delivery.due_ms),
        store: store.clone(),
        format: *format,
        layout: *layout,
    })
}

/// The key of a letter: `<namespace>/<topic>/<subscription>/<yyyy>/<M>/<d>/<H>/<guid>.json`, behind
/// `prefix` if any.
///
/// The hour is that of the moment the last attempt was due (before any attempt: of publication), in
/// UTC.
#[must_use]
pub fn key(letter: &DeadLetter, prefix: &str) -> String {
    shared_key(&[letter], prefix)
}

/// The bytes of a letter's blob. `sink_error` says why it is not in the container it was meant for.
#[must_use]
pub fn bytes(letter: &DeadLetter, sink_error: Option<&str>) -> Vec<u8> {
    shared_bytes(&[letter], sink_error)
}

/// The key of letters that [`blob_key`] a blob: its GUID is the UUIDv5 of their ids, in whatever order
/// they come.
///
/// # Panics
/// When there is no letter.
#[must_use]
pub fn shared_key(letters: &[&DeadLetter], prefix: &str) -> String {
    let letters = each_once(letters);
    let ids: Vec<String> = letters.iter().map(|letter| letter.delivery.id.to_string()).collect();
    let Delivery { id, subscription: SubscriptionName { topic, name }, due_ms, .. } =
        &letters[0].delivery;
    let guid = if ids.len() == 1 {
        *id
    } else {
        Uuid::new_v5(&DELIVERY_NAMESPACE, ids.join("\n").as_bytes())
    };
    let path = [&topic.namespace, &topic.topic, name].map(|part| segment(part)).join("/");
    let prefix = prefix.trim_matches('/');
    let slash = if prefix.is_empty() { "" } else { "/" };
    format!("{prefix}{slash}{path}/{}/{guid}.json", moment::hour_folder(*due_ms))
}

/// The bytes of the blob of letters that [`blob_key`] one.
///
/// # Panics
/// When there is no letter.
#[must_use]
pub fn shared_bytes(letters: &[&DeadLetter], sink_error: Option<&str>) -> Vec<u8> {
    let letters = each_once(letters);
    let elements: Vec<String> =
        letters.iter().map(|letter| element(&About { letter, sink_error })).collect();
    let bare = match letters[0].format {
        Format::Namespace => elements.len() == 1,
        Format::EventGrid | Format::CloudEvents | Format::Custom | Format::Knative => false,
    };
    let elements = elements.join(",");
    if bare { elements.into() } else { format!("[{elements}]").into() }
}

/// A letter as a message: what a sink is sent that is no container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enriched {
    /// The event with why it could not be delivered, in the letter's format.
    pub json: String,
    /// Whether that is a CloudEvent.
    pub is_cloud_event: bool,
}

/// The event, enriched with why, as it travels to a sink.
#[must_use]
pub fn enriched(letter: &DeadLetter) -> Enriched {
    let about = About { letter, sink_error: None };
    let cloud_event = match letter.format {
        Format::CloudEvents => cloudevents::element(&about),
        Format::Knative => knative::element(&about),
        Format::Namespace | Format::EventGrid | Format::Custom => None,
    };
    let is_cloud_event = cloud_event.is_some();
    // Text from an answer may hold what no queue takes.
    Enriched { json: escaped(&cloud_event.unwrap_or_else(|| element(&about))), is_cloud_event }
}

/// The letters in the order of their ids; a delivery that was duplicated further up has one all the
/// same.
fn each_once<'a>(letters: &[&'a DeadLetter]) -> Vec<&'a DeadLetter> {
    assert!(!letters.is_empty(), "a blob is that of a letter");
    let mut letters = letters.to_vec();
    letters.sort_by_key(|letter| letter.delivery.id);
    letters.dedup_by_key(|letter| letter.delivery.id);
    letters
}

/// One letter in its format, as JSON.
fn element(about: &About<'_>) -> String {
    let written = match (about.letter.format, about.letter.layout) {
        (Format::Namespace, Layout::Nested) => None,
        (Format::Namespace, Layout::Flat) => namespace::flat(about),
        (Format::EventGrid, _) => eventgrid::element(about),
        (Format::CloudEvents, _) => cloudevents::element(about),
        (Format::Custom, _) => custom::element(about),
        (Format::Knative, _) => knative::element(about),
    };
    written.unwrap_or_else(|| namespace::nested(about))
}
