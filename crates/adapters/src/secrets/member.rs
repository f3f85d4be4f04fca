//! Reads a member of a secret that is a JSON object: `secretsmanager:ID#MEMBER`.
//!
//! Separate because it parses text that people wrote.
//!
//! Promises: returns the exact characters of the member, with numbers as written. No error quotes
//! any part of the secret. Does not support paths: a member of a member cannot be named.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

const NO_OBJECT: &str = "the value is not a JSON object, so it has no members";
const MISSING: &str = "the JSON object has no such member";
const NO_TEXT: &str = "the member is not a string, a number, true or false";

/// Returns the value of a member as text, or the reason why there is none.
pub(super) fn member(object: &str, name: &str) -> Result<String, &'static str> {
    let members: BTreeMap<String, &RawValue> =
        serde_json::from_str(object).map_err(|_| NO_OBJECT)?;
    let value = members.get(name).ok_or(MISSING)?.get();
    match value.as_bytes() {
        [b'"', ..] => serde_json::from_str(value).map_err(|_| NO_TEXT),
        [b'-' | b'0'..=b'9', ..] | b"true" | b"false" => Ok(value.to_owned()),
        _ => Err(NO_TEXT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_its_own_characters() {
        let object = r#"{"text": "gr\u00fc\"n", "number": 12345678901234567890.10, "minus": -1, "yes": true,
                         "none": null, "list": ["hush"], "object": {"text": "hush"}, "empty": ""}"#;
        for (name, expected) in [
            ("text", Ok("grü\"n")),
            ("number", Ok("12345678901234567890.10")),
            ("minus", Ok("-1")),
            ("yes", Ok("true")),
            ("empty", Ok("")),
            ("none", Err(NO_TEXT)),
            ("list", Err(NO_TEXT)),
            ("object", Err(NO_TEXT)),
            ("Text", Err(MISSING)),
        ] {
            assert_eq!(member(object, name).as_deref().map_err(|why| *why), expected, "{name}");
        }
    }

    #[test]
    fn what_is_not_an_object_has_no_members() {
        for text in ["", "hush", "\"hush\"", "[1]", "null", "{\"a\": 1} hush"] {
            assert_eq!(member(text, "a"), Err(NO_OBJECT), "{text}");
        }
    }
}
