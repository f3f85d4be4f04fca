//! Why a catalogue could not be read or changed.

use delivery::subscription::name::NAME_RULE;
use thiserror::Error;

use crate::objects::StoreError;

/// Why a catalogue could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// Storage failed.
    #[error("storage could not be read or written")]
    Store(#[from] StoreError),
    /// An object is named and not there: it was lost, or the snapshot was replaced so long ago that its
    /// objects have been removed.
    #[error(
        "the object {object} is missing: load the newest snapshot, and if it is missing there too, it is lost"
    )]
    Missing {
        /// Its key.
        object: String,
    },
    /// An object is not what was written.
    #[error("the object {object} is damaged: {problem}")]
    Damaged {
        /// Its key.
        object: String,
        /// What is wrong.
        problem: String,
    },
    /// The pointer is missing, and several versions could be the one that it named.
    #[error(
        "the object {object} is missing, and {versions} versions with the highest number, {number}, could be the newest: \
         try again, and if that does not change, restore the object as it was earlier"
    )]
    SeveralNewest {
        /// The key of the pointer.
        object: String,
        /// How many there are.
        versions: usize,
        /// Their number.
        number: u64,
    },
    /// An object was written by a newer version.
    #[error(
        "the object {object} has format {format}, which this version of lastmile does not know: a newer one is needed"
    )]
    NewerFormat {
        /// Its key.
        object: String,
        /// Its format.
        format: u64,
    },
}

/// Why a change was not made. `E` is why the caller could not say what to change.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommitError<E> {
    /// The caller could not say what to change.
    #[error("the change could not be determined")]
    Change(#[source] E),
    /// A key is not one.
    #[error("{key:?} is not a key: topic/ or topic/name is expected, and {NAME_RULE}")]
    InvalidKey {
        /// The text.
        key: String,
    },
    /// An entry is too large.
    #[error(
        "the entry {key} has {bytes} bytes as it is written, and at most {max_bytes} are allowed"
    )]
    TooLarge {
        /// Its key.
        key: String,
        /// Its size in a node, quotes and escapes included.
        bytes: usize,
        /// The largest size.
        max_bytes: usize,
    },
    /// A topic would be too large to be read; nothing was changed.
    #[error(
        "the topic {topic} would be in {leaves} leaves, and one in more than {max} is not read: divide it into several \
         topics, or remove subscriptions first"
    )]
    TopicTooLarge {
        /// The topic.
        topic: String,
        /// In how many leaves it would be.
        leaves: usize,
        /// The most.
        max: usize,
    },
    /// An entry does not have the value that was expected; nothing was changed.
    #[error("the entry {key} was changed by somebody else: read it again")]
    Unexpected {
        /// Its key.
        key: String,
        /// Its value now; `None` when there is no such entry.
        current: Option<String>,
    },
    /// Others were faster each time; nothing was changed.
    #[error("others changed the catalogue during each of {tries} tries: try again later")]
    Contention {
        /// How often it was tried.
        tries: u32,
    },
    /// The commit began more than a day ago, so that what it wrote may soon be removed as garbage; nothing was changed.
    #[error("the change began more than a day ago: make it again")]
    TooSlow,
    /// The pointer may or may not have been replaced.
    #[error(
        "it is not certain whether the change was made: it was, if the history has version {version}"
    )]
    Uncertain {
        /// The id of the version that the pointer would name.
        version: String,
        /// What storage said.
        source: ReadError,
    },
    /// The catalogue could not be read, or its objects not be written; nothing was changed.
    #[error(transparent)]
    Read(#[from] ReadError),
}
