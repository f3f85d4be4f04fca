//! [`Batch`]: the settings for several events in one request.
//!
//! This module is separate because batching is independent of the destination. By default a
//! subscription does not batch.

use std::ops::RangeInclusive;

use serde_json::{Value as Json, json};

use crate::document::kind::{Integer, Kind, Word};
use crate::document::reader::Cursor;
use crate::document::record::Or;

words! {
    /// The effect of a never-retried response to a batch on its events.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum OnRefused {
        /// Retries each event once in a request of its own, because perhaps only one of them was
        /// refused.
        Split = "split",
        /// Applies the response to all events.
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

/// Maximum number of events in a batch; the default if only the size is stated.
pub const BATCH_EVENTS_MAX: u32 = 5_000;
/// Preferred size of a batch in bytes; the default if only the number of events is stated.
pub const BATCH_BYTES: u64 = 64 * BATCH_KILOBYTE;
/// Bytes per kilobyte in `preferredKilobytes`.
pub const BATCH_KILOBYTE: u64 = 1_024;

/// The kind of the field `maxEvents`.
pub const EVENTS: Integer = Integer(1..=BATCH_EVENTS_MAX);
/// The kind of the field `onRefused`.
pub const ON_REFUSED: Word<OnRefused> = Word(&OnRefused::ALL, OnRefused::as_str);

/// Range of `preferredKilobytes`.
pub const KILOBYTES: RangeInclusive<u32> = 1..=1_024;

/// A size that documents state in kilobytes and the program keeps in bytes.
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
