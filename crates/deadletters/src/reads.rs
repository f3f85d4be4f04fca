//! Types for reading blobs: content, progress, memory limits and failures. Pure.
//!
//! Separate because both [`crate::dead_letters`] and the reading modules use them.

use std::sync::Arc;

/// The progress of reading many blobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadProgress {
    /// The listing is complete, or has reached its limit. Reading begins.
    Listed {
        /// The number of blobs that will be read; the others are cached.
        to_read: u64,
        /// True if the listing is complete.
        is_all: bool,
    },
    /// One blob was read.
    Read,
}

/// A callback that receives the progress of reads.
pub type ReadObserver = Arc<dyn Fn(ReadProgress) + Send + Sync>;

/// The part of a dead letter that a caller needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// The complete dead letter, which the cache does not contain.
    Whole,
    /// The summary, which lists and counts use.
    Summary,
}

/// Number of bytes of memory that one of the [`READ_PERMITS`] reserves.
pub(crate) const PERMIT_BYTES: u64 = 1_024;
/// Number of permits for the memory of concurrent reads: enough for one blob of the maximum size,
/// or for many of the usual 2 KB.
pub(crate) const READ_PERMITS: u32 = 64 * 1_024;

/// The number of blobs that could not be read as dead letters, with an example.
#[derive(Debug, Clone, Default)]
pub struct UnreadableBlobs {
    /// The number of blobs that were not dead letters or were too large.
    pub count: u64,
    /// The problem with the last of these blobs.
    pub example: String,
}
