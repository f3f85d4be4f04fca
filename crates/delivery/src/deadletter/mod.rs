//! The stored form of dead letters: keys and bytes of their blobs, written and read back.
//!
//! This module is separate from the dead letter itself, because each format has a file here.
//! [`blob`] writes a key and bytes, and [`stored`] reads every format.

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

/// Subscription name in the key of a record that is not an event.
pub const MALFORMED: &str = "_malformed";
/// Subscription name in the key of an event whose topic is not defined.
pub const UNKNOWN_TOPIC: &str = "_unknown";
/// Subscription name in the key of a message that arrived by native SQS redrive and names no
/// subscription.
pub const UNPROCESSED: &str = "_unprocessed";

/// Names of the members that each flat format adds to the event.
pub(crate) const RESERVED: [(Format, &[&str]); 3] = [
    (Format::EventGrid, &eventgrid::RESERVED),
    (Format::CloudEvents, &cloudevents::RESERVED),
    (Format::Knative, &knative::RESERVED),
];
