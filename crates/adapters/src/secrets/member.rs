//! A member of a secret that is a JSON object: `secretsmanager:ID#MEMBER`.
//!
//! Separate because it parses what people wrote. Promises the member's own characters, numbers as
//! written; no error quotes anything of the secret. Does not follow paths: a member of a member
//! cannot be named.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use thiserror::Error;

/// Why a secret has no such member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum MemberError {
    #[error("it is not a JSON object, so it has no members")]
    NoObject,
    #[error("the JSON object has no such member")]
    Missing,
    #[error("that member is not a string, a number, true or false")]
    NoText,
}

/// The member's value as text.
pub(super) fn member(object: &str, name: &str) -> Result<String, MemberError> {
    let members: BTreeMap<String, &RawValue> =
        serde_json::from_str(object).map_err(|_| MemberError::NoObject)?;
    let value = members.get(name).ok_or(MemberError::Missing)?.get();
    match value.as_bytes() {
        [b'"', ..] => serde_json::from_str(value).map_err(|_| MemberError::NoText),
        [b'-' | b'0'..=b'9', ..] | b"true" | b"false" => Ok(value.to_owned()),
        _ => Err(MemberError::NoText),
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
            ("none", Err(MemberError::NoText)),
            ("list", Err(MemberError::NoText)),
            ("object", Err(MemberError::NoText)),
            ("Text", Err(MemberError::Missing)),
        ] {
            assert_eq!(member(object, name).as_deref().map_err(|error| *error), expected, "{name}");
        }
    }

    #[test]
    fn what_is_not_an_object_has_no_members() {
        for text in ["", "hush", "\"hush\"", "[1]", "null", "{\"a\": 1} hush"] {
            assert_eq!(member(text, "a"), Err(MemberError::NoObject), "{text}");
        }
    }
}
