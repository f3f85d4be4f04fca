//! Reads of blobs: their needs, their progress, their limits, and those that failed. Pure.
//!
//! Separate from [`crate::dead_letters`] and from the modules that read, because both need it.

use std::sync::Arc;

/// Reported while many blobs are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadProgress {
    /// Everything is listed, or as much as is listed first. Reading begins.
    Listed {
        /// The number of blobs that will be read; the others are in the cache.
        to_read: u64,
        /// True if these are all.
        is_all: bool,
    },
    /// One blob was read.
    Read,
}

/// Called with the progress of reads.
pub type ReadObserver = Arc<dyn Fn(ReadProgress) + Send + Sync>;

/// The need of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// All of them, which the cache does not have.
    Whole,
    /// The part that lists and sums need.
    Summary,
}

/// The unit of [`READ_PERMITS`], in bytes.
pub(crate) const PERMIT_BYTES: u64 = 1_024;
/// Permits for the memory of the reads under way: one blob of the largest size, or many of the usual 2 KB.
pub(crate) const READ_PERMITS: u32 = 64 * 1_024;

/// Blobs that are not dead letters.
#[derive(Debug, Clone, Default)]
pub struct UnreadableBlobs {
    /// The number of those that were read or were too large.
    pub count: u64,
    /// What is wrong with the last of them.
    pub example: String,
}
