//! Converts a CloudEvent in binary mode into one JSON document.
//!
//! In binary mode the attributes are separate from the data: they are `ce-*` headers of a request,
//! or attributes of a message. Queues and blobs hold one text, so the result is a structured
//! CloudEvent. JSON data keeps its spelling, and other data becomes base64. The rules are those of
//! CloudEvents 1.0, HTTP protocol binding §3.1 and JSON event format §3.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;

use crate::event::json::{quoted, without_mark};

/// Common prefix of the content types of all CloudEvents formats.
const FORMATS: &str = "application/cloudevents";
/// Content type of one CloudEvent in JSON, the only supported format.
const STRUCTURED: &str = "application/cloudevents+json";
/// Content type of a JSON array of CloudEvents.
const BATCH: &str = "application/cloudevents-batch+json";

/// The mode that the content type of a message declares. A body in an event format is the event,
/// even if the message has `ce-*` headers (HTTP protocol binding, 3). Otherwise a structured event
/// with such headers would be wrapped as the data of another event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentMode {
    /// The body is one event.
    Structured,
    /// The body is a JSON array of events.
    Batched,
    /// The body contains events in a format that is not supported.
    OtherFormat,
    /// The body is data. The headers determine whether the data belongs to a CloudEvent in binary
    /// mode.
    Data,
}

impl ContentMode {
    /// Determines the mode from a content type, which may be missing.
    #[must_use]
    pub fn from_content_type(content_type: Option<&str>) -> Self {
        let essence = content_type.and_then(|text| text.split(';').next()).unwrap_or_default();
        let essence = essence.trim().to_ascii_lowercase();
        match essence.as_str() {
            STRUCTURED => Self::Structured,
            BATCH => Self::Batched,
            other if other.starts_with(FORMATS) => Self::OtherFormat,
            _ => Self::Data,
        }
    }
}

/// Name of the CloudEvents attribute that corresponds to the content type of a message.
const CONTENT_TYPE: &str = "datacontenttype";
/// Attributes that come first in a structured event, in this order.
const FIRST: [&str; 5] = ["specversion", "type", "source", "id", "time"];

/// Returns the value of a header as text. Bytes that are not UTF-8 are percent-encoded, so that
/// none is lost.
#[must_use]
pub fn header_text(value: &[u8]) -> String {
    let mut text = String::with_capacity(value.len());
    for chunk in value.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            write!(text, "%{byte:02X}").expect("writing to a String cannot fail");
        }
    }
    text
}

/// Returns the structured form of a binary-mode event from an HTTP message. `attributes` contains
/// the `ce-*` headers: names without `ce-`, and values as received, which may be quoted and
/// percent-encoded. `content_type` is the content type of the data.
///
/// # Errors
/// Fails if the value of a header is not percent-encoded UTF-8. The error names the first such
/// header.
pub fn structured(
    attributes: &[(String, String)],
    content_type: Option<&str>,
    data: &[u8],
) -> Result<String, String> {
    let decoded = |(name, value): &(String, String)| match attribute_value(value) {
        Some(value) => Ok((name.clone(), value)),
        None => Err(format!("the header ce-{name} is not percent-encoded UTF-8")),
    };
    let attributes = attributes.iter().map(decoded).collect::<Result<Vec<_>, String>>()?;
    Ok(structured_plain(&attributes, content_type, data))
}

/// Decodes the value of a `ce-*` header (HTTP protocol binding, 3.1.3.2).
pub(crate) fn attribute_value(header: &str) -> Option<String> {
    let text = unquoted(header).unwrap_or_else(|| header.to_owned());
    let is_encoded = text.split('%').skip(1).all(|rest| {
        rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    let decoded = is_encoded.then(|| percent_decode_str(&text).decode_utf8().ok()).flatten()?;
    Some(decoded.into_owned())
}

/// Returns the content of a quoted string (RFC 9110, 5.6.4); `None` if the text is not a quoted
/// string.
fn unquoted(header: &str) -> Option<String> {
    let inner = header.strip_prefix('"')?.strip_suffix('"')?;
    let (mut content, mut characters) = (String::with_capacity(inner.len()), inner.chars());
    while let Some(c) = characters.next() {
        content.push(match c {
            '\\' => characters.next()?,
            '"' => return None,
            c => c,
        });
    }
    Some(content)
}

/// Returns the structured form of a binary-mode event whose values are not encoded, as in message
/// attributes. The attribute `datacontenttype` is used only if `content_type` is `None`.
#[must_use]
pub fn structured_plain(
    attributes: &[(String, String)],
    content_type: Option<&str>,
    data: &[u8],
) -> String {
    let rank = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    let declared = |attribute: &&(String, String)| attribute.0 == CONTENT_TYPE;
    let content_type = content_type.or_else(|| Some(&*attributes.iter().find(declared)?.1));
    let mut ordered: Vec<&(String, String)> =
        attributes.iter().filter(|attribute| !declared(attribute)).collect();
    // The sort is stable, so the other attributes keep their order.
    ordered.sort_by_key(|(name, _)| rank(name));
    let mut members: Vec<String> =
        ordered.into_iter().map(|(name, value)| member(name, value)).collect();
    if let Some(content_type) = content_type {
        members.push(format!("\"{CONTENT_TYPE}\":{}", quoted(content_type)));
    }
    members.extend(data_member(content_type, data));
    format!("{{{}}}", members.join(","))
}

fn member(name: &str, value: &str) -> String {
    // Only canonical numbers become JSON numbers, so that `007` stays a string.
    let number = value.parse::<i32>().is_ok_and(|number| number.to_string() == value);
    let value = if number && !TEXTS.contains(&name) { value.to_owned() } else { quoted(value) };
    format!("{}:{value}", quoted(name))
}

/// Attributes that are always strings: those of the specification, and those of its documented
/// extensions with the type String, URI or URI-reference.
/// <https://github.com/cloudevents/spec/tree/v1.0.2/cloudevents/extensions>
const TEXTS: [&str; 23] = [
    "specversion",
    "type",
    "source",
    "id",
    "time",
    "subject",
    "dataschema",
    "authclaims",
    "authid",
    "authtype",
    "causationid",
    "correlationid",
    "dataclassification",
    "dataregulation",
    "datacategory",
    "dataref",
    "deprecationmigration",
    "partitionkey",
    "sequence",
    "sequencetype",
    "severitytext",
    "traceparent",
    "tracestate",
];

fn data_member(content_type: Option<&str>, data: &[u8]) -> Option<String> {
    if data.is_empty() {
        return None;
    }
    let text = std::str::from_utf8(data).ok().filter(|_| content_type.is_none_or(is_json));
    let text = text.map(without_mark);
    match text.and_then(|text| serde_json::from_str::<&RawValue>(text).ok()) {
        Some(json) => Some(format!("\"data\":{}", json.get())),
        None => Some(format!("\"data_base64\":\"{}\"", STANDARD.encode(data))),
    }
}

/// Returns true if a content type is `*/json` or `*/*+json`. Case and parameters are ignored.
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
        structured(&attributes, content_type, data).expect("every value is encoded")
    }

    /// The test cases of the HTTP protocol binding are in
    /// `tests/tests/rules/conformance/binding.rs`.
    #[test]
    fn the_content_type_alone_says_the_mode() {
        for (content_type, mode) in [
            (" Application/CloudEvents+JSON ; charset=utf-8", ContentMode::Structured),
            ("application/cloudevents-batch+json;charset=utf-8", ContentMode::Batched),
            ("application/cloudevents", ContentMode::OtherFormat),
            ("text/plain; x=application/cloudevents+json", ContentMode::Data),
            ("", ContentMode::Data),
        ] {
            assert_eq!(ContentMode::from_content_type(Some(content_type)), mode, "{content_type}");
        }
        assert_eq!(ContentMode::from_content_type(None), ContentMode::Data);
    }

    #[test]
    fn a_header_is_unquoted_and_decoded_once_or_refused() {
        for (header, value) in [
            ("%e2%82%ac%25", Some("€%")),
            ("Grüße 😀", Some("Grüße 😀")),
            (r#""""#, Some("")),
            ("", Some("")),
            // A text that is not a quoted string stays unchanged.
            (r#"""#, Some(r#"""#)),
            (r#""a"b""#, Some(r#""a"b""#)),
            ("a+b", Some("a+b")),
            ("%4", None),
            ("%+1", None),
            ("%é", None),
        ] {
            assert_eq!(attribute_value(header).as_deref(), value, "{header}");
        }
        let refused = structured(&[("subject".to_owned(), "%FF".to_owned())], None, b"");
        assert_eq!(refused, Err("the header ce-subject is not percent-encoded UTF-8".to_owned()));
    }

    #[test]
    fn no_byte_of_a_header_is_lost() {
        for (bytes, text) in [
            (&b"plain"[..], "plain"),
            ("Grüße".as_bytes(), "Grüße"),
            (b"Gr\xfc\xc3\xbcn", "Gr%FCün"),
            (b"\xff", "%FF"),
        ] {
            assert_eq!(header_text(bytes), text);
        }
    }

    #[test]
    fn a_content_type_beside_that_of_the_message_does_not_count() {
        let attributes = [("datacontenttype", "text/html"), ("id", "1")];
        let event = made(&attributes, Some("text/plain"), b"hi");
        assert_eq!(event, r#"{"id":"1","datacontenttype":"text/plain","data_base64":"aGk="}"#);
        let event = made(&attributes, None, b"hi");
        assert_eq!(event, r#"{"id":"1","datacontenttype":"text/html","data_base64":"aGk="}"#);
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
    fn what_cloud_events_defines_as_text_stays_text_whatever_it_looks_like() {
        for (name, value, member) in [
            ("partitionkey", "42", r#""partitionkey":"42""#),
            ("sequence", "7", r#""sequence":"7""#),
            ("correlationid", "1", r#""correlationid":"1""#),
            ("subject", "5", r#""subject":"5""#),
            ("sampledrate", "5", r#""sampledrate":5"#),
            ("mine", "-5", r#""mine":-5"#),
            ("mine", "007", r#""mine":"007""#),
        ] {
            let event = made(&[("id", "1"), (name, value)], None, b"");
            assert_eq!(event, format!(r#"{{"id":"1",{member}}}"#));
        }
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
        let marked = made(&[], Some("application/json"), "\u{feff}1".as_bytes());
        assert!(marked.ends_with(r#""data":1}"#), "{marked}");
    }
}
