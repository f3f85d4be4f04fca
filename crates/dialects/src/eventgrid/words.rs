//! The values of Event Grid's enumerations.
//!
//! Separate because they are read less strictly than our own format: case is ignored, as in the
//! service itself, and spaces around a value (as in the documentation's sample) are a warning.

use delivery::document::findings::quoted;
use delivery::document::reader::Cursor;

/// The value of one of these words.
pub(super) fn read<T: Copy>(cursor: &Cursor<'_>, words: &[(&'static str, T)]) -> Option<T> {
    let text = cursor.text()?;
    let trimmed = text.trim();
    if trimmed != text {
        cursor.warn(format!("spaces around {} are ignored", quoted(trimmed)));
    }
    let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(trimmed));
    found.map(|(_, value)| *value).or_else(|| cursor.unknown_word(trimmed, words))
}
