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

use super::fields::{BlobFields, Original};
use super::shown::Shown;
use super::{cloudevents, custom, eventgrid, knative, namespace, stored};
use crate::delivery::{DeadLetter, Delivery};
use crate::event::json::escaped;
use crate::subscription::dead_letter_format::{Format, Layout};
use crate::subscription::name::{SubscriptionName, segment};
use crate::time::moment;

/// The key of a dead letter: `<namespace>/<topic>/<subscription>/<yyyy>/<M>/<d>/<H>/<guid>.json`,
/// behind `prefix` if any.
///
/// The hour is that of the decision, in UTC. It travels with the message.
#[must_use]
pub fn key(letter: &DeadLetter, prefix: &str) -> String {
    let Delivery { id, subscription: SubscriptionName { topic, name }, .. } = &letter.delivery;
    let mut path = [&topic.namespace, &topic.topic, name].map(|part| segment(part)).join("/");
    for (reserved, escaped) in RESERVED_FOLDERS {
        if let Some(rest) = path.strip_prefix(reserved) {
            path = format!("{escaped}{rest}");
        }
    }
    let prefix = prefix.trim_matches('/');
    let slash = if prefix.is_empty() { "" } else { "/" };
    format!("{prefix}{slash}{path}/{}/{id}.json", moment::hour_folder(letter.decided_ms))
}

/// Below them are the ledgers of replays, and what was dismissed. A publisher may name any topic: these
/// folders are not for dead letters.
const RESERVED_FOLDERS: [(&str, &str); 2] =
    [("_replays/", "%5Freplays/"), ("_dismissed/", "%5Fdismissed/")];

/// The bytes of a dead letter's blob. `sink_error` says why it is not in its own container.
#[must_use]
pub fn bytes(letter: &DeadLetter, sink_error: Option<&str>) -> Vec<u8> {
    let element = element(letter, sink_error);
    match letter.format {
        Format::Namespace => element.into(),
        // An array of one.
        Format::EventGrid | Format::CloudEvents | Format::Custom | Format::Knative => {
            format!("[{element}]").into()
        }
    }
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

/// The dead letter in its format, as JSON; nested where the format cannot hold its event.
fn element(letter: &DeadLetter, sink_error: Option<&str>) -> String {
    let shown = Shown::of(letter);
    let fields = shown.fields(sink_error);
    let nested = |fields: &BlobFields<'_>| Some(namespace::nested(fields));
    let written = whole(&fields, in_format);
    written.or_else(|| whole(&fields, nested)).expect("the nested layout holds all")
}

/// The dead letter, written so that its event is read back to the byte.
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

/// The dead letter in its own format; `None` where that is the nested one, or cannot hold its event.
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
