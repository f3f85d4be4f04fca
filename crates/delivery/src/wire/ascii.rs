//! Writes ASCII-only JSON, which all attributes use.
//!
//! Separate because attributes of every kind and version need it.

use serde::Serialize;

/// Writes JSON with `\u` escapes for all characters outside ASCII. Such characters occur only
/// inside strings.
pub(super) fn ascii_json(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value)
        .expect("wire structs have string keys and no failing serializers");
    if json.is_ascii() {
        return json;
    }
    let mut ascii = String::with_capacity(json.len() * 2);
    for character in json.chars() {
        if character.is_ascii() {
            ascii.push(character);
        } else {
            // JSON escapes UTF-16 units, so a character above U+FFFF becomes a pair.
            for unit in character.encode_utf16(&mut [0; 2]) {
                ascii.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    ascii
}
