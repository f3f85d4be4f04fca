//! Builds the CloudEvent into which a message of an AWS service is converted.
//!
//! This module is separate because SNS, EventBridge and S3 need it. Values keep the publisher's
//! spelling.

use crate::event::Members;

/// A text that could not be converted into a CloudEvent, and the reason for the failure.
#[derive(Debug)]
pub(super) struct Unconverted {
    pub(super) text: String,
    pub(super) why: String,
}

impl Unconverted {
    pub(super) fn new(text: &str, why: impl Into<String>) -> Self {
        Self { text: text.to_owned(), why: why.into() }
    }
}

/// Returns the raw JSON of a member if it is a non-empty string; otherwise `None`.
pub(super) fn non_empty<'a>(members: &Members<'a>, name: &str) -> Option<&'a str> {
    members.get(name).filter(|value| inner(value).is_some_and(|text| !text.is_empty()))
}

/// Returns the raw JSON of a member. Fails if the member is missing or not a non-empty string.
pub(super) fn required<'a>(members: &Members<'a>, name: &str) -> Result<&'a str, String> {
    non_empty(members, name).ok_or_else(|| format!("{name} must be a non-empty string"))
}

/// Returns the part between the quotes of a JSON string, without decoding escapes.
fn inner(value: &str) -> Option<&str> {
    value.strip_prefix('"')?.strip_suffix('"')
}

/// Joins JSON strings into one JSON string, with `between` as the separator. Skips missing parts.
pub(super) fn joined(parts: &[Option<&str>], between: &str) -> String {
    let parts: Vec<&str> = parts.iter().flatten().filter_map(|value| inner(value)).collect();
    format!("\"{}\"", parts.join(between))
}

/// Builds a CloudEvent from attributes whose values are already JSON. Attributes without a value
/// are omitted.
pub(super) fn cloud_event(attributes: &[(&str, Option<&str>)], data: &str) -> String {
    let mut event = String::from(r#"{"specversion":"1.0""#);
    let data = [("datacontenttype", Some(r#""application/json""#)), ("data", Some(data))];
    for (name, value) in
        attributes.iter().copied().chain(data).filter_map(|(name, value)| Some((name, value?)))
    {
        event.push_str(&format!(",\"{name}\":{value}"));
    }
    event.push('}');
    event
}
