//! `consent`: the handshake that validates a destination.
//!
//! Separate because the value of `handshake` decides which other fields are required or allowed.

use std::ops::RangeInclusive;

use crate::subscription::Consent;

use super::super::findings::Message;
use super::super::reader::{Cursor, Fields};

/// Requests a minute that may be requested; one destination is never sent more.
const RATES: RangeInclusive<u32> = 1..=1_000_000;
/// The longest name and the longest label of DNS (RFC 1035, 2.3.4).
const NAME_MAX_BYTES: usize = 253;
const LABEL_MAX_BYTES: usize = 63;
/// The rule for origins, for messages.
const ORIGIN_RULE: &str = "origin: the name of who sends, such as events.example.com";

/// Reads the other fields of one handshake.
type ReadHandshake = fn(&Fields<'_>) -> Option<Consent>;

const HANDSHAKES: [(&str, ReadHandshake); 2] =
    [("eventgrid", event_grid), ("cloudevents", cloud_events)];

/// Reads the fields of `consent`.
pub(super) fn read(fields: &Fields<'_>) -> Option<Consent> {
    // Whether they are allowed depends on the handshake; one that is not known has its own finding.
    fields.accept(&["origin", "rate"]);
    let read = fields.required("handshake")?.choice(&HANDSHAKES)?;
    read(fields)
}

fn cloud_events(fields: &Fields<'_>) -> Option<Consent> {
    let rate = fields.get("rate").map(|cursor| cursor.integer(RATES));
    let origin = fields.required("origin").and_then(|cursor| origin(&cursor));
    Some(Consent::CloudEvents { origin: origin?, rate: rate.flatten() })
}

fn event_grid(fields: &Fields<'_>) -> Option<Consent> {
    for key in ["origin", "rate"].into_iter().filter_map(|name| fields.key(name)) {
        let message = Message::new("not used by the eventgrid handshake");
        key.error(message.help("handshake: cloudevents"));
    }
    Some(Consent::EventGrid)
}

/// A name of DNS ("HTTP 1.1 Web Hooks for Event Delivery", 4.1.1).
fn origin(cursor: &Cursor<'_>) -> Option<String> {
    let text = cursor.text()?;
    if text.len() > NAME_MAX_BYTES || !text.split('.').all(is_label) {
        return cursor.refuse(Message::new("not a name of DNS").help(ORIGIN_RULE));
    }
    Some(text.to_owned())
}

fn is_label(label: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (1..=LABEL_MAX_BYTES).contains(&label.len())
        && label.chars().all(allowed)
        && !label.starts_with('-')
        && !label.ends_with('-')
}
