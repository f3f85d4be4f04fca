//! A catalogue: entries in a tree of content-addressed objects behind one pointer for each namespace.
//!
//! Separate from `delivery`, whose rules know no storage, and from `adapters`, which has the storage: this is the
//! protocol between them, over [`Objects`]. What the values of entries are is not its business.
//!
//! Promises:
//!
//! - A reader sees one version, whole, and needs only the nodes of the topics that it asks for:
//!   [`Namespace::load`], [`Namespace::topic`].
//! - A change writes the nodes on its way from the root, some of them split or merged, a version and the
//!   pointer; whatever fails, the pointer names a whole version: [`Namespace::commit`].
//! - A pointer that is missing is no reason to begin anew: [`Namespace::load_to_change`].
//! - Of several that change a namespace at once, none undoes what another did without having seen it.
//! - One object says which namespaces changed lately: [`Hint`].
//! - What is not needed is removed after 30 days, and nothing else: [`Namespace::collect_garbage`].
//! - Every object is checked when it is read, and what is not as it was written is an error that names it.
//!
//! `docs/catalogue.md` describes the objects for programs in other languages.

#![cfg_attr(not(test), deny(clippy::string_slice))] // what others wrote may be cut within a character

mod cache;
mod commit;
mod error;
mod format;
mod garbage;
mod hint;
mod namespace;
mod objects;
mod read;
mod recovery;
#[cfg(test)]
mod tests;
mod tree;
mod wait;

pub use cache::NodeCache;
pub use commit::Committed;
pub use error::{CommitError, ReadError};
pub use format::{
    ENTRY_MAX_BYTES, Entry, Id, NODE_MAX_BYTES, ROOT_MAX_BYTES, TOPIC_LEAVES_MAX, Version,
};
pub use garbage::{Collected, RETENTION_MS};
pub use hint::{Changed, Hint};
pub use namespace::{Namespace, Snapshot};
pub use objects::{DELETE_MAX, Fetched, Listed, OBJECT_MAX_BYTES, Objects, StoreError};
pub use read::TopicLeaf;
pub use tree::Changes;
