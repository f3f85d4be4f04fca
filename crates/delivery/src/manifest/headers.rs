//! Headers that a subscription adds to its requests, whatever the family.
//!
//! Separate because the rules for headers are the same in every family: no file may split, misroute
//! or mislabel a request. No header's value is in a message: it may be a secret.

use super::findings::quoted;
use super::reader::{Cursor, Fields};
use crate::subscription::header::{HEADERS_MAX, Header, check_value, is_name};

/// Headers of the connection, the request, its body or its signature, which a subscription must not
/// set.
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
/// Prefixes of Event Grid's own headers, and of CloudEvent attributes in binary mode.
const REFUSED_PREFIXES: [&str; 2] = ["aeg-", "ce-"];

/// The headers of a list, each read by the family; at most ten, without duplicates.
pub(super) fn list<'a>(
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
        headers.push(header);
    }
    Some(headers)
}

/// The name of a header (RFC 9110, 5.6.2: a token) that a subscription may set.
pub(super) fn name(cursor: &Cursor<'_>) -> Option<String> {
    let name = cursor.text()?;
    let lower = name.to_ascii_lowercase();
    if !is_name(name) {
        return cursor.refuse(format!("{} is not the name of a header", quoted(name)));
    }
    let is_ours = REFUSED_PREFIXES.iter().any(|prefix| lower.starts_with(prefix));
    if is_ours || REFUSED_NAMES.contains(&lower.as_str()) {
        return cursor
            .refuse(format!("the header {} cannot be set by a subscription", quoted(name)));
    }
    Some(name.to_owned())
}

/// A header's value.
pub(super) fn value(cursor: &Cursor<'_>) -> Option<String> {
    let value = cursor.scalar()?;
    if let Err(problem) = check_value(&value) {
        return cursor.refuse(problem);
    }
    Some(value)
}
