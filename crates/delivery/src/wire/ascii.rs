//! JSON in ASCII only, as every attribute is written.
//!
//! Separate because attributes of every kind and version need it.

use serde::Serialize;

/// JSON in which everything outside ASCII is `\u`-escaped. Outside its strings JSON is ASCII
/// already.
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
            // JSON escapes UTF-16 units: a character beyond U+FFFF becomes a pair.
            for unit in character.encode_utf16(&mut [0; 2]) {
                ascii.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    ascii
}
