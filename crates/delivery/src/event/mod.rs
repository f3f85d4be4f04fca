//! A published event: its bytes, a view of them, and conversions into other schemas.
//!
//! [`Event`] holds the text, [`Members`] is a view of it. [`envelope`] reads a record of the queue
//! into events, [`binary`] a request in binary mode. `convert` puts an event into another schema,
//! a custom one by its topic's [`mapping`]; [`portable`] writes an event into JSON of our own. Knows nothing of subscriptions or deliveries.

pub mod binary;
pub(crate) mod convert;
mod deliver_at;
pub mod envelope;
#[expect(clippy::module_inception, reason = "the room is named after its main type")]
mod event;
pub(crate) mod json;
mod malformed;
pub mod mapping;
mod members;
pub mod path;
pub mod portable;
pub mod schema;
mod uri;

pub use deliver_at::DELIVER_AT;
pub(crate) use event::is_cloud_event;
pub use event::{Element, Event, Input, Shape, decode_one};
pub use json::{is_queue_character, without_mark};
pub use malformed::Malformed;
pub use members::Members;
pub(crate) use members::json_text;

#[cfg(test)]
mod tests;
