//! References in native documents: each is replaced by the address that a `Destinations` document or the deployment maps
//! it to.
//!
//! Separate because declared fields have addresses only. What is no reference stays as it is written.

use serde_json::json;

use super::access::{Asked, REPLY_ACCESS, SINK_ACCESS};
use super::destinations::Destinations;
use delivery::document::node::Node;
use delivery::document::reader::Cursor;
use delivery::subscription::kinds::address::Resolved;

/// The field of a Subscription that is an endpoint.
const URL: &str = "spec.destination.url";
/// The fields that are addresses, each with the field of its key: those of a Subscription, and of a Topic.
const ADDRESSES: [(&str, &str); 5] = [
    (URL, "spec.destination.reference"),
    ("spec.reply", "spec.replyReference"),
    ("spec.deadLetter.sink", "spec.deadLetter.reference"),
    ("defaults.deadLetter.sink", "defaults.deadLetter.reference"),
    ("spec.delivery.deadLetter.sink", "spec.delivery.deadLetter.reference"),
];
/// An address in place of one that cannot be used, which has been reported: the other fields are read nevertheless.
const UNUSABLE: &str = "https://unusable.invalid/";

/// The document with addresses in place of its references, each with its key beside it, and with what the entry of its
/// destination supplies. The second value is `None` if an address cannot be used, which is reported.
pub(super) fn resolved(
    document: &Cursor<'_>,
    destinations: &Destinations<'_>,
) -> (Node, Option<()>) {
    let mut copy = document.node().clone();
    let mut is_usable = Some(());
    for (path, reference) in ADDRESSES {
        let Some(at) = document.peek(path) else { continue };
        let Some(text) = at.peek_text() else { continue };
        // A key that is stated beside an address is what it was resolved from.
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
