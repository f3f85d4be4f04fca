//! The message attributes that travel with an event: versioned ASCII JSON.
//!
//! Three attributes are ours: `publication` (a published record that waits to be read), `delivery`
//! (a delivery in progress) and `deadletter` (one that ended). They count on internal queues only.
//! The structs here are only the wire format. Version 1 must stay readable for ever; its examples
//! are in `fixtures/wire/v1`. What only a newer program can read is an error, so that a newer writer's
//! message [waits](crate::waits::unread_ms) for a newer reader instead of being lost.
//!
//! The `deadletter` attribute has a second kind, the [end of a replayed delivery](write_replay_end).

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

/// The attribute of a published record that waits to be divided into deliveries.
pub const PUBLICATION_ATTRIBUTE: &str = "publication";
/// The attribute of a delivery in progress.
pub const DELIVERY_ATTRIBUTE: &str = "delivery";
/// The attribute of a dead letter on its way to storage.
pub const DEADLETTER_ATTRIBUTE: &str = "deadletter";
/// The attribute that names the topic; set by the publisher and passed on.
pub const TOPIC_ATTRIBUTE: &str = "topic";
/// The attribute of a record in isolation that says how often it was received before.
pub const RECEIVES_ATTRIBUTE: &str = "receives";

/// The attribute that says how often a message was re-enqueued because its reader was older than its writer. Beside
/// the attribute that could not be read, because the older code of the other function ignores it.
pub const UNREAD_ATTRIBUTE: &str = "unread";

/// The longest of our attributes.
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
/// [`WireError`] when it is not ours or of an unknown version.
pub fn read_publication(attribute: &str) -> Result<Publication, WireError> {
    check_version(attribute)?;
    serde_json::from_str(attribute).map_err(unreadable)
}

/// The hold in a `publication` or `delivery` attribute, without reading the rest: none where the
/// attribute has none or is not ours.
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

/// Reads the `delivery` attribute; the event is the message's body.
///
/// # Errors
/// [`WireError`] when it is not ours or of an unknown version.
pub fn read_delivery(attribute: &str, event: Event) -> Result<Delivery, WireError> {
    check_version(attribute)?;
    delivery_of(serde_json::from_str(attribute).map_err(unreadable)?, event)
}

/// Writes the `deadletter` attribute.
#[must_use]
pub fn write_dead_letter(letter: &DeadLetter) -> String {
    ascii_json(&dead_letter_v1(letter))
}

/// Reads the `deadletter` attribute; the event is the message's body.
///
/// # Errors
/// [`WireError`] when it is not ours or of an unknown version.
pub fn read_dead_letter(attribute: &str, body: &Arc<str>) -> Result<DeadLetter, WireError> {
    check_version(attribute)?;
    let wire: DeadLetterV1 = serde_json::from_str(attribute).map_err(unreadable)?;
    // The topic's input is not known here: whether its text is opaque travels with the dead letter.
    let event = Event::recall(body, if wire.opaque { Input::Opaque } else { Input::Auto });
    dead_letter_of(wire, event)
}
