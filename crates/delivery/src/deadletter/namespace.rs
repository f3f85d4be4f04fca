//! Event Grid namespaces, "dead lettering for event subscriptions to namespace topics".
//!
//! Nested: `{"event":…,"customDeliveryProperties":…,"deadletterProperties":…}`. Flat: the event's
//! members in place of `event`, as that page's sample of the structured mode has it.

use super::about::{About, Names};
use super::flat::{self, Hidden};
use crate::event::Members;
use crate::event::json::Object;

/// The headers that were sent.
pub(crate) const HEADERS: &str = "customDeliveryProperties";
/// What is said about the event.
pub(crate) const PROPERTIES: &str = "deadletterProperties";
/// The event in the nested layout.
pub(crate) const EVENT: &str = "event";
/// What tells an event that is a JSON string from one that is text.
pub(crate) const EVENT_IS: &str = "eventis";
/// Its value for a JSON string.
pub(crate) const JSON: &str = "json";

const NAMES: Names = Names {
    reason: "deadletterreason",
    attempts: "deliveryattempts",
    outcome: "deliveryresult",
    published: "publishutc",
    attempted: "deliveryattemptutc",
};

/// The letter in the nested layout; every event has a place in it.
pub(super) fn nested(about: &About<'_>) -> String {
    let mut object = Object::default();
    let event = about.event_json();
    match event {
        Some(json) => object.raw(EVENT, Some(json.get())),
        None => object.text(EVENT, about.letter.delivery.event.text()),
    }
    let is_string = event.is_some_and(|json| json.get().starts_with('"'));
    finish(about, object, &Hidden::default(), is_string)
}

/// The letter in the flat layout; `None` for an event that is no object, or that would look like a
/// nested one.
pub(super) fn flat(about: &About<'_>) -> Option<String> {
    let event = about.event_json()?.get();
    let (object, hidden) = flat::open(event, &[HEADERS, PROPERTIES])?;
    let members = Members::parse(event).ok()?;
    let looks_nested = members.iter().all(|(name, _)| [EVENT, HEADERS, PROPERTIES].contains(&name));
    if looks_nested && members.get(EVENT).is_some() {
        return None;
    }
    Some(finish(about, object, &hidden, false))
}

fn finish(about: &About<'_>, mut object: Object, hidden: &Hidden, is_string: bool) -> String {
    let headers = &about.letter.headers;
    if !headers.is_empty() {
        let mut told = Object::default();
        headers.iter().for_each(|(name, value)| told.text(name, value));
        object.raw(HEADERS, Some(&told.finish()));
    }
    let mut properties = Object::default();
    about.five(&mut properties, &NAMES, &about.letter.reason.sentence());
    about.ours(&mut properties);
    if is_string {
        properties.text(EVENT_IS, JSON);
    }
    hidden.tell(&mut properties);
    object.raw(PROPERTIES, Some(&properties.finish()));
    object.finish()
}
