//! The objects of a catalogue as bytes: nodes, versions, the pointer, and their limits.
//!
//! Separate because these bytes leave the system and stay: every later version reads format 1. Here is no
//! decision about what to write, and no storage.

mod id;
mod node;
mod range;
mod version;

pub use id::Id;
pub use node::Entry;
pub(crate) use node::{CHILD_MIN_BYTES, Child, Node, Reference};
pub(crate) use range::KeyRange;
use serde::Deserialize;
use serde::de::DeserializeOwned;
pub use version::Version;
pub(crate) use version::{Pointer, summary};

use crate::error::ReadError;

/// The format of all objects.
pub(crate) const FORMAT: u32 = 1;

/// The largest root node: a reader reads it with every change of the pointer.
pub const ROOT_MAX_BYTES: usize = 32 * 1024;
/// The largest node.
pub const NODE_MAX_BYTES: usize = 64 * 1024;
/// The largest entry, as it is written in a node.
pub const ENTRY_MAX_BYTES: usize = 48 * 1024;

/// The most leaves of a topic: of about 48 KiB each, more would fill the memory of a function that reads it, and so
/// harm all others.
pub const TOPIC_LEAVES_MAX: usize = 2_048;

/// The limits of sizes, in bytes. Tests choose small ones, so that few entries make a deep tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) root: usize,
    pub(crate) node: usize,
    pub(crate) entry: usize,
    /// Leaves, not bytes.
    pub(crate) topic_leaves: usize,
}

impl Limits {
    pub(crate) const STANDARD: Self = Self {
        root: ROOT_MAX_BYTES,
        node: NODE_MAX_BYTES,
        entry: ENTRY_MAX_BYTES,
        topic_leaves: TOPIC_LEAVES_MAX,
    };

    /// A node that becomes smaller is merged with a neighbour.
    pub(crate) fn node_min(self) -> usize {
        self.node / 4
    }
}

/// What every object begins with.
#[derive(Deserialize)]
struct Header {
    format: u64,
}

/// The object of this key, as its written form.
pub(crate) fn parse<T: DeserializeOwned>(object: &str, bytes: &[u8]) -> Result<T, ReadError> {
    let header: Header = serde_json::from_slice(bytes).map_err(|error| damaged(object, error))?;
    if header.format > u64::from(FORMAT) {
        return Err(ReadError::NewerFormat { object: object.to_owned(), format: header.format });
    }
    if header.format < u64::from(FORMAT) {
        return Err(damaged(object, format!("there is no format {}", header.format)));
    }
    serde_json::from_slice(bytes).map_err(|error| damaged(object, error))
}

/// The error about an object that is not what was written.
pub(crate) fn damaged(object: &str, problem: impl ToString) -> ReadError {
    ReadError::Damaged { object: object.to_owned(), problem: problem.to_string() }
}
