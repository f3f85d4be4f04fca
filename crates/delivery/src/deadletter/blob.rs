//! Writes the key and the bytes of a dead letter's blob, as pure functions of the dead letter.
//!
//! The key depends only on the message, so handling a message twice creates only one blob. The text
//! of the event is written as it was published, before the added members. The written blob is read
//! back at once. An added member may replace a member of the event, so that reading does not return
//! the event byte for byte. In that case, the published text is written too.
//!
//! A format may be unable to hold an event, for example plain text, or, in a CloudEvents format, a
//! custom event without a type. Such an event is stored in the nested layout of the namespace
//! format, and never altered. Every blob is valid Unicode, whatever its event is ([`Shown`]).

use super::fields::{BlobFields, Original};
use super::shown::Shown;
use super::{cloudevents, custom, eventgrid, knative, namespace, stored};
use crate::delivery::{DeadLetter, Delivery};
use crate::event::json::escaped;
use crate::subscription::dead_letter_format::{Format, Layout};
use crate::subscription::name::{SubscriptionName, segment};
use crate::time::moment;

/// Returns the key of a dead letter's blob:
/// `<namespace>/<topic>/<subscription>/<yyyy>/<M>/<d>/<H>/<guid>.json`, after `prefix` if there is
/// one.
///
/// The hour, in UTC, is that of the decision to end the delivery. The message contains this time,
/// so repeated writes use the same key.
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

/// Folders of replay ledgers and of dismissals, each with its escaped name. Publishers may name
/// topics like these folders, so dead letters of such topics use the escaped name.
const RESERVED_FOLDERS: [(&str, &str); 2] =
    [("_replays/", "%5Freplays/"), ("_dismissed/", "%5Fdismissed/")];

/// Returns the bytes of a dead letter's blob. `sink_error` is the reason why the dead letter is not
/// in the container of its subscription.
#[must_use]
pub fn bytes(letter: &DeadLetter, sink_error: Option<&str>) -> Vec<u8> {
    let element = element(letter, sink_error);
    match letter.format {
        Format::Namespace => element.into(),
        // These formats are arrays of one element.
        Format::EventGrid | Format::CloudEvents | Format::Custom | Format::Knative => {
            format!("[{element}]").into()
        }
    }
}

/// A dead letter as a message, for a sink that is an address, a topic or a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enriched {
    /// The event and the facts about its failure, in the dead letter's format.
    pub json: String,
    /// True if `json` is a CloudEvent.
    pub is_cloud_event: bool,
}

/// Writes the message that a sink receives: the event and the facts about its failure.
#[must_use]
pub fn enriched(letter: &DeadLetter) -> Enriched {
    let shown = Shown::new(letter);
    let fields = shown.fields(None);
    let cloud_event = match letter.format {
        Format::CloudEvents | Format::Knative => whole(&fields, in_format),
        Format::Namespace | Format::EventGrid | Format::Custom => None,
    };
    let is_cloud_event = cloud_event.is_some();
    // Text from a response may have characters that no queue accepts.
    Enriched {
        json: escaped(&cloud_event.unwrap_or_else(|| element(letter, None))),
        is_cloud_event,
    }
}

/// Writes the dead letter in its format, or nested if the format cannot hold its event.
fn element(letter: &DeadLetter, sink_error: Option<&str>) -> String {
    let shown = Shown::new(letter);
    let fields = shown.fields(sink_error);
    let nested = |fields: &BlobFields<'_>| Some(namespace::nested(fields));
    let written = whole(&fields, in_format);
    written.or_else(|| whole(&fields, nested)).expect("the nested layout holds all")
}

/// Writes the dead letter so that its event can be read back byte for byte.
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

/// Writes the dead letter in the format of its subscription. Returns `None` if the format has the
/// nested layout, or cannot hold the event.
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
