//! Reads dead letters back from the keys and bytes of their blobs.
//!
//! Separate from [`crate::deadletter`], which writes, because the reader accepts more than is
//! written: every format and both layouts, the spellings of other versions (`deadLetterProperties`,
//! `brokerProperties`), blobs without our own fields, every format as an object and as an array of one.
//!
//! Promises: `read(key(letter), bytes(letter))` returns the dead letter's id, reason, attempts and
//! event, which is the published text to the byte. A dead letter is identified by its key: whatever a
//! blob says, it cannot take the place of another one. Of a blob that an older version or somebody else wrote, it
//! has the published members in their own spelling. A blob with more or fewer than one dead letter is an error.
//!
//! Does not validate the event: a malformed one is read like any other, and what a blob does not
//! contain is `None`.

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

/// The dead letter of a blob. `prefix` is the container's.
///
/// # Errors
/// What is wrong with the key or the bytes, when they are not those of a dead letter's blob.
pub fn read(key: &str, prefix: &str, bytes: &[u8]) -> Result<StoredDeadLetter, String> {
    let key_parts = KeyParts::read(key, prefix)?;
    let text = std::str::from_utf8(bytes).map_err(|error| format!("not text: {error}"));
    let letter = text.and_then(only_element).and_then(|element| of_element(element, &key_parts));
    letter.map_err(|why| format!("{key}: {why}"))
}

fn of_element(text: &str, key_parts: &KeyParts<'_>) -> Result<StoredDeadLetter, String> {
    let members = Members::parse(text).map_err(|error| error.to_string())?;
    let own = members.text(LASTMILE).unwrap_or_default();
    Element::of(&members, &own)?.letter(key_parts)
}

/// The event of the dead letter that this JSON is.
pub(super) fn event_of(text: &str) -> Result<String, String> {
    let members = Members::parse(text).map_err(|error| error.to_string())?;
    let own = members.text(LASTMILE).unwrap_or_default();
    Ok(Element::of(&members, &own)?.event())
}

/// The dead letter of a blob: an object, or the only element of an array.
///
/// A second one would have no id, so nothing could name it, replay it or purge it.
fn only_element(text: &str) -> Result<&str, String> {
    let not_json = |error: serde_json::Error| format!("not JSON: {error}");
    if !text.trim_start().starts_with('[') {
        return serde_json::from_str(text).map(RawValue::get).map_err(not_json);
    }
    // `IgnoredAny` has no size: counting takes no memory, however long the array is.
    let count = serde_json::from_str::<Vec<IgnoredAny>>(text).map_err(not_json)?.len();
    match serde_json::from_str::<[&RawValue; 1]>(text) {
        Ok([element]) => Ok(element.get()),
        Err(_) => Err(format!(
            "it is an array of {count} elements, but a blob has exactly one dead letter: the name of the blob is its id"
        )),
    }
}

#[cfg(test)]
mod tests;
