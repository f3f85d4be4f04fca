//! Reads the field `batch`, which enables batches if a document states their maximum number of
//! events or preferred size.
//!
//! This module is separate because one of the two numbers is enough: the other then has its
//! default.

use serde_json::{Value as Json, json};

use crate::document::findings::{Message, quoted};
use crate::document::kind::Merged;
use crate::document::reader::{Cursor, Fields};
use crate::document::record::{Declaration, Optional, Presence, Record as _, Shown};
use crate::subscription::batch::{BATCH_EVENTS_MAX, Batch};

/// The value of `batch` with which a Subscription disables the batches of its Topic.
pub const NONE: &str = "none";
/// Text that is shown for `batch` and its fields if batches are disabled.
const NO_BATCHES: &str = "no batches";

/// Reports that `onRefused` has no effect, because no document enables batches.
pub fn report_without_batch(on_refused: &Cursor<'_>) {
    let message =
        Message::new("onRefused has no effect if each event is sent in a separate request");
    on_refused.error(message.help("maxEvents (maxEventsPerBatch in Event Grid) enables batches"));
}

/// The presence rule of the field `batch`. A Topic may state `onRefused` without enabling batches;
/// its Subscriptions can enable them.
pub struct Batches;

impl Presence for Batches {
    type Value = Option<Batch>;

    fn read(&self, fields: &Fields<'_>, name: &'static str) -> Option<Option<Batch>> {
        let Some(at) = fields.given(name) else { return Some(None) };
        match at.peek_text() {
            Some(NONE) => return Some(None),
            Some(other) => {
                return at
                    .refuse(format!("expected \"none\" or a mapping, found {}", quoted(other)));
            }
            None => {}
        }
        let asked = |merged: &Fields<'_>| {
            ["maxEvents", "preferredKilobytes"].iter().any(|name| merged.given(name).is_some())
        };
        let read = at.mapping_over(&fields.bases_of(name, &at), |merged| {
            (asked(merged), Batch::read(merged))
        });
        let (is_asked, batch) = read?;
        batch.map(|batch| is_asked.then_some(batch))
    }

    fn write(&self, value: &Option<Batch>) -> Option<Json> {
        let mut written = value.as_ref()?.write();
        // A number is stated even if all values are defaults. Without a number, batches would be
        // disabled.
        written.entry("maxEvents").or_insert_with(|| json!(BATCH_EVENTS_MAX));
        Some(Json::Object(written))
    }

    fn shown(&self, value: &Option<Batch>) -> Option<Json> {
        self.write(value)
    }

    fn declare(&self, name: &'static str, about: &[&str]) -> Declaration {
        let mut declared = Optional(Merged::<Batch>::KIND, NO_BATCHES).declare(name, about);
        declared.schema = json!({ "oneOf": [{ "const": NONE }, declared.schema] });
        declared
    }

    fn show(&self, path: String, value: &Option<Batch>, shown: &mut Vec<Shown>) {
        if let Some(batch) = value {
            return batch.show(&path, shown);
        }
        for Declaration { name, .. } in Batch::declarations() {
            let path = format!("{path}.{name}");
            shown.push(Shown { path, value: Json::Null, text: NO_BATCHES.to_owned() });
        }
    }
}
