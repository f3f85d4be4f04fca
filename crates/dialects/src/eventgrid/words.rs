//! Reads the values of Event Grid's enumerations.
//!
//! Separate because the rules are less strict than in our own format. Case is ignored, as in the
//! service itself. Spaces around a value, as in the documentation's sample, cause a warning.

use delivery::document::findings::quoted;
use delivery::document::reader::Cursor;

/// Returns the enumeration value for the word at the cursor.
pub(super) fn read<T: Copy>(cursor: &Cursor<'_>, words: &[(&'static str, T)]) -> Option<T> {
    let text = cursor.text()?;
    let trimmed = text.trim();
    if trimmed != text {
        cursor.warn(format!("spaces around {} are ignored", quoted(trimmed)));
    }
    let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(trimmed));
    found.map(|(_, value)| *value).or_else(|| cursor.unknown_word(trimmed, words))
}
