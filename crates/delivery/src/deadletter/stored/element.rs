//! Reads one dead letter of a blob: finds its format, its event and the fields about it.
//!
//! Separate because only the members show the format. In the nested layout the event is a member of
//! its own, in the custom format it is `data`; everywhere else it shares an object with the fields
//! about it: added members are removed, replaced ones are restored.

use serde_json::Value;

use super::properties::{Properties, Published};
use super::{KeyParts, StoredDeadLetter};
use crate::deadletter::{EVENT, HEADERS, IN_DATA, LASTMILE, PROPERTIES, RESERVED};
use crate::event::Members;
use crate::event::json::Object;

/// The names of the properties object in the namespace format, ours first.
const SPELLINGS: [&str; 3] = [PROPERTIES, "deadLetterProperties", "brokerProperties"];

/// A member whose name shows the format.
enum Marker {
    /// The namespace format, with this spelling.
    Properties(&'static str),
    /// The format that adds these names to the event.
    Added(&'static [&'static str]),
}

/// Reads one dead letter.
pub(super) fn read(text: &str, key_parts: &KeyParts<'_>) -> Result<StoredDeadLetter, String> {
    let members = Members::parse(text).map_err(|error| error.to_string())?;
    let names: Vec<&str> = members.iter().map(|(name, _)| name).collect();
    // Searched from the end: an event may have such names itself, and added members come after its
    // own.
    match names.into_iter().rev().find_map(marker) {
        Some(Marker::Properties(name)) => namespace(&members, name, key_parts),
        Some(Marker::Added(reserved)) => flat(&members, reserved, key_parts),
        None => Err("neither a dead letter with deadletterProperties nor one of the flat formats"
            .to_owned()),
    }
}

fn marker(name: &str) -> Option<Marker> {
    let spelling = SPELLINGS.into_iter().find(|spelling| *spelling == name).map(Marker::Properties);
    let added = RESERVED.into_iter().find(|reserved| name != LASTMILE && reserved.contains(&name));
    spelling.or_else(|| added.map(Marker::Added))
}

/// A dead letter of the namespace format, nested or flat.
fn namespace(
    members: &Members<'_>,
    fields: &str,
    key_parts: &KeyParts<'_>,
) -> Result<StoredDeadLetter, String> {
    let properties = Properties::of_object(members.get(fields).unwrap_or_default())?;
    let of_event = |name: &str| name != fields && name != HEADERS;
    let nested = members
        .get(EVENT)
        .filter(|_| members.iter().all(|(name, _)| !of_event(name) || name == EVENT));
    let event = match nested {
        Some(event) => published_text(event, &properties),
        None => restored(members, of_event, &properties),
    };
    let mut letter = properties.letter(key_parts, event)?;
    letter.headers = headers(members.get(HEADERS));
    Ok(letter)
}

/// A dead letter that shares its object with the event, or holds it as `data`.
fn flat(
    members: &Members<'_>,
    reserved: &[&str],
    key_parts: &KeyParts<'_>,
) -> Result<StoredDeadLetter, String> {
    let own = members.text(LASTMILE).unwrap_or_default();
    let fields = Properties::of_flat_event(members, reserved, &own);
    // Event Grid's custom schema: the payload comes last, after why and when.
    let is_custom = members.iter().last().is_some_and(|(name, _)| name == IN_DATA);
    let event = match (is_custom, fields.published()) {
        (true, _) | (false, Some(Published::InData)) => {
            members.get(IN_DATA).unwrap_or_default().to_owned()
        }
        (false, Some(Published::AmongMembers(object))) => {
            let mut event = Object::beginning_with(object).unwrap_or_default();
            event.raw(IN_DATA, members.get(IN_DATA));
            event.finish()
        }
        (false, None) => restored(members, |name| !reserved.contains(&name), &fields),
    };
    let mut letter = fields.letter(key_parts, event)?;
    if is_custom {
        let from_event =
            ["id", "eventType", "topic"].map(|name| members.text(name).map(Into::into));
        [letter.event_id, letter.event_type, letter.source] = from_event;
    }
    Ok(letter)
}

/// A nested event: JSON in its own spelling, or text that is not JSON.
fn published_text(event: &str, properties: &Properties<'_>) -> String {
    match serde_json::from_str(event) {
        Ok(Value::String(text)) if !properties.event_is_json() => text,
        Ok(_) | Err(_) => event.to_owned(),
    }
}

/// The event's object: its own members, and those that were replaced.
fn restored(
    members: &Members<'_>,
    of_event: impl Fn(&str) -> bool,
    fields: &Properties<'_>,
) -> String {
    let mut event = Object::default();
    let original = fields.original();
    let own_members = members.iter().filter(|(name, _)| of_event(name));
    own_members.chain(original.iter()).for_each(|(name, value)| event.raw(name, Some(value)));
    event.finish()
}

fn headers(raw: Option<&str>) -> Vec<(String, String)> {
    let members = raw.and_then(|raw| Members::parse(raw).ok()).unwrap_or_default();
    let text = |name: &str, value: &str| {
        (name.to_owned(), members.text(name).map_or(value.to_owned(), Into::into))
    };
    members.iter().map(|(name, value)| text(name, value)).collect()
}
