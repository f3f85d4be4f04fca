//! Reads dead letters back from the keys and bytes of their blobs.
//!
//! Separate from [`crate::deadletter`], which writes, because the reader accepts more than is
//! written: every format and both layouts, the spellings of other versions (`deadLetterProperties`,
//! `brokerProperties`), blobs without our own fields, objects and arrays of them.
//!
//! Promises: `read(key(letter), bytes(letter))` returns the dead letter's id, reason, attempts and
//! event, which is the published text to the byte. A dead letter is identified by its key, and in a
//! shared blob by its place there: whatever a blob says, it cannot take the place of another one. Of a blob that an older version or somebody else wrote, it
//! has the published members in their own spelling.
//!
//! Does not validate the event: a malformed one is read like any other, and what a blob does not
//! contain is `None`.

mod again;
mod element;
mod key;
mod letter;
mod properties;

use serde_json::value::RawValue;

pub use self::again::{FailedAt, Failure};
use self::element::Element;
use self::key::KeyParts;
pub use self::letter::{StoredAttempt, StoredDeadLetter, StoredSink};
use crate::deadletter::LASTMILE;
use crate::event::Members;
use crate::subscription::EVENTS_PER_BLOB_MAX;

/// Every dead letter of a blob. `prefix` is the container's.
///
/// # Errors
/// What is wrong with the key or the bytes, when they are not those of a dead letter's blob.
pub fn read(key: &str, prefix: &str, bytes: &[u8]) -> Result<Vec<StoredDeadLetter>, String> {
    let key_parts = KeyParts::read(key, prefix)?;
    let text = std::str::from_utf8(bytes).map_err(|error| format!("{key}: not text: {error}"))?;
    let elements = elements(text).map_err(|error| format!("{key}: not JSON: {error}"))?;
    // No blob of ours has more, and each takes many times the memory of its text.
    if elements.len() > EVENTS_PER_BLOB_MAX as usize {
        return Err(format!(
            "{key}: it has {} dead letters, and at most {EVENTS_PER_BLOB_MAX} can be in a blob",
            elements.len()
        ));
    }
    let is_shared = elements.len() > 1;
    let letter = |(place, element)| {
        let id = if is_shared { key_parts.id_at(place) } else { key_parts.guid };
        let letter = of_element(element, &key_parts).map_err(|why| format!("{key}: {why}"))?;
        Ok(StoredDeadLetter { id, ..letter })
    };
    elements.into_iter().enumerate().map(letter).collect()
}

fn of_element(text: &str, key_parts: &KeyParts<'_>) -> Result<StoredDeadLetter, String> {
    let members = Members::parse(text).map_err(|error| error.to_string())?;
    let own = members.text(LASTMILE).unwrap_or_default();
    Element::of(&members, &own)?.letter(key_parts)
}

/// The event of one dead letter of a blob.
pub(super) fn event_of(text: &str) -> Result<String, String> {
    let members = Members::parse(text).map_err(|error| error.to_string())?;
    let own = members.text(LASTMILE).unwrap_or_default();
    Ok(Element::of(&members, &own)?.event())
}

/// The dead letters of a blob: an array of them, or one.
fn elements(text: &str) -> Result<Vec<&str>, serde_json::Error> {
    if text.trim_start().starts_with('[') {
        let elements: Vec<&RawValue> = serde_json::from_str(text)?;
        return Ok(elements.into_iter().map(RawValue::get).collect());
    }
    serde_json::from_str::<&RawValue>(text).map(|one| vec![one.get()])
}

#[cfg(test)]
mod tests;
