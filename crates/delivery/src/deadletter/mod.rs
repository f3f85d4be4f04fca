//! What lies in storage: the bytes of a dead letter, written and read back.
//!
//! Separate from the dead letter itself because there is a file per format here. [`blob`] writes a
//! key and bytes; [`stored`] reads every format back.

mod about;
pub mod blob;
mod cloudevents;
mod custom;
mod eventgrid;
mod flat;
mod knative;
mod namespace;
pub mod stored;

use crate::subscription::name::{NAMELESS, TopicName};

pub(crate) use self::about::{OURS, SINK};
pub(crate) use self::flat::{IN_DATA, ORIGINAL, PUBLISHED};
pub(crate) use self::namespace::{EVENT, EVENT_IS, HEADERS, JSON, PROPERTIES};

/// In the subscription's place for records that are no events.
pub const MALFORMED: &str = "_malformed";
/// In the subscription's place for events of a topic that no document names.
pub const UNKNOWN_TOPIC: &str = "_unknown";
/// In the subscription's place for messages that arrived by native redrive and name no
/// subscription.
pub const UNPROCESSED: &str = "_unprocessed";

/// The topic that stands for one nobody named.
#[must_use]
pub fn nameless_topic() -> TopicName {
    TopicName { namespace: NAMELESS.to_owned(), topic: NAMELESS.to_owned() }
}

/// What the formats add in which the event shares an object with the letter.
pub(crate) const RESERVED: [&[&str]; 3] =
    [&eventgrid::RESERVED, &cloudevents::RESERVED, &knative::RESERVED];
