//! References in native documents: each is replaced by the address that a `Destinations` document or the deployment maps
//! it to.
//!
//! Separate because declared fields have addresses only. What is no reference stays as it is written.

use serde_json::json;

use super::access::{Asked, SINK_ACCESS};
use super::destinations::Destinations;
use delivery::document::node::Node;
use delivery::document::reader::Cursor;
use delivery::subscription::kinds::address::Resolved;

/// The field of a Subscription that is an endpoint.
const URL: &str = "spec.destination.url";
/// The field with its key.
const URL_REFERENCE: &str = "spec.destination.reference";
/// The fields that are addresses, each with the field of its key: those of a Subscription, and of a Topic.
const ADDRESSES: [(&str, &str); 4] = [
    (URL, URL_REFERENCE),
    ("spec.reply", "spec.replyReference"),
    ("spec.deadLetter.sink", "spec.deadLetter.reference"),
    ("spec.delivery.deadLetter.sink", "spec.delivery.deadLetter.reference"),
];
/// An address in place of one that cannot be used, which has been reported: the other fields are read nevertheless.
const UNUSABLE: &str = "https://unusable.invalid/";

/// The document with addresses in place of its references, each with its key beside it, and with what the entry of its
/// destination supplies.
pub(super) fn resolved(
    document: &Cursor<'_>,
    destinations: &Destinations<'_>,
) -> (Node, Option<()>) {
    let mut copy = document.to_node();
    for (path, reference) in ADDRESSES {
        let Some(at) = document.peek(path) else { continue };
        let Some(text) = at.peek_text() else { continue };
        if path.ends_with(".sink") {
            destinations.warn_unused_access(text, &at, SINK_ACCESS);
        }
        let keys = [text, document.text_at(reference)];
        let Some(key) = keys.into_iter().find(|key| destinations.maps(key)) else { continue };
        let address = match destinations.resolve(key, &at) {
            Resolved::Target(target) => target.to_string(),
            Resolved::Reported | Resolved::Unknown => UNUSABLE.to_owned(),
        };
        copy.set(path, at.translation(&json!(address)));
        if key != address {
            copy.set(reference, at.translation(&json!(key)));
        }
    }
    let completed = document.peek(URL).map_or(Some(()), |at| {
        let written = document.text_at(URL_REFERENCE);
        let is_mapped = destinations.maps(written);
        let Some(key) = at.peek_text() else { return Some(()) };
        let key = if is_mapped && !destinations.maps(key) { written } else { key };
        destinations.complete(&mut copy, &Asked::default(), (key, &at))
    });
    (copy, completed)
}
