//! [`Batch`]: the settings for several events in one request.
//!
//! This module is separate because batching is independent of the destination. By default, a
//! subscription does not batch.

use std::ops::RangeInclusive;

use serde_json::{Value as Json, json};

use crate::document::kind::{Integer, Kind, Word};
use crate::document::reader::Cursor;
use crate::document::record::Or;

words! {
    /// The treatment of the events of a batch after the destination returned a status that is never
    /// retried.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum OnRefused {
        /// Each event is sent once more, in a request of its own, because the response may refer to
        /// only one event.
        Split = "split",
        /// The response applies to all events of the batch.
        All = "all",
    }
}

record! {
    /// Several events in one request (Event Grid, "output batching"). Set `maxEvents` or
    /// `preferredKilobytes` to enable batches. A batch never waits for more events: it contains
    /// events of one invocation.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Batch {
        /// Maximum number of events in one request.
        "maxEvents" => pub max_events: u32 = Or(EVENTS, BATCH_EVENTS_MAX),
        /// Maximum size of a body with several events, in units of 1,024 bytes. A larger single
        /// event has its own request.
        "preferredKilobytes" => pub preferred_bytes: u64 = Or(Kilobytes(KILOBYTES), BATCH_BYTES),
        /// Effect of a status that is never retried: `split` sends each event once more, in its own
        /// request; `all` applies the response to all events.
        "onRefused" => pub on_refused: OnRefused = Or(ON_REFUSED, OnRefused::Split),
    }
}

/// Maximum number of events in a batch. It is the default if a document states only the size.
pub const BATCH_EVENTS_MAX: u32 = 5_000;
/// Preferred size of a batch in bytes. It is the default if a document states only the number of
/// events.
pub const BATCH_BYTES: u64 = 64 * BATCH_KILOBYTE;
/// Number of bytes in a kilobyte of `preferredKilobytes`.
pub const BATCH_KILOBYTE: u64 = 1_024;

/// The field type of the field `maxEvents`.
pub const EVENTS: Integer = Integer(1..=BATCH_EVENTS_MAX);
/// The field type of the field `onRefused`.
pub const ON_REFUSED: Word<OnRefused> = Word(&OnRefused::ALL, OnRefused::as_str);

/// Allowed values of `preferredKilobytes`.
pub const KILOBYTES: RangeInclusive<u32> = 1..=1_024;

/// The field type of sizes that documents state in kilobytes. The program stores them in bytes.
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
