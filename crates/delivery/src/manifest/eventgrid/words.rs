//! The values of Event Grid's enumerations.
//!
//! Separate because they are read less strictly than our own format: case is ignored, as in the
//! service itself, and spaces around a value (as in the documentation's sample) are a warning.

use super::super::findings::{Message, quoted};
use super::super::hint::hint;
use super::super::reader::Cursor;

/// One of these values, in the spelling of the list.
pub(super) fn read(cursor: &Cursor<'_>, words: &[&'static str]) -> Option<&'static str> {
    let text = cursor.text()?;
    let trimmed = text.trim();
    if trimmed != text {
        cursor.warn(format!("spaces around {} are ignored", quoted(trimmed)));
    }
    let word = words.iter().find(|word| word.eq_ignore_ascii_case(trimmed)).copied();
    word.or_else(|| {
        let message = Message::new(format!("{} is not known here", quoted(trimmed)));
        cursor.refuse(message.help(hint(trimmed, words, words)))
    })
}
