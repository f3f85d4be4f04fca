//! Reads and writes the message attributes that travel with an event, as versioned ASCII JSON.
//!
//! Three of the attributes are written only by our own programs, and are trusted only on internal
//! queues:
//! - `publication`: a published record whose deliveries have not been created yet
//! - `delivery`: a delivery in progress
//! - `deadletter`: an ended delivery, or the [result of a replay](write_replay_end)
//!
//! The structs here define the wire format and are not used for anything else. Version 1 must stay
//! readable for ever; its examples are in `fixtures/wire/v1`. An attribute that only newer code can
//! parse is an error. Its message then [waits](crate::waits::unread_ms) for a newer program instead
//! of being lost.

mod ascii;
mod convert;
mod history;
mod replay_end;
mod v1;
mod version;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::ascii::ascii_json;
use self::convert::{dead_letter_of, dead_letter_v1, delivery_of, delivery_v1};
pub use self::replay_end::{is_replay_end, read_replay_end, write_replay_end};
use self::v1::DeadLetterV1;
use self::version::{VERSION, check_version, unreadable};
pub use self::version::{WireError, subscription_in};
use crate::delivery::{DeadLetter, Delivery, Hold, Publication};
use crate::event::{Event, Input};

/// Name of the attribute with the state of a published record whose deliveries have not been
/// created yet.
pub const PUBLICATION_ATTRIBUTE: &str = "publication";
/// Name of the attribute with the state of a delivery in progress.
pub const DELIVERY_ATTRIBUTE: &str = "delivery";
/// Name of the attribute with a dead letter that is to be stored.
pub const DEADLETTER_ATTRIBUTE: &str = "deadletter";
/// Name of the attribute in which publishers name the topic.
pub const TOPIC_ATTRIBUTE: &str = "topic";
/// Name of the attribute with the number of earlier receives of an isolated record.
pub const RECEIVES_ATTRIBUTE: &str = "receives";

/// Name of the attribute that counts how often a message was re-enqueued because the receiving
/// program was older than the sending one. The counter has an attribute of its own, which older
/// code of another function ignores.
pub const UNREAD_ATTRIBUTE: &str = "unread";

/// Maximum size in bytes of an attribute that our programs write.
pub const ATTRIBUTE_MAX_BYTES: usize = 16 * 1_024;

/// Serializes the `publication` attribute.
#[must_use]
pub fn write_publication(publication: &Publication) -> String {
    #[derive(Serialize)]
    struct PublicationV1<'a> {
        v: u32,
        #[serde(flatten)]
        publication: &'a Publication,
    }
    ascii_json(&PublicationV1 { v: VERSION, publication })
}

/// Parses the `publication` attribute.
///
/// # Errors
/// [`WireError`] if the attribute is invalid or has an unknown version.
pub fn read_publication(attribute: &str) -> Result<Publication, WireError> {
    check_version(attribute)?;
    serde_json::from_str(attribute).map_err(unreadable)
}

/// Parses only the hold of a `publication` or `delivery` attribute. Returns an empty hold if the
/// attribute has none or is invalid.
#[must_use]
pub fn read_hold(attribute: &str) -> Hold {
    #[derive(Default, Deserialize)]
    struct Held {
        #[serde(default)]
        hold: Hold,
    }
    serde_json::from_str::<Held>(attribute).unwrap_or_default().hold
}

/// Serializes the `delivery` attribute.
#[must_use]
pub fn write_delivery(delivery: &Delivery) -> String {
    ascii_json(&delivery_v1(delivery))
}

/// Parses the `delivery` attribute. The event is the body of the message.
///
/// # Errors
/// [`WireError`] if the attribute is invalid or has an unknown version.
pub fn read_delivery(attribute: &str, event: Event) -> Result<Delivery, WireError> {
    check_version(attribute)?;
    delivery_of(serde_json::from_str(attribute).map_err(unreadable)?, event)
}

/// Serializes the `deadletter` attribute.
#[must_use]
pub fn write_dead_letter(letter: &DeadLetter) -> String {
    ascii_json(&dead_letter_v1(letter))
}

/// Parses the `deadletter` attribute. The event is the body of the message.
///
/// # Errors
/// [`WireError`] if the attribute is invalid or has an unknown version.
pub fn read_dead_letter(attribute: &str, body: &Arc<str>) -> Result<DeadLetter, WireError> {
    check_version(attribute)?;
    let wire: DeadLetterV1 = serde_json::from_str(attribute).map_err(unreadable)?;
    // The input of the topic is unknown here, so the attribute states whether the event is opaque
    // text.
    let event = Event::recall(body, if wire.opaque { Input::Opaque } else { Input::Auto });
    dead_letter_of(wire, event)
}
