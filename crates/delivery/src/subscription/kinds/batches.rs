//! Batches: they exist where a document states how large they may be.
//!
//! Separate because either number enables batches, and the other then has its default.

use std::ops::RangeInclusive;

use serde_json::{Value as Json, json};

use crate::document::findings::Message;
use crate::document::kind::{Integer, Kind, Merged, Word};
use crate::document::reader::{Cursor, Fields};
use crate::document::record::{Declaration, Optional, Presence, Record as _, Shown};
use crate::subscription::{BATCH_BYTES, BATCH_EVENTS_MAX, BATCH_KILOBYTE, Batch, OnRefused};

/// The text of the fields where each event has a request of its own.
const NONE: &str = "no batches";

/// A number of bytes that documents state in kilobytes.
pub(crate) struct Kilobytes(pub(crate) RangeInclusive<u32>);

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

/// Reads the most events of a request.
pub(crate) fn events(cursor: &Cursor<'_>) -> Option<u32> {
    cursor.integer(1..=BATCH_EVENTS_MAX)
}

/// Reads the preferred size of a body.
pub(crate) fn preferred_bytes(cursor: &Cursor<'_>) -> Option<u64> {
    Kilobytes(1..=1_024).read(cursor)
}

/// Reads what a never-retried response to several events means.
pub(crate) fn on_refused(cursor: &Cursor<'_>) -> Option<OnRefused> {
    Word(&OnRefused::ALL, OnRefused::as_str).read(cursor)
}

/// The batch with these numbers; `None` if neither is given.
pub(crate) fn of(events: Option<u32>, bytes: Option<u64>) -> Option<Batch> {
    if events.is_none() && bytes.is_none() {
        return None;
    }
    Some(Batch {
        max_events: events.unwrap_or(BATCH_EVENTS_MAX),
        preferred_bytes: bytes.unwrap_or(BATCH_BYTES),
        on_refused: OnRefused::Split,
    })
}

/// Reports `onRefused` where nothing is batched.
pub(crate) fn report_without_batch(on_refused: &Cursor<'_>, help: &str) {
    on_refused.error(
        Message::new("onRefused has no effect where each event has a request of its own")
            .help(help),
    );
}

/// The field `batch`: a Topic may state what a refusal means, and leave it to its Subscriptions whether to batch at all.
pub(crate) struct Batches;

impl Presence for Batches {
    type Value = Option<Batch>;

    fn read(&self, fields: &Fields<'_>, name: &'static str) -> Option<Option<Batch>> {
        let Some(at) = fields.given(name) else { return Some(None) };
        let asked = |of: &Fields<'_>| {
            ["maxEvents", "preferredKilobytes"].iter().any(|name| of.given(name).is_some())
        };
        let read = at.mapping_over(&fields.bases_of(name, &at), |of| (asked(of), Batch::read(of)));
        let (is_asked, batch) = read?;
        batch.map(|batch| is_asked.then_some(batch))
    }

    fn write(&self, value: &Option<Batch>) -> Option<Json> {
        let mut written = value.as_ref()?.write();
        // One that has the defaults alone would not ask for batches.
        written.entry("maxEvents").or_insert_with(|| json!(BATCH_EVENTS_MAX));
        Some(Json::Object(written))
    }

    fn shown(&self, value: &Option<Batch>) -> Option<Json> {
        self.write(value)
    }

    fn declare(&self, name: &'static str, about: &[&str]) -> Declaration {
        Optional(Merged::<Batch>::new(), NONE).declare(name, about)
    }

    fn show(&self, path: String, value: &Option<Batch>, shown: &mut Vec<Shown>) {
        if let Some(batch) = value {
            return batch.show(&path, shown);
        }
        for Declaration { name, .. } in Batch::declarations() {
            let path = format!("{path}.{name}");
            shown.push(Shown { path, value: Json::Null, text: NONE.to_owned() });
        }
    }
}
