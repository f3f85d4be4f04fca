//! `destination`: where requests go and what every one of them carries.
//!
//! Separate because headers have rules of their own: they are checked here once, so that no request can be split,
//! misrouted or mislabelled by a file. No header's value is in a message: it may be a secret.

use url::Url;

use crate::duration::MINUTE_MS;

use super::super::destinations::{Destinations, Resolved, Target};
use super::super::findings::{Message, quoted};
use super::super::reader::{Cursor, Fields};
use super::settings::Scope;

/// The longest response timeout: a function lives for at most 15 minutes, and other work has to fit beside it.
/// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html>
const TIMEOUT_MAX_MS: u64 = 10 * MINUTE_MS;
/// Custom delivery properties: at most ten.
/// <https://learn.microsoft.com/azure/event-grid/delivery-properties>
const HEADERS_MAX: usize = 10;
/// Custom delivery properties: the longest value.
const HEADER_VALUE_MAX_BYTES: usize = 4_096;

/// What belongs to the connection, to the request itself or to its body: never a subscription's to say.
const REFUSED_NAMES: [&str; 13] = [
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// How the names of Event Grid's own headers begin.
const REFUSED_PREFIX: &str = "aeg-";

/// What a document says about the destination.
#[derive(Clone, Default)]
pub(super) struct DestinationSettings {
    /// Where requests go.
    pub(super) url: Option<Url>,
    /// How long to wait for an answer.
    pub(super) timeout_ms: Option<u64>,
    /// Headers of every request.
    pub(super) headers: Option<Vec<(String, String)>>,
}

impl DestinationSettings {
    /// Reads the fields of `destination`.
    pub(super) fn read(fields: &Fields<'_>, scope: Scope, destinations: &Destinations<'_>) -> Self {
        if let Some(schema) = fields.get("schema") {
            schema.choice(
                "schema",
                &[
                    ("cloudevents-structured", Some(())),
                    ("cloudevents-binary", None),
                    ("eventgrid", None),
                    ("custom", None),
                ],
            );
        }
        for field in ["lateResponseWindow", "maxConcurrency", "signing"] {
            fields.unsupported(field);
        }
        Self {
            url: match scope {
                Scope::Topic => no_url(fields),
                Scope::Subscription => fields.required("url").and_then(|cursor| url(&cursor, destinations)),
            },
            timeout_ms: fields.get("timeout").and_then(|timeout| timeout.duration_ms(1..=TIMEOUT_MAX_MS)),
            headers: fields.get("headers").and_then(|cursor| headers(&cursor)),
        }
    }

    /// These, and the other's where these say nothing.
    pub(super) fn over(self, base: &Self) -> Self {
        Self {
            url: self.url.or_else(|| base.url.clone()),
            timeout_ms: self.timeout_ms.or(base.timeout_ms),
            headers: self.headers.or_else(|| base.headers.clone()),
        }
    }
}

fn no_url(fields: &Fields<'_>) -> Option<Url> {
    if let Some(key) = fields.key("url") {
        key.error(Message::new("a topic has no url").help("it stands in each Subscription"));
    }
    None
}

fn url(cursor: &Cursor<'_>, destinations: &Destinations<'_>) -> Option<Url> {
    match destinations.resolve(cursor.text()?, cursor) {
        Resolved::Target(Target::Endpoint(url)) => Some(url),
        Resolved::Reported => None,
        Resolved::Target(Target::Container(_)) => {
            cursor.error(Message::new("a container is no destination for events").help("http://… or https://…"));
            None
        }
        Resolved::Unknown => {
            let message = Message::new("neither an address nor a key of a Destinations document");
            cursor.error(message.help("http://… or https://…"));
            None
        }
    }
}

fn headers(cursor: &Cursor<'_>) -> Option<Vec<(String, String)>> {
    let elements = cursor.list()?;
    if elements.len() > HEADERS_MAX {
        cursor.error(format!("at most {HEADERS_MAX} headers are sent, here are {}", elements.len()));
    }
    let mut headers: Vec<(String, String)> = Vec::new();
    for element in elements {
        let Some((name, value)) = element.mapping(header).flatten() else { continue };
        if headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(&name)) {
            element.error(format!("the header {} stands twice", quoted(&name)));
            continue;
        }
        headers.push((name, value));
    }
    Some(headers)
}

fn header(fields: &Fields<'_>) -> Option<(String, String)> {
    let name = fields.required("name").and_then(|cursor| header_name(&cursor));
    let dynamic = [fields.key("path"), fields.key("secret")];
    for key in dynamic.iter().flatten() {
        key.error("a header with a path or a secret is not supported by this version");
    }
    let is_static = dynamic.iter().all(Option::is_none) || fields.get("value").is_some();
    let value = if is_static { fields.required("value").and_then(|cursor| header_value(&cursor)) } else { None };
    Some((name?, value?))
}

/// RFC 9110, 5.6.2: a token.
fn header_name(cursor: &Cursor<'_>) -> Option<String> {
    let name = cursor.text()?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let lower = name.to_ascii_lowercase();
    if name.is_empty() || !name.bytes().all(is_token) {
        cursor.error(format!("{} is not the name of a header", quoted(name)));
        return None;
    }
    if lower.starts_with(REFUSED_PREFIX) || REFUSED_NAMES.contains(&lower.as_str()) {
        cursor.error(format!("the header {} is not a subscription's to set", quoted(name)));
        return None;
    }
    Some(name.to_owned())
}

fn header_value(cursor: &Cursor<'_>) -> Option<String> {
    let value = cursor.scalar()?;
    if value.len() > HEADER_VALUE_MAX_BYTES {
        cursor.error(format!("a header's value is at most {HEADER_VALUE_MAX_BYTES} bytes, this has {}", value.len()));
        return None;
    }
    if !value.bytes().all(|byte| matches!(byte, b' '..=b'~')) || value.trim() != value {
        cursor.error("a header's value is visible ASCII without spaces around it");
        return None;
    }
    Some(value)
}
