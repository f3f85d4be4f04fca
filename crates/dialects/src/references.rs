//! Replaces references in native documents by the addresses to which a `Destinations` document or
//! the deployment maps them.
//!
//! Separate because the native reader accepts only addresses. A text that is not a reference stays
//! unchanged.

use serde_json::json;

use super::access::{Asked, REPLY_ACCESS, SINK_ACCESS};
use super::destinations::Destinations;
use delivery::document::node::Node;
use delivery::document::reader::Cursor;
use delivery::subscription::kinds::address::Resolved;

/// Path of the endpoint of a Subscription.
const URL: &str = "spec.destination.url";
/// Pairs of paths: a field that contains an address, and the field that contains the key of this
/// address. The fields are those of a Subscription or a Topic.
const ADDRESSES: [(&str, &str); 5] = [
    (URL, "spec.destination.reference"),
    ("spec.reply", "spec.replyReference"),
    ("spec.deadLetter.sink", "spec.deadLetter.reference"),
    ("defaults.deadLetter.sink", "defaults.deadLetter.reference"),
    ("spec.delivery.deadLetter.sink", "spec.delivery.deadLetter.reference"),
];
/// Placeholder for an unusable address, which is already reported. With the placeholder, the other
/// fields are read anyway.
const UNUSABLE: &str = "https://unusable.invalid/";

/// Returns the document with addresses in place of its references. Adds the key beside each
/// address, and the values that the entry of the destination supplies. The second value is `None`
/// if an address is unusable, which is already reported.
pub(super) fn resolved(
    document: &Cursor<'_>,
    destinations: &Destinations<'_>,
) -> (Node, Option<()>) {
    let mut copy = document.node().clone();
    let mut is_usable = Some(());
    for (path, reference) in ADDRESSES {
        let Some(at) = document.peek(path) else { continue };
        let Some(text) = at.peek_text() else { continue };
        // The key beside an address is the one from which the address was resolved.
        let stated = document.text_at(reference);
        let key = if destinations.maps(stated) { stated } else { text };
        match path {
            URL => {}
            "spec.reply" => destinations.warn_unused_access(key, &at, REPLY_ACCESS),
            _ => destinations.warn_unused_access(key, &at, SINK_ACCESS),
        }
        if destinations.maps(key) {
            let address = match destinations.resolve(key, &at) {
                Resolved::Target(target) => target.to_string(),
                Resolved::Reported | Resolved::Unknown => {
                    is_usable = None;
                    UNUSABLE.to_owned()
                }
            };
            copy.set(path, at.translation(&json!(address)));
            if let Some(key) = destinations.reference(key, &address) {
                copy.set(reference, at.translation(&json!(key)));
            }
        }
        if path == URL && is_usable.is_some() {
            is_usable = destinations.complete(&mut copy, &Asked::default(), (key, &at));
        }
    }
    (copy, is_usable)
}
