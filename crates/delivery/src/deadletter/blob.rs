//! The key and the bytes of a dead letter's blob: pure functions of the dead letter.
//!
//! The key depends only on the message, so a message that is processed twice writes one blob. The
//! event's own text is in the blob as it was published, and added members come after it. Whatever is
//! written is read back at once: where that does not give the event to the byte (an added member replaces
//! one of it), the published text is kept as well.
//!
//! An event that a format cannot hold (text in a format of JSON members, a custom event without a
//! type in one of CloudEvents) is written in the nested layout of the namespace format, never
//! altered to fit. Every blob is valid Unicode, whatever its event is ([`Shown`]).

use uuid::Uuid;

use super::fields::{BlobFields, Original};
use super::shown::Shown;
use super::{cloudevents, custom, eventgrid, knative, namespace, stored};
use crate::delivery::{DELIVERY_NAMESPACE, DeadLetter, Delivery, Store};
use crate::event::json::escaped;
use crate::subscription::dead_letter_format::{Format, Layout};
use crate::subscription::name::{SubscriptionName, segment};
use crate::time::moment;

/// What dead letters have in common to share a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobKey {
    subscription: SubscriptionName,
    hour: String,
    store: Store,
    format: Format,
    layout: Layout,
}

/// The key that dead letters of one blob share; `None` for one with a blob of its own.
#[must_use]
pub fn blob_key(letter: &DeadLetter) -> Option<BlobKey> {
    let DeadLetter { delivery, store, format, layout, .. } = letter;
    let is_blob = !matches!(store, Store::Queue(_));
    (letter.events_per_blob > 1 && is_blob).then(|| BlobKey {
        subscription: delivery.subscription.clone(),
        // The hour is part of the key, so letters of two hours cannot share a blob.
        hour: moment::hour_folder(letter.decided_ms),
        store: store.clone(),
        format: *format,
        layout: *layout,
    })
}

/// The key of a dead letter: `<namespace>/<topic>/<subscription>/<yyyy>/<M>/<d>/<H>/<guid>.json`,
/// behind `prefix` if any.
///
/// The hour is that of the decision, in UTC. It travels with the message.
#[must_use]
pub fn key(letter: &DeadLetter, prefix: &str) -> String {
    shared_key(&[letter], prefix)
}

/// The bytes of a dead letter's blob. `sink_error` says why it is not in its own container.
#[must_use]
pub fn bytes(letter: &DeadLetter, sink_error: Option<&str>) -> Vec<u8> {
    shared_bytes(&[letter], sink_error)
}

/// Below them are the ledgers of replays, and what was dismissed. A publisher may name any topic: these
/// folders are not for dead letters.
const RESERVED_FOLDERS: [(&str, &str); 2] =
    [("_replays/", "%5Freplays/"), ("_dismissed/", "%5Fdismissed/")];

/// The key of the blob of dead letters with one [`blob_key`]: its GUID is the UUIDv5 of their ids,
/// in any order.
///
/// # Panics
/// When `letters` is empty.
#[must_use]
pub fn shared_key(letters: &[&DeadLetter], prefix: &str) -> String {
    let letters = deduplicated(letters);
    let ids: Vec<String> = letters.iter().map(|letter| letter.delivery.id.to_string()).collect();
    let DeadLetter { delivery, decided_ms, .. } = letters[0];
    let Delivery { id, subscription: SubscriptionName { topic, name }, .. } = delivery;
    // A single letter keeps its own id, by which it is found.
    let guid = if ids.len() == 1 {
        *id
    } else {
        Uuid::new_v5(&DELIVERY_NAMESPACE, ids.join("\n").as_bytes())
    };
    let mut path = [&topic.namespace, &topic.topic, name].map(|part| segment(part)).join("/");
    for (reserved, escaped) in RESERVED_FOLDERS {
        if let Some(rest) = path.strip_prefix(reserved) {
            path = format!("{escaped}{rest}");
        }
    }
    let prefix = prefix.trim_matches('/');
    let slash = if prefix.is_empty() { "" } else { "/" };
    format!("{prefix}{slash}{path}/{}/{guid}.json", moment::hour_folder(*decided_ms))
}

/// The bytes of the blob of dead letters with one [`blob_key`].
///
/// # Panics
/// When `letters` is empty.
#[must_use]
pub fn shared_bytes(letters: &[&DeadLetter], sink_error: Option<&str>) -> Vec<u8> {
    let letters = deduplicated(letters);
    let elements: Vec<String> = letters.iter().map(|letter| element(letter, sink_error)).collect();
    let bare = match letters[0].format {
        Format::Namespace => elements.len() == 1,
        Format::EventGrid | Format::CloudEvents | Format::Custom | Format::Knative => false,
    };
    let elements = elements.join(",");
    if bare { elements.into() } else { format!("[{elements}]").into() }
}

/// A dead letter as a message, for a sink that is not a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enriched {
    /// The event and why it could not be delivered, in the dead letter's format.
    pub json: String,
    /// Whether that is a CloudEvent.
    pub is_cloud_event: bool,
}

/// The message for a sink: the event and why it could not be delivered.
#[must_use]
pub fn enriched(letter: &DeadLetter) -> Enriched {
    let shown = Shown::of(letter);
    let fields = shown.fields(None);
    let cloud_event = match letter.format {
        Format::CloudEvents | Format::Knative => whole(&fields, in_format),
        Format::Namespace | Format::EventGrid | Format::Custom => None,
    };
    let is_cloud_event = cloud_event.is_some();
    // Text from an answer may hold characters that no queue accepts.
    Enriched {
        json: escaped(&cloud_event.unwrap_or_else(|| element(letter, None))),
        is_cloud_event,
    }
}

/// The dead letters in the order of their ids, without duplicates: a delivery may have been
/// processed twice.
fn deduplicated<'a>(letters: &[&'a DeadLetter]) -> Vec<&'a DeadLetter> {
    assert!(!letters.is_empty(), "a blob is that of a dead letter");
    let mut letters = letters.to_vec();
    letters.sort_by_key(|letter| letter.delivery.id);
    letters.dedup_by_key(|letter| letter.delivery.id);
    letters
}

/// One dead letter in its format, as JSON; nested where the format cannot hold its event.
fn element(letter: &DeadLetter, sink_error: Option<&str>) -> String {
    let shown = Shown::of(letter);
    let fields = shown.fields(sink_error);
    let nested = |fields: &BlobFields<'_>| Some(namespace::nested(fields));
    let written = whole(&fields, in_format);
    written.or_else(|| whole(&fields, nested)).expect("the nested layout holds all")
}

/// One dead letter, written so that its event is read back to the byte.
fn whole(
    fields: &BlobFields<'_>,
    write: impl Fn(&BlobFields<'_>) -> Option<String>,
) -> Option<String> {
    let written = write(fields)?;
    if stored::event_of(&written).is_ok_and(|event| event == **fields.published.text()) {
        return Some(written);
    }
    write(&BlobFields { original: Original::Text, ..*fields })
}

/// One dead letter in its own format; `None` where that is the nested one, or cannot hold its event.
fn in_format(fields: &BlobFields<'_>) -> Option<String> {
    match (fields.letter.format, fields.letter.layout) {
        (Format::Namespace, Layout::Nested) => None,
        (Format::Namespace, Layout::Flat) => namespace::flat(fields),
        (Format::EventGrid, _) => eventgrid::element(fields),
        (Format::CloudEvents, _) => cloudevents::element(fields),
        (Format::Custom, _) => custom::element(fields),
        (Format::Knative, _) => knative::element(fields),
    }
}
