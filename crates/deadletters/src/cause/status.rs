//! Names of HTTP statuses, and texts that only repeat such a name.
//!
//! Separate because a response that states only its status must have an empty message.

use http::StatusCode;

/// Additional names of statuses. Some are from older standards; others are texts that servers send.
const OTHER_NAMES: [(u16, &str); 11] = [
    (302, "Moved Temporarily"),
    (404, "page not found"), // Go
    (408, "Request Time-out"),
    (413, "Payload Too Large"),
    (413, "Request Entity Too Large"),
    (422, "Unprocessable Entity"),
    (500, "Server Error"),
    (500, "Internal Error"),
    (503, "Service Temporarily Unavailable"),
    (503, "Service Unavailable: Back-end server is at capacity"),
    (504, "Gateway Time-out"),
];
/// Texts that frameworks send if they have nothing to report.
const EMPTY_TEXTS: [&str; 5] = ["error", "no message available", "none", "null", "about:blank"];

/// Returns the name of a status according to RFC 9110.
pub(super) fn name(status: u16) -> Option<&'static str> {
    match status {
        413 => Some("Content Too Large"),
        422 => Some("Unprocessable Content"),
        status => StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()),
    }
}

/// True if the text only repeats the status: its name in any spelling, or its number.
pub(super) fn is_generic(text: &str, status: Option<u16>) -> bool {
    let letters = letters(text);
    let is_empty = letters.is_empty() && !text.contains(|c: char| !c.is_ascii());
    let others =
        OTHER_NAMES.iter().filter(|(code, _)| Some(*code) == status).map(|(_, name)| *name);
    let names = status.and_then(name).into_iter().chain(others).chain(EMPTY_TEXTS);
    is_empty
        || status.is_some_and(|status| letters == status.to_string())
        || names.into_iter().any(|name| self::letters(name) == letters)
}

/// Normalizes a text for comparison: `NOT_FOUND` and `Not found.` are equal.
fn letters(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}
