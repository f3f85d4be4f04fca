//! Reads the headers that a subscription adds to its requests.
//!
//! This module is separate because the same rules apply in every dialect. No header from a document
//! can split, misroute or mislabel a request. No message quotes a header's value, because it may be
//! a secret.

use serde_json::{Value as Json, json};

use crate::document::findings::quoted;
use crate::document::kind::{DEFINITION, Flag, Kind, Parsed};
use crate::document::reader::{Cursor, Fields};
use crate::document::record::Shown;
use crate::event::path::{PATH_RULE, Path};
use crate::subscription::credentials::is_credential;
use crate::subscription::header::{HEADERS_MAX, Header, Value, check_value, is_name};
use crate::subscription::kinds::secrets::SECRET;
use crate::subscription::kinds::templates::{or_report, without_expressions};
use crate::subscription::templates::Templated;
use crate::template::has_tags;
use crate::template::limits::TEMPLATE_MAX_BYTES;

/// Headers that a subscription must not set, because they belong to the connection, the request,
/// its body or its signature.
const REFUSED_NAMES: [&str; 20] = [
    "connection",
    "content-length",
    "content-range",
    "content-type",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "prefer",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "webhook-id",
    "webhook-request-origin",
    "webhook-signature",
    "webhook-timestamp",
];
/// Prefixes of Event Grid's own headers, and of CloudEvents attributes in binary mode. A
/// subscription must not set headers with these prefixes.
const REFUSED_PREFIXES: [&str; 2] = ["aeg-", "ce-"];
/// Headers that change how a server interprets, routes or traces a request, or which sender it
/// assumes. A document may state their values. An event may not supply them, because the publisher
/// of the event would choose them.
const REFUSED_FROM_EVENT: [&str; 14] = [
    "content-encoding",
    "content-location",
    "date",
    "forwarded",
    "range",
    "traceparent",
    "tracestate",
    "via",
    "x-amzn-trace-id",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-url",
    "x-real-ip",
];
/// Prefixes of further headers whose value an event may not supply.
const REFUSED_PREFIXES_FROM_EVENT: [&str; 2] = ["x-forwarded-", "x-rewrite-"];

/// Reads a list of headers; `read` reads one header. The list may contain at most ten headers, and
/// no duplicates.
pub fn list<'a>(
    cursor: &Cursor<'a>,
    read: impl Fn(&Fields<'a>) -> Option<Header>,
) -> Option<Vec<Header>> {
    let elements = cursor.list()?;
    if elements.len() > HEADERS_MAX {
        cursor
            .error(format!("at most {HEADERS_MAX} headers are allowed, found {}", elements.len()));
    }
    let mut headers: Vec<Header> = Vec::new();
    for element in elements {
        let Some(header) = element.mapping(&read).flatten() else { continue };
        if headers.iter().any(|other| other.name.eq_ignore_ascii_case(&header.name)) {
            element.error(format!("the header {} is listed twice", quoted(&header.name)));
            continue;
        }
        if matches!(header.value, Value::Path(_) | Value::Template(_))
            && !may_come_from_event(&header.name)
        {
            element.error(format!(
                "the header {} cannot contain a value from the event: set a fixed value, or choose \
                 another name",
                quoted(&header.name)
            ));
            continue;
        }
        headers.push(header);
    }
    Some(headers)
}

/// Returns true if an event may supply the value of the header. `_` counts as `-`, because some
/// servers treat them as equal.
fn may_come_from_event(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    !REFUSED_FROM_EVENT.contains(&name.as_str())
        && !REFUSED_NAMES.contains(&name.as_str())
        && !REFUSED_PREFIXES_FROM_EVENT.iter().any(|prefix| name.starts_with(prefix))
}

/// Reads the name of a header that a subscription may set. The name is a token of RFC 9110, 5.6.2.
pub fn name(cursor: &Cursor<'_>) -> Option<String> {
    let name = cursor.text()?;
    let lower = name.to_ascii_lowercase();
    if !is_name(name) {
        return cursor.refuse(format!("{} is not a valid header name", quoted(name)));
    }
    let is_ours = REFUSED_PREFIXES.iter().any(|prefix| lower.starts_with(prefix));
    if is_ours || REFUSED_NAMES.contains(&lower.as_str()) {
        return cursor
            .refuse(format!("the header {} cannot be set by a subscription", quoted(name)));
    }
    Some(name.to_owned())
}

/// Reads the value of a header, which must be valid in a request.
pub fn value(cursor: &Cursor<'_>) -> Option<String> {
    let value = cursor.scalar()?;
    if let Err(problem) = check_value(&value) {
        return cursor.refuse(problem);
    }
    Some(value)
}

/// The field type of paths to a value in an event.
pub const PATH: Parsed<Path> = Parsed::new("a path", PATH_RULE, "path");
/// JSON Schema pattern of valid header names.
const NAME_PATTERN: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";
/// JSON Schema pattern of header names that belong to Event Grid or CloudEvents.
const REFUSED_PATTERN: &str = "^([aA][eE][gG]|[cC][eE])-";
/// JSON Schema pattern of valid header values that are not empty.
pub const STATED_PATTERN: &str = "^[^\\s\\u0000-\\u001f\\u007f-\\u009f]([^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f])?$";
/// JSON Schema pattern of valid header values, including the empty value.
const VALUE_PATTERN: &str = "^([^\\s\\u0000-\\u001f\\u007f-\\u009f]([^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f])?)?$";

/// The field type of names of headers.
pub struct Name;

impl Kind for Name {
    type Value = String;

    fn read(&self, at: &Cursor<'_>) -> Option<String> {
        name(at)
    }

    fn write(&self, value: &String) -> Json {
        json!(value)
    }

    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": NAME_PATTERN, "not": { "pattern": REFUSED_PATTERN } })
    }
}

/// The field type of the field `headers`. Each header states exactly one source of its value.
pub struct Headers;

impl Kind for Headers {
    type Value = Vec<Header>;

    fn read(&self, at: &Cursor<'_>) -> Option<Vec<Header>> {
        list(at, header)
    }

    fn write(&self, value: &Vec<Header>) -> Json {
        value.iter().map(written).collect()
    }

    fn schema(&self) -> Json {
        let one_of = ["value", "path", "secret"].map(|name| json!({ "required": [name] }));
        let value = json!({
            "description": "Value of the header, without control characters, and without spaces at its beginning or end. The value may contain expressions.",
            "type": ["string", "integer", "boolean"],
            "maxLength": TEMPLATE_MAX_BYTES,
            "pattern": VALUE_PATTERN,
        });
        let described = |mut schema: Json, about: &str| {
            schema["description"] = json!(about);
            schema
        };
        json!({ "type": "array", "maxItems": HEADERS_MAX, "items": {
            DEFINITION: "Header",
            "description": "A header of every request. Its value has exactly one source.",
            "type": "object",
            "additionalProperties": false,
            "required": ["name"],
            "properties": [
                ["name", described(Name.schema(), "Name of the header. Headers of the connection, the body or its signature are not allowed, nor are aeg-… and ce-….")],
                ["value", value],
                ["hidden", described(Flag.schema(), "If `true`, the value is never displayed.")],
                ["path", described(PATH.schema(), "Path of the value in the event: a string, number or boolean. If the event has no such value, the header is omitted.")],
                ["secret", described(SECRET.schema(), "Name of the secret with the value.")],
            ],
            "oneOf": one_of,
        } })
    }

    /// Returns the names of headers and the sources of their values, but no values, because a value
    /// may be a secret.
    fn shown(&self, value: &Vec<Header>) -> Json {
        let shown = |header: &Header| {
            let mut shown = written(header);
            if let Some(fields) = shown.as_object_mut() {
                fields.retain(|field, _| !matches!(field.as_str(), "value" | "hidden"));
            }
            shown
        };
        value.iter().map(shown).collect()
    }

    fn show(&self, path: String, value: &Vec<Header>, shown: &mut Vec<Shown>) {
        let describe = |Header { name, value }: &Header| match value {
            Value::Static(_) => name.clone(),
            Value::Concealed(_) => format!("{name} (hidden)"),
            Value::Path(path) => format!("{name} from {path}"),
            Value::Secret(secret) => format!("{name} from {secret}"),
            Value::Template(template) => format!("{name} {}", template.written),
        };
        let all: Vec<String> = value.iter().map(describe).collect();
        let text = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        shown.push(Shown { path, value: self.shown(value), text });
    }
}

fn written(Header { name, value }: &Header) -> Json {
    match value {
        Value::Static(value) => json!({ "name": name, "value": value }),
        Value::Concealed(value) => json!({ "name": name, "value": value, "hidden": true }),
        Value::Path(path) => json!({ "name": name, "path": path.to_string() }),
        Value::Secret(secret) => json!({ "name": name, "secret": secret.to_string() }),
        Value::Template(template) => json!({ "name": name, "value": template.written }),
    }
}

fn header(fields: &Fields<'_>) -> Option<Header> {
    let name = fields.required("name").and_then(|cursor| name(&cursor));
    let value = header_value(fields, name.as_deref().unwrap_or_default());
    Some(Header { name: name?, value: value? })
}

/// Reads the source of a header's value. A header must state exactly one source.
fn header_value(fields: &Fields<'_>, name: &str) -> Option<Value> {
    let hidden = fields.get("hidden");
    match ["value", "path", "secret"].map(|name| fields.get(name)) {
        [Some(at), None, None] => {
            let is_hidden = hidden.map_or(Some(false), |at| at.boolean())?;
            // A hidden value is not a template, because errors of templates quote the text.
            if let Some(text) = at.peek_text().filter(|text| !is_hidden && has_tags(text)) {
                let place = format!("destination.headers.{name}");
                let mut compiled = Templated::text(text, &place);
                if is_credential(name) {
                    compiled = compiled.map_err(without_expressions);
                }
                return or_report(&at, &place, compiled).map(Value::Template);
            }
            let value = value(&at);
            value.map(if is_hidden { Value::Concealed } else { Value::Static })
        }
        [None, _, _] if hidden.is_some() => {
            hidden?.refuse("hidden applies only to value: a path and a secret are never shown")
        }
        [None, Some(path), None] => PATH.read(&path).map(Value::Path),
        [None, None, Some(name)] => SECRET.read(&name).map(Value::Secret),
        [None, None, None] => fields.parent().refuse("value, path or secret is missing"),
        [_, _, _] => fields.parent().refuse("set only one of value, path and secret"),
    }
}
