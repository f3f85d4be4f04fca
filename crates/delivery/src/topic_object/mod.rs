//! The object that a topic is stored in: its settings and its subscriptions, each as it was written.
//!
//! Separate because three readers share it: the functions read a topic when its first event arrives, commands change
//! objects, and other programs write them. What it holds is native documents without their names, so `native` reads them
//! as it reads files.
//!
//! ```text
//! {"v":1,"topic":{"owner":"team-a","spec":{…}},"subscriptions":{
//! "audit":{"defaults":{…},"owner":"team-a","profile":"native","spec":{…}},
//! "billing":{…}
//! }}
//! ```
//!
//! A topic that was removed is `{"v":1,"removed":"2026-11-20T07:00:00Z"}`.
//!
//! Promises: one subscription that cannot be read affects no other. The memory that reading takes is bounded by the size
//! of the object. The text is sorted, with a line for each subscription, so that two objects can be compared by line.

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
