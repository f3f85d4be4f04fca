//! Types for reading blobs: content, progress, memory limits and failures. Pure.
//!
//! Separate because both [`crate::dead_letters`] and the reading modules use them.

use std::sync::Arc;

/// Progress while many blobs are read.
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

/// A callback for the progress of reads.
pub type ReadObserver = Arc<dyn Fn(ReadProgress) + Send + Sync>;

/// The part of a dead letter that a caller needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// The complete dead letter, which the cache does not contain.
    Whole,
    /// The summary for lists and counts.
    Summary,
}

/// The unit of [`READ_PERMITS`], in bytes.
pub(crate) const PERMIT_BYTES: u64 = 1_024;
/// Permits for the memory of reads under way: one blob of the largest size, or many of the usual 2
/// KB.
pub(crate) const READ_PERMITS: u32 = 64 * 1_024;

/// Blobs that are not dead letters.
#[derive(Debug, Clone, Default)]
pub struct UnreadableBlobs {
    /// The number of blobs that were not dead letters or were too large.
    pub count: u64,
    /// The problem of the last one.
    pub example: String,
}
