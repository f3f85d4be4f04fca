//! An event in one object with the fields about it.
//!
//! Separate because every flat format has the same two problems: a member of the event may have a
//! reserved name, and the event may have to be shown in another schema than it was published in.
//! Either way the replaced parts are kept among our own fields, so that
//! [`crate::deadletter::stored`] can restore what was published.

use serde_json::value::RawValue;

use crate::delivery::{DeadLetter, Delivery};
use crate::event::json::Object;
use crate::event::{Members, Shape, convert};

/// The member with the members that were replaced.
pub(crate) const ORIGINAL: &str = "original";
/// The member that says how the event was published.
pub(crate) const PUBLISHED: &str = "published";
/// Its value where the event is the value of `data`.
pub(crate) const IN_DATA: &str = "data";

/// The parts of the published event that an object does not show.
#[derive(Debug, Default)]
pub(super) struct HiddenMembers {
    /// The members that were replaced, as an object.
    original: Option<String>,
    /// How it was published, where it is shown in another schema: JSON.
    published: Option<String>,
}

impl HiddenMembers {
    /// Writes them.
    pub(super) fn write_to(&self, object: &mut Object) {
        object.raw(ORIGINAL, self.original.as_deref());
        object.raw(PUBLISHED, self.published.as_deref());
    }
}

/// The event's members, to the byte where no name is reserved. `None` where it is not an object.
pub(super) fn open(event: &str, reserved: &[&str]) -> Option<(Object, HiddenMembers)> {
    let members = Members::parse(event).ok().filter(|_| event.trim_start().starts_with('{'))?;
    let is_reserved = |name: &str| reserved.contains(&name);
    if !members.iter().any(|(name, _)| is_reserved(name)) {
        return Some((Object::beginning_with(event)?, HiddenMembers::default()));
    }
    let (mut object, mut original) = (Object::default(), Object::default());
    for (name, value) in members.iter() {
        let target = if is_reserved(name) { &mut original } else { &mut object };
        target.raw(name, Some(value));
    }
    Some((object, HiddenMembers { original: Some(original.finish()), published: None }))
}

/// The event as a CloudEvent; `None` when it cannot be one.
pub(super) fn open_cloud_event(
    letter: &DeadLetter,
    event: &RawValue,
    reserved: &[&str],
) -> Option<(Object, HiddenMembers)> {
    let published = match (&letter.mapped, letter.delivery.event.shape()) {
        (Some(_), _) => format!("\"{IN_DATA}\""),
        (None, Shape::EventGrid) => beside_data(event.get())?,
        (None, Shape::CloudEvent | Shape::Custom | Shape::Opaque) => {
            return open(event.get(), reserved);
        }
    };
    let Delivery { event, subscription, .. } = &letter.delivery;
    let text = convert::cloud_event(event, &subscription.topic, letter.mapped.as_ref()).ok()?;
    let hidden = HiddenMembers { original: None, published: Some(published) };
    Some((Object::beginning_with(&text)?, hidden))
}

/// The event in the Event Grid schema; a CloudEvent, which cannot be converted into it, as it is.
pub(super) fn open_event_grid(
    letter: &DeadLetter,
    event: &RawValue,
    reserved: &[&str],
) -> Option<(Object, HiddenMembers)> {
    if letter.mapped.is_none() {
        return open(event.get(), reserved);
    }
    let text = convert::event_grid(&letter.delivery.event, letter.mapped.as_ref()).ok()?;
    let hidden = HiddenMembers { original: None, published: Some(format!("\"{IN_DATA}\"")) };
    Some((Object::beginning_with(&text)?, hidden))
}

/// The members of an event but its data.
fn beside_data(event: &str) -> Option<String> {
    let members = Members::parse(event).ok()?;
    let mut object = Object::default();
    for (name, value) in members.iter().filter(|(name, _)| *name != IN_DATA) {
        object.raw(name, Some(value));
    }
    Some(object.finish())
}
