//! Batches: they exist where a document states how large they may be.
//!
//! Separate because either number enables batches, and the other then has its default.

use serde_json::{Value as Json, json};

use crate::document::findings::{Message, quoted};
use crate::document::kind::Merged;
use crate::document::reader::{Cursor, Fields};
use crate::document::record::{Declaration, Optional, Presence, Record as _, Shown};
use crate::subscription::batch::{BATCH_EVENTS_MAX, Batch};

/// The word by which a Subscription does without the batches of its Topic.
pub const NONE: &str = "none";
/// The text of the fields where each event has a request of its own.
const NO_BATCHES: &str = "no batches";

/// Reports `onRefused` where nothing is batched.
pub fn report_without_batch(on_refused: &Cursor<'_>) {
    let message = Message::new("onRefused has no effect where each event has a request of its own");
    on_refused.error(message.help("maxEvents (maxEventsPerBatch in Event Grid) enables batches"));
}

/// The field `batch`: a Topic may state what a refusal means, and leave it to its Subscriptions whether to batch at all.
pub struct Batches;

impl Presence for Batches {
    type Value = Option<Batch>;

    fn read(&self, fields: &Fields<'_>, name: &'static str) -> Option<Option<Batch>> {
        let Some(at) = fields.given(name) else { return Some(None) };
        match at.peek_text() {
            Some(NONE) => return Some(None),
            Some(other) => {
                return at.refuse(format!("expected none or a mapping, found {}", quoted(other)));
            }
            None => {}
        }
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
