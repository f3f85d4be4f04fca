//! An event in one object with the fields about it.
//!
//! Separate because every flat format has the same two problems: a member of the event may have a
//! reserved name, and the event may have to be shown in another schema than it was published in.
//! What is missing then is kept among our own fields, so that [`crate::deadletter::stored`] gives back
//! what was published.

use serde_json::value::RawValue;

use crate::delivery::{DeadLetter, Delivery};
use crate::event::json::{Object, quoted};
use crate::event::{Members, Shape, convert};

/// The member with the published text, where nothing else gives it back.
pub(crate) const ORIGINAL: &str = "original";
/// The member with the bytes of the published text in base64, where the text is not for every reader of JSON.
pub(crate) const ORIGINAL_BASE64: &str = "original_base64";
/// The member with the white space before and after the event, if there is any.
pub(crate) const AROUND: &str = "around";
/// The member that says how the event was published, if it is shown in another schema.
pub(crate) const PUBLISHED: &str = "published";
/// Its value where the event is the value of `data`.
pub(crate) const IN_DATA: &str = "data";

/// The event's members but those with a reserved name, to the byte where there are none. `None` where it
/// is not an object.
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

/// The event as a CloudEvent, and how it was published if that is in another schema; `None` when it cannot
/// be one.
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

/// The event in the Event Grid schema, and how it was published if that is in another one; a CloudEvent, which
/// cannot be converted into it, as it is.
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

/// The text of an event before its data and after it, as JSON; `None` without data.
fn around_data(event: &str) -> Option<String> {
    let (before, after) = Members::parse(event).ok()?.around(IN_DATA)?;
    Some(format!("[{},{}]", quoted(before), quoted(after)))
}
