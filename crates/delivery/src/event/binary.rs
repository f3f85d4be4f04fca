//! A CloudEvent in binary form, as one JSON document.
//!
//! In binary mode the attributes travel beside the data (as `ce-*` headers, or as attributes of a
//! message), but queues and blobs hold one text. The result is a structured CloudEvent whose data
//! keeps its own spelling where it is JSON, and is base64 otherwise. CloudEvents 1.0, HTTP protocol
//! binding §3.1 and JSON event format §3.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;

use crate::event::json::quoted;

/// The attributes that are written first, in this order.
const FIRST: [&str; 5] = ["specversion", "type", "source", "id", "time"];

/// The structured form of a binary-mode event of HTTP. Attribute names have no `ce-`, values are
/// percent-encoded as in headers; `content_type` is that of the data.
#[must_use]
pub fn structured(
    attributes: &[(String, String)],
    content_type: Option<&str>,
    data: &[u8],
) -> String {
    let decoded = |value: &String| percent_decode_str(value).decode_utf8_lossy().into_owned();
    let attributes: Vec<(String, String)> =
        attributes.iter().map(|(name, value)| (name.clone(), decoded(value))).collect();
    structured_plain(&attributes, content_type, data)
}

/// The same with values that are not percent-encoded, as in the attributes of a message.
#[must_use]
pub fn structured_plain(
    attributes: &[(String, String)],
    content_type: Option<&str>,
    data: &[u8],
) -> String {
    let rank = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    let mut ordered: Vec<&(String, String)> = attributes.iter().collect();
    // Stable: the other attributes stay in the order in which they came.
    ordered.sort_by_key(|(name, _)| rank(name));
    let mut members: Vec<String> =
        ordered.into_iter().map(|(name, value)| member(name, value)).collect();
    if let Some(content_type) = content_type {
        members.push(format!("\"datacontenttype\":{}", quoted(content_type)));
    }
    members.extend(data_member(content_type, data));
    format!("{{{}}}", members.join(","))
}

fn member(name: &str, value: &str) -> String {
    // Only in the canonical spelling: 007 has to stay what it was.
    let number = value.parse::<i32>().is_ok_and(|number| number.to_string() == value);
    let value = if is_extension(name) && number { value.to_owned() } else { quoted(value) };
    format!("{}:{value}", quoted(name))
}

/// The attributes of the specification are strings, whatever they look like.
fn is_extension(name: &str) -> bool {
    !FIRST.contains(&name) && !matches!(name, "subject" | "dataschema" | "datacontenttype")
}

fn data_member(content_type: Option<&str>, data: &[u8]) -> Option<String> {
    if data.is_empty() {
        return None;
    }
    let text = std::str::from_utf8(data).ok().filter(|_| content_type.is_none_or(is_json));
    match text.and_then(|text| serde_json::from_str::<&RawValue>(text).ok()) {
        Some(json) => Some(format!("\"data\":{}", json.get())),
        None => Some(format!("\"data_base64\":\"{}\"", STANDARD.encode(data))),
    }
}

/// Whether a content type is `*/json` or `*/*+json`, parameters ignored, in any case.
#[must_use]
pub fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    essence
        .split_once('/')
        .is_some_and(|(_, subtype)| subtype == "json" || subtype.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(attributes: &[(&str, &str)], content_type: Option<&str>, data: &[u8]) -> String {
        let attributes: Vec<(String, String)> = attributes
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        structured(&attributes, content_type, data)
    }

    #[test]
    fn attributes_come_in_order_and_json_data_keeps_its_spelling() {
        let attributes = [
            ("id", "7"),
            ("subject", "Euro%20%E2%82%AC"),
            ("specversion", "1.0"),
            ("count", "5"),
            ("code", "007"),
            ("type", "t"),
            ("source", "s"),
        ];
        assert_eq!(
            made(&attributes, Some("application/json"), br#"{"n": 1.50}"#),
            r#"{"specversion":"1.0","type":"t","source":"s","id":"7","subject":"Euro €","count":5,"code":"007","datacontenttype":"application/json","data":{"n": 1.50}}"#
        );
    }

    #[test]
    fn data_that_is_no_json_is_base64_and_no_data_is_no_member() {
        assert!(made(&[], Some("text/plain"), b"hi").ends_with(r#""data_base64":"aGk="}"#));
        assert!(made(&[], Some("application/json"), b"{").ends_with(r#""data_base64":"ew=="}"#));
        assert!(
            made(&[], Some("application/vnd.x+JSON; charset=utf-8"), b"1")
                .ends_with(r#""data":1}"#)
        );
        assert_eq!(made(&[("id", "1")], None, b""), r#"{"id":"1"}"#);
    }
}
