//! The words of Event Grid's enumerations, as other people's files spell them.
//!
//! Separate because those files are read more kindly than our own: case does not count, as in the
//! service itself, and spaces around a word (they stand in the documentation's own sample) are a
//! warning.

use super::super::findings::{Message, quoted};
use super::super::hint::hint;
use super::super::reader::Cursor;

/// One of these words, in the spelling of the list.
pub(super) fn read(cursor: &Cursor<'_>, words: &[&'static str]) -> Option<&'static str> {
    let text = cursor.text()?;
    let trimmed = text.trim();
    if trimmed != text {
        cursor.warn(format!("spaces around {} are left out", quoted(trimmed)));
    }
    let word = words.iter().find(|word| word.eq_ignore_ascii_case(trimmed)).copied();
    if word.is_none() {
        let message = Message::new(format!("{} is not known here", quoted(trimmed)));
        cursor.error(message.help(hint(trimmed, words, words)));
    }
    word
}
