//! Writes an event and the fields about it into one object.
//!
//! This module is separate because flat formats share two problems: a member of the event may have
//! a reserved name, and the event may have to be shown in a different schema. The missing
//! information is then stored among our own fields, so that [`crate::deadletter::stored`] can
//! return the published event.

use serde_json::value::RawValue;

use crate::delivery::{DeadLetter, Delivery};
use crate::event::json::{Object, quoted};
use crate::event::{Members, Shape, convert};

/// Name of the member with the published text; present if the other members cannot restore the
/// text.
pub(crate) const ORIGINAL: &str = "original";
/// Name of the member with the published text in base64; present if some JSON parsers would reject
/// the text.
pub(crate) const ORIGINAL_BASE64: &str = "original_base64";
/// Name of the member with the white space before and after the event, if there is any.
pub(crate) const AROUND: &str = "around";
/// Name of the member that describes the published form of an event that is shown in a different
/// schema.
pub(crate) const PUBLISHED: &str = "published";
/// Value of [`PUBLISHED`] for an event that is the value of `data`.
pub(crate) const IN_DATA: &str = "data";

/// Begins an object with the members of the event. Omits members with a reserved name. If no member
/// has a reserved name, the text of the event is kept byte for byte. Returns `None` if the event is
/// not an object.
pub(super) fn open(event: &str, reserved: &[&str]) -> Option<Object> {
    let members = Members::parse(event).ok().filter(|_| event.trim_start().starts_with('{'))?;
    let is_reserved = |name: &str| reserved.contains(&name);
    if !members.iter().any(|(name, _)| is_reserved(name)) {
        return Object::beginning_with(event);
    }
    let mut object = Object::default();
    let own = members.iter().filter(|(name, _)| !is_reserved(name));
    own.for_each(|(name, value)| object.raw(name, Some(value)));
    Some(object)
}

/// Begins an object with the event as a CloudEvent. Also returns the published form, if the event
/// was published in a different schema. Returns `None` if the event cannot be converted to a
/// CloudEvent.
pub(super) fn open_cloud_event(
    letter: &DeadLetter,
    event: &RawValue,
    reserved: &[&str],
) -> Option<(Object, Option<String>)> {
    let published = match (&letter.mapped, letter.delivery.event.shape()) {
        (Some(_), _) => Some(quoted(IN_DATA)),
        (None, Shape::EventGrid) => around_data(event.get()),
        (None, Shape::CloudEvent | Shape::Custom | Shape::Opaque) => {
            return Some((open(event.get(), reserved)?, None));
        }
    };
    let Delivery { event, subscription, .. } = &letter.delivery;
    let text = convert::cloud_event(event, &subscription.topic, letter.mapped.as_ref()).ok()?;
    Some((Object::beginning_with(&text)?, published))
}

/// Begins an object with the event in the Event Grid schema. Also returns the published form, if
/// the event was published in a different schema. A CloudEvent stays unchanged, because it cannot
/// be converted.
pub(super) fn open_event_grid(
    letter: &DeadLetter,
    event: &RawValue,
    reserved: &[&str],
) -> Option<(Object, Option<String>)> {
    if letter.mapped.is_none() {
        return Some((open(event.get(), reserved)?, None));
    }
    let text = convert::event_grid(&letter.delivery.event, letter.mapped.as_ref()).ok()?;
    Some((Object::beginning_with(&text)?, Some(quoted(IN_DATA))))
}

/// Returns the text of an event before and after the value of `data`, as a JSON array; `None`
/// without `data`.
fn around_data(event: &str) -> Option<String> {
    let (before, after) = Members::parse(event).ok()?.around(IN_DATA)?;
    Some(format!("[{},{}]", quoted(before), quoted(after)))
}
