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
/// The field of a Subscription with the address for replies.
const REPLY: &str = "spec.reply";
/// The fields that are sinks: of a Subscription, and of a Topic.
const SINKS: [&str; 2] = ["spec.deadLetter.sink", "spec.delivery.deadLetter.sink"];
/// An address in place of one that cannot be used, which has been reported: the other fields are read nevertheless.
const UNUSABLE: &str = "https://unusable.invalid/";

/// The document with addresses in place of its references, and with what the entry of its destination supplies.
pub(super) fn resolved(
    document: &Cursor<'_>,
    destinations: &Destinations<'_>,
) -> (Node, Option<()>) {
    let mut copy = document.to_node();
    for path in [URL, REPLY].into_iter().chain(SINKS) {
        let Some(at) = document.peek(path) else { continue };
        let Some(text) = at.peek_text() else { continue };
        if SINKS.contains(&path) {
            destinations.warn_unused_access(text, &at, SINK_ACCESS);
        }
        if !destinations.maps(text) {
            continue;
        }
        let address = match destinations.resolve(text, &at) {
            Resolved::Target(target) => target.to_string(),
            Resolved::Reported | Resolved::Unknown => UNUSABLE.to_owned(),
        };
        copy.set(path, at.translation(&json!(address)));
    }
    let completed = document.peek(URL).map_or(Some(()), |at| {
        let Some(key) = at.peek_text() else { return Some(()) };
        destinations.complete(&mut copy, &Asked::default(), (key, &at))
    });
    (copy, completed)
}
