//! Reads and writes the message attributes that travel with an event, as versioned ASCII JSON.
//!
//! Three attributes are ours, and they count on internal queues only:
//! - `publication`: a published record that waits to be decoded
//! - `delivery`: a delivery in progress
//! - `deadletter`: an ended delivery, or the [end of a replay](write_replay_end)
//!
//! The structs here are the wire format and nothing else. Version 1 must stay readable for ever;
//! its examples are in `fixtures/wire/v1`. An attribute that only newer code can read is an error.
//! Its message then [waits](crate::waits::unread_ms) for a newer reader instead of being lost.

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

/// Attribute of a published record that waits to be divided into deliveries.
pub const PUBLICATION_ATTRIBUTE: &str = "publication";
/// Attribute of a delivery in progress.
pub const DELIVERY_ATTRIBUTE: &str = "delivery";
/// Attribute of a dead letter on its way to storage.
pub const DEADLETTER_ATTRIBUTE: &str = "deadletter";
/// Attribute with the topic, which publishers set.
pub const TOPIC_ATTRIBUTE: &str = "topic";
/// Attribute with the number of earlier receives of an isolated record.
pub const RECEIVES_ATTRIBUTE: &str = "receives";

/// Attribute with the number of re-enqueues because the reader was older than the writer. Separate
/// from the unreadable attribute, because the older code of another function ignores it.
pub const UNREAD_ATTRIBUTE: &str = "unread";

/// Maximum size of one of our attributes.
pub const ATTRIBUTE_MAX_BYTES: usize = 16 * 1_024;

/// Writes the `publication` attribute.
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

/// Reads the `publication` attribute.
///
/// # Errors
/// [`WireError`] if it is invalid or of an unknown version.
pub fn read_publication(attribute: &str) -> Result<Publication, WireError> {
    check_version(attribute)?;
    serde_json::from_str(attribute).map_err(unreadable)
}

/// Reads only the hold of a `publication` or `delivery` attribute. Returns no hold if there is none
/// or the attribute is invalid.
#[must_use]
pub fn read_hold(attribute: &str) -> Hold {
    #[derive(Default, Deserialize)]
    struct Held {
        #[serde(default)]
        hold: Hold,
    }
    serde_json::from_str::<Held>(attribute).unwrap_or_default().hold
}

/// Writes the `delivery` attribute.
#[must_use]
pub fn write_delivery(delivery: &Delivery) -> String {
    ascii_json(&delivery_v1(delivery))
}

/// Reads the `delivery` attribute. The event is the body of the message.
///
/// # Errors
/// [`WireError`] if it is invalid or of an unknown version.
pub fn read_delivery(attribute: &str, event: Event) -> Result<Delivery, WireError> {
    check_version(attribute)?;
    delivery_of(serde_json::from_str(attribute).map_err(unreadable)?, event)
}

/// Writes the `deadletter` attribute.
#[must_use]
pub fn write_dead_letter(letter: &DeadLetter) -> String {
    ascii_json(&dead_letter_v1(letter))
}

/// Reads the `deadletter` attribute. The event is the body of the message.
///
/// # Errors
/// [`WireError`] if it is invalid or of an unknown version.
pub fn read_dead_letter(attribute: &str, body: &Arc<str>) -> Result<DeadLetter, WireError> {
    check_version(attribute)?;
    let wire: DeadLetterV1 = serde_json::from_str(attribute).map_err(unreadable)?;
    // The input of the topic is unknown here, so the dead letter carries whether its text is
    // opaque.
    let event = Event::recall(body, if wire.opaque { Input::Opaque } else { Input::Auto });
    dead_letter_of(wire, event)
}
