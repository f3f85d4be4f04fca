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

/// A handshake.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Handshake {
    EventGrid,
    CloudEvents,
}

const HANDSHAKES: [(&str, Handshake); 2] =
    [("eventgrid", Handshake::EventGrid), ("cloudevents", Handshake::CloudEvents)];

/// Reads the fields of `consent`.
pub(super) fn read(fields: &Fields<'_>) -> Option<Consent> {
    let handshake = fields.required("handshake").and_then(|cursor| cursor.choice(&HANDSHAKES));
    match handshake {
        Some(Handshake::CloudEvents) => {
            let rate = fields.get("rate").map(|cursor| cursor.integer(RATES));
            let origin = fields.required("origin").and_then(|cursor| origin(&cursor));
            Some(Consent::CloudEvents { origin: origin?, rate: rate.flatten() })
        }
        Some(Handshake::EventGrid) => {
            for key in ["origin", "rate"].into_iter().filter_map(|name| fields.key(name)) {
                key.error(
                    Message::new("not used by the eventgrid handshake")
                        .help("handshake: cloudevents"),
                );
            }
            Some(Consent::EventGrid)
        }
        None => {
            // Whether they are allowed depends on the handshake, which has its own finding.
            fields.accept(&["origin", "rate"]);
            None
        }
    }
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
