//! Reads dead letters back from the keys and bytes of their blobs.
//!
//! This module is separate from [`crate::deadletter`], which writes, because the reader accepts
//! more than is written. It reads every format and both layouts, the spellings
//! `deadLetterProperties` and `brokerProperties`, and blobs without our own fields. A blob may be
//! an object or an array of one object.
//!
//! `read(key(letter), bytes(letter))` returns the id, reason, attempts and published text of the
//! dead letter, byte for byte. The key identifies a dead letter, so a blob cannot pass for a
//! different dead letter. From a blob that another program wrote, the members of the event are
//! returned in the spelling of the blob. A blob without exactly one dead letter is an error.
//!
//! The event is not validated, so a malformed event is read like any other. A missing field is
//! `None`.

mod again;
mod element;
mod key;
mod letter;
mod properties;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

pub use self::again::{FailedAt, Failure};
use self::element::Element;
use self::key::KeyParts;
pub use self::key::id_of_key;
pub use self::letter::{StoredAttempt, StoredDeadLetter, StoredSink};
use crate::deadletter::LASTMILE;
use crate::event::Members;

/// Reads the dead letter of a blob. `prefix` is the prefix of all keys in the container.
///
/// # Errors
/// Fails if the key or the bytes are not those of a dead letter's blob. The error describes the
/// problem.
pub fn read(key: &str, prefix: &str, bytes: &[u8]) -> Result<StoredDeadLetter, String> {
    let key_parts = KeyParts::read(key, prefix)?;
    let text = std::str::from_utf8(bytes).map_err(|error| format!("the blob is not text: {error}"));
    let letter = text.and_then(only_element).and_then(|element| of_element(element, &key_parts));
    letter.map_err(|why| format!("{key}: {why}"))
}

fn of_element(text: &str, key_parts: &KeyParts<'_>) -> Result<StoredDeadLetter, String> {
    let members = Members::parse(text).map_err(|error| error.to_string())?;
    let own = members.text(LASTMILE).unwrap_or_default();
    Element::from_members(&members, &own)?.letter(key_parts)
}

/// Returns the published event of a dead letter, given the dead letter's JSON.
pub(super) fn event_of(text: &str) -> Result<String, String> {
    let members = Members::parse(text).map_err(|error| error.to_string())?;
    let own = members.text(LASTMILE).unwrap_or_default();
    Ok(Element::from_members(&members, &own)?.event())
}

/// Returns the JSON of the dead letter: the object itself, or the only element of an array.
///
/// An array of several elements is an error: a second dead letter would have no id, so no command
/// could name, replay or purge it.
fn only_element(text: &str) -> Result<&str, String> {
    let not_json = |error: serde_json::Error| format!("the blob is not JSON: {error}");
    if !text.trim_start().starts_with('[') {
        return serde_json::from_str(text).map(RawValue::get).map_err(not_json);
    }
    // `IgnoredAny` is zero-sized, so counting needs no memory, however long the array is.
    let count = serde_json::from_str::<Vec<IgnoredAny>>(text).map_err(not_json)?.len();
    match serde_json::from_str::<[&RawValue; 1]>(text) {
        Ok([element]) => Ok(element.get()),
        Err(_) => Err(format!(
            "the blob is an array of {count} elements, but must contain exactly one dead letter"
        )),
    }
}

#[cfg(test)]
mod tests;
