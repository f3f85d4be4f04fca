//! Headers that a subscription adds to its requests, whatever the family.
//!
//! Separate because headers have rules of their own: they are checked here once, so that no request
//! can be split, misrouted or mislabelled by a file. No header's value is in a message: it may be a
//! secret.

use super::findings::quoted;
use super::reader::{Cursor, Fields};
use crate::subscription::header::{HEADERS_MAX, Header, check_value, is_name};

/// What belongs to the connection, to the request itself, its body or its signature: never a
/// subscription's to say.
const REFUSED_NAMES: [&str; 18] = [
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
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
/// How the names begin of Event Grid's own headers, and of the attributes of a CloudEvent in binary
/// form.
const REFUSED_PREFIXES: [&str; 2] = ["aeg-", "ce-"];

/// The headers of a list, each read by the family; at most ten, and none twice.
pub(super) fn list<'a>(
    cursor: &Cursor<'a>,
    read: impl Fn(&Fields<'a>) -> Option<Header>,
) -> Option<Vec<Header>> {
    let elements = cursor.list()?;
    if elements.len() > HEADERS_MAX {
        cursor
            .error(format!("at most {HEADERS_MAX} headers are sent, here are {}", elements.len()));
    }
    let mut headers: Vec<Header> = Vec::new();
    for element in elements {
        let Some(header) = element.mapping(&read).flatten() else { continue };
        if headers.iter().any(|other| other.name.eq_ignore_ascii_case(&header.name)) {
            element.error(format!("the header {} stands twice", quoted(&header.name)));
            continue;
        }
        headers.push(header);
    }
    Some(headers)
}

/// The name of a header (RFC 9110, 5.6.2: a token) that a subscription may set.
pub(super) fn name(cursor: &Cursor<'_>) -> Option<String> {
    let name = cursor.text()?;
    let lower = name.to_ascii_lowercase();
    if !is_name(name) {
        cursor.error(format!("{} is not the name of a header", quoted(name)));
        return None;
    }
    let is_ours = REFUSED_PREFIXES.iter().any(|prefix| lower.starts_with(prefix));
    if is_ours || REFUSED_NAMES.contains(&lower.as_str()) {
        cursor.error(format!("the header {} is not a subscription's to set", quoted(name)));
        return None;
    }
    Some(name.to_owned())
}

/// A header's value.
pub(super) fn value(cursor: &Cursor<'_>) -> Option<String> {
    let value = cursor.scalar()?;
    if let Err(problem) = check_value(&value) {
        cursor.error(problem);
        return None;
    }
    Some(value)
}
