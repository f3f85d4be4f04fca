//! [`Batch`]: several events in one request.
//!
//! Separate because it says nothing of the destination, and most subscriptions have none.

use std::ops::RangeInclusive;

use serde_json::{Value as Json, json};

use crate::document::kind::{Integer, Kind, Word};
use crate::document::reader::Cursor;
use crate::document::record::Or;

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

record! {
    /// Events that travel in one request (Event Grid, "output batching"); maxEvents or preferredKilobytes asks for it. A
    /// batch never waits to fill: it has what one invocation has.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Batch {
        /// The most events in one request.
        "maxEvents" => pub max_events: u32 = Or(EVENTS, BATCH_EVENTS_MAX),
        /// No further event past a body of this many times 1,024 bytes; a single larger event has a request of its own.
        "preferredKilobytes" => pub preferred_bytes: u64 = Or(Kilobytes(KILOBYTES), BATCH_BYTES),
        /// After a response that is never retried: split retries each event once by itself, all applies it to all of them.
        "onRefused" => pub on_refused: OnRefused = Or(ON_REFUSED, OnRefused::Split),
    }
}

/// The most events of a batch, and the default where only the size is given.
pub const BATCH_EVENTS_MAX: u32 = 5_000;
/// The preferred size of a batch where only the number is given.
pub const BATCH_BYTES: u64 = 64 * BATCH_KILOBYTE;
/// The bytes of a kilobyte in the size of a batch.
pub const BATCH_KILOBYTE: u64 = 1_024;

/// The kind of `maxEvents`.
pub const EVENTS: Integer = Integer(1..=BATCH_EVENTS_MAX);
/// The kind of `onRefused`.
pub const ON_REFUSED: Word<OnRefused> = Word(&OnRefused::ALL, OnRefused::as_str);

/// The sizes of a body that can be preferred, in kilobytes.
pub const KILOBYTES: RangeInclusive<u32> = 1..=1_024;

/// A number of bytes that documents state in kilobytes.
pub(super) struct Kilobytes(pub RangeInclusive<u32>);

impl Kind for Kilobytes {
    type Value = u64;

    fn read(&self, at: &Cursor<'_>) -> Option<u64> {
        Some(u64::from(at.integer(self.0.clone())?) * BATCH_KILOBYTE)
    }

    fn write(&self, value: &u64) -> Json {
        json!(value / BATCH_KILOBYTE)
    }

    fn schema(&self) -> Json {
        Integer(self.0.clone()).schema()
    }
}
