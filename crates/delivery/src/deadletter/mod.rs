//! The stored form of dead letters: keys and bytes of their blobs, written and read back.
//!
//! Separate from the dead letter itself because each format has a file here. [`blob`] writes a key
//! and bytes; [`stored`] reads every format back.

pub mod blob;
mod cloudevents;
mod custom;
mod eventgrid;
mod fields;
mod flat;
mod knative;
mod namespace;
mod shown;
pub mod stored;

pub(crate) use self::fields::{LASTMILE, LEG, SHAPE, SINK};
pub(crate) use self::flat::{AROUND, IN_DATA, ORIGINAL, ORIGINAL_BASE64, PUBLISHED};
pub(crate) use self::namespace::{EVENT, EVENT_IS, HEADERS, JSON, PROPERTIES};
use crate::subscription::dead_letter_format::Format;

/// Takes the subscription's place in a key for records that are no events.
pub const MALFORMED: &str = "_malformed";
/// Takes the subscription's place in a key for events of a topic that no document defines.
pub const UNKNOWN_TOPIC: &str = "_unknown";
/// Takes the subscription's place in a key for messages that arrived by native redrive and name no
/// subscription.
pub const UNPROCESSED: &str = "_unprocessed";

/// The members that each flat format adds to the event's own object.
pub(crate) const RESERVED: [(Format, &[&str]); 3] = [
    (Format::EventGrid, &eventgrid::RESERVED),
    (Format::CloudEvents, &cloudevents::RESERVED),
    (Format::Knative, &knative::RESERVED),
];
