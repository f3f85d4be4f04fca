//! The stored object of a topic: the topic's settings and its subscriptions, each as it was
//! written.
//!
//! This module is separate because three kinds of programs share the format: the functions read a
//! topic when its first event arrives, commands change objects, and other programs write them.
//! Entries are native documents without names, so `native` reads them like files.
//!
//! ```text
//! {"v":1,"topic":{"owner":"team-a","spec":{…}},"subscriptions":{
//! "audit":{"defaults":{…},"owner":"team-a","profile":"native","spec":{…}},
//! "billing":{…}
//! }}
//! ```
//!
//! The object of a removed topic is `{"v":1,"removed":"2026-11-20T07:00:00Z"}`.
//!
//! An unreadable subscription does not affect the others. The size of the object limits the memory
//! for reading. The text is sorted with one line per subscription, so that line-based tools can
//! compare objects.

mod destinations;
mod limits;
mod read;
mod settings;
mod text;
mod write;

pub use destinations::DestinationsObject;
pub use limits::{
    CONDITIONS_MAX, ENTRY_MAX_BYTES, OBJECT_MAX_BYTES, SUBSCRIPTIONS_MAX, memory_bytes,
};
pub use read::{owner_of, read, read_within};
pub use settings::{
    DeploymentObject, NotificationsEntry, PublishersEntry, PublishersObject, SettingsObject,
    settings,
};
pub use text::{Content, ObjectError, TOMBSTONE_TAG, TopicObject, tombstone};
pub use write::{DeploymentObjects, plain_topic_entry};

#[cfg(test)]
mod tests;
