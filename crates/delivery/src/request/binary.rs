//! Composes CloudEvents in binary mode: the data is the body, and the attributes are `ce-*` headers
//! (CloudEvents 1.0, HTTP protocol binding, 3.1).
//!
//! In attribute values, these characters are percent-encoded (3.1.3.2): control characters,
//! non-ASCII characters, the space, the double quote and the percent sign. Data is sent as
//! published. JSON keeps its spelling, a JSON string is decoded if the content type is not JSON,
//! and base64 is decoded.
//!
//! If the data itself is in an event format, the event is refused. A receiver would read the inner
//! event, which no filter has checked (section 3: the content type decides).

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::content::Content;
use crate::delivery::outcome::Unsendable;
use crate::event::Members;
use crate::event::binary::{ContentMode, is_json};
use crate::event::path::scalar;
use crate::subscription::header::{is_name, sendable};

/// ASCII characters that are percent-encoded in attribute values. Non-ASCII characters are encoded
/// too.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');
/// Members of a structured CloudEvent that do not become `ce-*` headers.
const OURS: [&str; 3] = ["data", "data_base64", "datacontenttype"];
/// Content type of JSON data in an event without `datacontenttype`.
const DEFAULT_CONTENT_TYPE: &str = "application/json";

/// Converts a structured CloudEvent to binary mode.
///
/// # Errors
/// [`Unsendable`] if an attribute cannot be a header, or the data does not match its content type.
pub(super) fn content(event: &str) -> Result<Content, Unsendable> {
    let members =
        Members::parse(event).map_err(|error| Unsendable::Impossible(error.to_string()))?;
    let declared = members.get("datacontenttype").filter(|declared| *declared != "null");
    let declared = declared
        .map(|_| members.text("datacontenttype").ok_or_else(|| no_text("datacontenttype")))
        .transpose()?;
    let declared = declared.as_deref().filter(|declared| !declared.is_empty());
    // Binary data of an unknown type gets no content type, and neither does an event without data.
    let has = |name| members.get(name).is_some_and(|value| value != "null");
    let has_json = has("data") && !has("data_base64");
    let content_type = declared.or(has_json.then_some(DEFAULT_CONTENT_TYPE));
    let (mut headers, mut names) = (Vec::new(), BTreeSet::new());
    if let Some(content_type) = content_type {
        let content_type = sendable(content_type).value;
        if ContentMode::from_content_type(Some(&content_type)) != ContentMode::Data {
            let problem = format!(
                "in binary mode, receivers would interpret data of type {content_type} as another \
                 event; use schema: cloudevents-structured"
            );
            return Err(Unsendable::Impossible(problem));
        }
        headers.push(("content-type".to_owned(), content_type));
    }
    for (name, value) in members.iter() {
        if OURS.contains(&name) || value == "null" {
            continue;
        }
        let value = scalar(value).ok_or_else(|| no_text(name))?;
        let header = attribute(name)?;
        if !names.insert(header.clone()) {
            return Err(Unsendable::Impossible(format!(
                "two attributes map to the header {header}"
            )));
        }
        headers.push((header, utf8_percent_encode(&value, ENCODED).to_string()));
    }
    Ok(Content { headers, body: data(&members, content_type.is_some_and(is_json))? })
}

/// Returns the header name for an attribute. A name that differs from one in `OURS` only in upper
/// and lower case is refused, because header names ignore case.
fn attribute(name: &str) -> Result<String, Unsendable> {
    let lower = name.to_ascii_lowercase();
    if !is_name(name) || OURS.contains(&lower.as_str()) {
        return Err(Unsendable::Impossible(format!(
            "the attribute {name:?} cannot be sent as a header"
        )));
    }
    Ok(format!("ce-{lower}"))
}

fn data(members: &Members<'_>, is_json: bool) -> Result<Bytes, Unsendable> {
    if let Some(base64) = members.text("data_base64") {
        let bytes = STANDARD.decode(base64.as_bytes());
        return bytes
            .map(Bytes::from)
            .map_err(|_| Unsendable::Impossible("data_base64 is not base64".to_owned()));
    }
    let data = members.get("data").filter(|data| *data != "null").unwrap_or_default();
    if is_json || !data.starts_with('"') {
        return Ok(data.to_owned().into());
    }
    members.text("data").map(|text| text.into_owned().into()).ok_or_else(|| no_text("data"))
}

/// Returns the error for an attribute whose value is not a string, or contains an unpaired
/// surrogate.
fn no_text(name: &str) -> Unsendable {
    Unsendable::Impossible(format!("{name} is not a string that can be sent in binary mode"))
}
