//! A published event: its bytes, a view of its members, and conversions into other schemas.
//!
//! [`Event`] holds the text, and [`Members`] is a view of the text. [`envelope`] decodes a record
//! of the queue into events, and [`binary`] decodes a request in binary mode. `convert` converts an
//! event into another schema, and applies the topic's [`mapping`] to a custom event. [`portable`]
//! makes an event safe to embed in other JSON. This module does not depend on subscriptions or
//! deliveries.

pub mod binary;
pub(crate) mod convert;
mod deliver_at;
pub mod envelope;
#[expect(clippy::module_inception, reason = "the module is named after its main type")]
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
