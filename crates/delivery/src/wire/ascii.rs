//! Writes ASCII-only JSON, the format of all message attributes.
//!
//! This module is separate because attributes of every type and version need it.

use serde::Serialize;

/// Serializes a value as JSON with `\u` escapes for all characters outside ASCII. Such characters
/// occur only inside strings.
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
            // JSON escapes UTF-16 code units, so a character above U+FFFF becomes a pair of
            // escapes.
            for unit in character.encode_utf16(&mut [0; 2]) {
                ascii.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    ascii
}
