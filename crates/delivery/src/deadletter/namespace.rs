//! Writes the namespace format (Event Grid namespaces, "dead lettering for event subscriptions to
//! namespace topics").
//!
//! The nested layout is `{"event":…,"customDeliveryProperties":…,"deadletterProperties":…}`. The
//! flat layout has the members of the event in place of `event`, like the sample of the structured
//! mode in Event Grid's documentation.

use super::fields::{BlobFields, FieldNames};
use super::flat;
use crate::delivery::Word;
use crate::event::Members;
use crate::event::json::Object;

/// Name of the member with the headers of the delivery's requests.
pub(crate) const HEADERS: &str = "customDeliveryProperties";
/// Name of the member with the fields that describe the dead letter.
pub(crate) const PROPERTIES: &str = "deadletterProperties";
/// Name of the member with the event in the nested layout.
pub(crate) const EVENT: &str = "event";
/// Name of the member that marks a string as the event itself. Without it, a string in `event` is
/// text that is not JSON.
pub(crate) const EVENT_IS: &str = "eventis";
/// Value of [`EVENT_IS`] for an event that is a JSON string.
pub(crate) const JSON: &str = "json";

const NAMES: FieldNames = FieldNames {
    reason: "deadletterreason",
    attempts: "deliveryattempts",
    outcome: "deliveryresult",
    published: "publishutc",
    attempted: "deliveryattemptutc",
};

/// Writes the dead letter in the nested layout, which can hold every event.
pub(super) fn nested(fields: &BlobFields<'_>) -> String {
    let mut object = Object::default();
    let event = fields.json;
    match event {
        Some(json) => object.raw(EVENT, Some(json.get())),
        None => object.text(EVENT, fields.letter.delivery.event.text()),
    }
    let is_string = event.is_some_and(|json| json.get().starts_with('"'));
    finish(fields, object, is_string)
}

/// Writes the dead letter in the flat layout. Returns `None` for an event that is not an object, or
/// whose flat form would look nested.
pub(super) fn flat(fields: &BlobFields<'_>) -> Option<String> {
    let event = fields.json?.get();
    let object = flat::open(event, &[HEADERS, PROPERTIES])?;
    let members = Members::parse(event).ok()?;
    let looks_nested = members.iter().all(|(name, _)| [EVENT, HEADERS, PROPERTIES].contains(&name));
    if looks_nested && members.get(EVENT).is_some() {
        return None;
    }
    Some(finish(fields, object, false))
}

fn finish(fields: &BlobFields<'_>, mut object: Object, is_string: bool) -> String {
    let headers = &fields.letter.headers;
    if !headers.is_empty() {
        let mut sent = Object::default();
        headers.iter().for_each(|(name, value)| sent.text(name, value));
        object.raw(HEADERS, Some(&sent.finish()));
    }
    let mut properties = Object::default();
    let reason = match &fields.letter.reason {
        Word::Known(reason) => reason.sentence(),
        Word::Other(word) => word.to_string(),
    };
    fields.common(&mut properties, &NAMES, &reason);
    fields.own(&mut properties);
    if is_string {
        properties.text(EVENT_IS, JSON);
    }
    object.raw(PROPERTIES, Some(&properties.finish()));
    object.finish()
}
