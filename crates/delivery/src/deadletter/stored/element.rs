//! One letter of a blob: which format it is in, where its event is, where what is said about it.
//!
//! Separate because a format is told by its members alone. In the nested layout the event is a
//! member of its own, in the custom format it is `data`; everywhere else it shares an object with
//! the letter: what the format adds is taken out again, and what it replaced is put back.

use serde_json::Value;

use super::properties::{Properties, Published};
use super::{Place, StoredDeadLetter};
use crate::deadletter::{EVENT, HEADERS, IN_DATA, OURS, PROPERTIES, RESERVED};
use crate::event::Members;
use crate::event::json::Object;

/// The names of the object about a namespace's letter, ours first.
const SPELLINGS: [&str; 3] = [PROPERTIES, "deadLetterProperties", "brokerProperties"];

/// What the name of a member says about a letter's format.
enum ToldBy {
    /// The namespace format, with this spelling.
    Properties(&'static str),
    /// The format that adds these names to the event.
    Added(&'static [&'static str]),
}

/// Reads one letter.
pub(super) fn read(text: &str, place: &Place<'_>) -> Result<StoredDeadLetter, String> {
    let members = Members::parse(text).map_err(|error| error.to_string())?;
    let names: Vec<&str> = members.iter().map(|(name, _)| name).collect();
    // An event may have such names itself; what was added comes after its own members.
    match names.into_iter().rev().find_map(told_by) {
        Some(ToldBy::Properties(name)) => namespace(&members, name, place),
        Some(ToldBy::Added(reserved)) => flat(&members, reserved, place),
        None => {
            Err("neither a letter with deadletterProperties nor one of the flat formats".to_owned())
        }
    }
}

fn told_by(name: &str) -> Option<ToldBy> {
    let spelling = SPELLINGS.into_iter().find(|spelling| *spelling == name).map(ToldBy::Properties);
    let added = RESERVED.into_iter().find(|reserved| name != OURS && reserved.contains(&name));
    spelling.or_else(|| added.map(ToldBy::Added))
}

/// A letter of the namespace format, nested or flat.
fn namespace(
    members: &Members<'_>,
    about: &str,
    place: &Place<'_>,
) -> Result<StoredDeadLetter, String> {
    let properties = Properties::of_object(members.get(about).unwrap_or_default())?;
    let of_event = |name: &str| name != about && name != HEADERS;
    let nested = members
        .get(EVENT)
        .filter(|_| members.iter().all(|(name, _)| !of_event(name) || name == EVENT));
    let event = match nested {
        Some(event) => published_text(event, &properties),
        None => restored(members, of_event, &properties),
    };
    let mut letter = properties.letter(place, event)?;
    letter.headers = headers(members.get(HEADERS));
    Ok(letter)
}

/// A letter that shares its object with the event, or holds it as `data`.
fn flat(
    members: &Members<'_>,
    reserved: &[&str],
    place: &Place<'_>,
) -> Result<StoredDeadLetter, String> {
    let ours = members.text(OURS).unwrap_or_default();
    let about = Properties::beside_event(members, reserved, &ours);
    // Event Grid's custom schema: the payload stands last, after why and when.
    let is_custom = members.iter().last().is_some_and(|(name, _)| name == IN_DATA);
    let event = match (is_custom, about.published()) {
        (true, _) | (false, Some(Published::InData)) => {
            members.get(IN_DATA).unwrap_or_default().to_owned()
        }
        (false, Some(Published::Beside(object))) => {
            let mut event = Object::beginning_with(object).unwrap_or_default();
            event.raw(IN_DATA, members.get(IN_DATA));
            event.finish()
        }
        (false, None) => restored(members, |name| !reserved.contains(&name), &about),
    };
    let mut letter = about.letter(place, event)?;
    if is_custom {
        let told = ["id", "eventType", "topic"].map(|name| members.text(name).map(Into::into));
        [letter.event_id, letter.event_type, letter.source] = told;
    }
    Ok(letter)
}

/// A nested event: JSON in its own spelling, or the text that was none.
fn published_text(event: &str, properties: &Properties<'_>) -> String {
    match serde_json::from_str(event) {
        Ok(Value::String(text)) if !properties.event_is_json() => text,
        Ok(_) | Err(_) => event.to_owned(),
    }
}

/// The object of the members that are the event's, and of those that were replaced.
fn restored(
    members: &Members<'_>,
    of_event: impl Fn(&str) -> bool,
    about: &Properties<'_>,
) -> String {
    let mut event = Object::default();
    let original = about.original();
    let kept = members.iter().filter(|(name, _)| of_event(name));
    kept.chain(original.iter()).for_each(|(name, value)| event.raw(name, Some(value)));
    event.finish()
}

fn headers(raw: Option<&str>) -> Vec<(String, String)> {
    let members = raw.and_then(|raw| Members::parse(raw).ok()).unwrap_or_default();
    let text = |name: &str, value: &str| {
        (name.to_owned(), members.text(name).map_or(value.to_owned(), Into::into))
    };
    members.iter().map(|(name, value)| text(name, value)).collect()
}
