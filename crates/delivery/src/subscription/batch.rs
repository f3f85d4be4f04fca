//! [`Batch`]: several events in one request.
//!
//! Separate because it says nothing of the destination, and most subscriptions have none.

/// Batching of a subscription's events in one request (Event Grid, "output batching"). A batch
/// never waits to fill: it holds what one invocation has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// The most events in one request.
    pub max_events: u32,
    /// No further event once the body has this many bytes; a single larger event has a request of
    /// its own.
    pub preferred_bytes: u64,
    /// What a never-retried answer to several events means.
    pub on_refused: OnRefused,
}

words! {
    /// What a never-retried answer to several events means.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum OnRefused {
        /// Each is retried once by itself, since perhaps only one of them was refused.
        Split = "split",
        /// All of them count as refused.
        All = "all",
    }
}

/// The most events of a batch, and the default where only the size is given.
pub const BATCH_EVENTS_MAX: u32 = 5_000;
/// The preferred size of a batch where only the number is given.
pub const BATCH_BYTES: u64 = 64 * BATCH_KILOBYTE;
/// The bytes of a kilobyte in the size of a batch.
pub const BATCH_KILOBYTE: u64 = 1_024;
