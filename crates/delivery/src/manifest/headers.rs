//! Headers that a subscription adds to its requests, whatever the family.
//!
//! Separate because headers have rules of their own: they are checked here once, so that no request can be split,
//! misrouted or mislabelled by a file. No header's value is in a message: it may be a secret.

use super::findings::quoted;
use super::reader::{Cursor, Fields};

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

/// The headers of a list, each read by the family; at most ten, and none twice.
pub(super) fn list<'a>(
    cursor: &Cursor<'a>,
    read: impl Fn(&Fields<'a>) -> Option<(String, String)>,
) -> Option<Vec<(String, String)>> {
    let elements = cursor.list()?;
    if elements.len() > HEADERS_MAX {
        cursor.error(format!("at most {HEADERS_MAX} headers are sent, here are {}", elements.len()));
    }
    let mut headers: Vec<(String, String)> = Vec::new();
    for element in elements {
        let Some((name, value)) = element.mapping(&read).flatten() else { continue };
        if headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(&name)) {
            element.error(format!("the header {} stands twice", quoted(&name)));
            continue;
        }
        headers.push((name, value));
    }
    Some(headers)
}

/// The name of a header (RFC 9110, 5.6.2: a token) that a subscription may set.
pub(super) fn name(cursor: &Cursor<'_>) -> Option<String> {
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

/// A header's value.
pub(super) fn value(cursor: &Cursor<'_>) -> Option<String> {
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
