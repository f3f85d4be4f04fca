//! Batch settings in documents of every family (Event Grid, "output batching").
//!
//! Separate because two families have the same two numbers with the same ranges and the same rule:
//! either of them turns batching on, and the other then has its default.

use std::ops::RangeInclusive;

use crate::subscription::{BATCH_BYTES, BATCH_EVENTS_MAX, BATCH_KILOBYTE, Batch, OnRefused};

use super::findings::Message;
use super::reader::Cursor;

/// The most events of a request.
const EVENTS: RangeInclusive<u32> = 1..=BATCH_EVENTS_MAX;
/// The preferred size of a body.
const KILOBYTES: RangeInclusive<u32> = 1..=1_024;

/// Reads the most events of a request.
pub(super) fn events(cursor: &Cursor<'_>) -> Option<u32> {
    cursor.integer(EVENTS)
}

/// Reads the preferred kilobytes of a body.
pub(super) fn kilobytes(cursor: &Cursor<'_>) -> Option<u32> {
    cursor.integer(KILOBYTES)
}

/// Reads what a never-retried answer to several events means.
pub(super) fn on_refused(cursor: &Cursor<'_>) -> Option<OnRefused> {
    cursor.word(&OnRefused::ALL, OnRefused::as_str)
}

/// Reports `onRefused` where nothing is batched.
pub(super) fn report_without_batch(on_refused: &Cursor<'_>, help: &str) {
    on_refused.error(
        Message::new("onRefused has no effect where each event has a request of its own")
            .help(help),
    );
}

/// The batch with these numbers; `None` where neither is given.
pub(super) fn of(
    events: Option<u32>,
    kilobytes: Option<u32>,
    on_refused: Option<OnRefused>,
) -> Option<Batch> {
    if events.is_none() && kilobytes.is_none() {
        return None;
    }
    Some(Batch {
        max_events: events.unwrap_or(BATCH_EVENTS_MAX),
        preferred_bytes: kilobytes
            .map_or(BATCH_BYTES, |kilobytes| u64::from(kilobytes) * BATCH_KILOBYTE),
        on_refused: on_refused.unwrap_or(OnRefused::Split),
    })
}
