//! The fields of a body, which belong together: `body`, `bodyText` and `contentType`.
//!
//! Separate from other fields, each of which comes from the first document that states it. A Subscription with a `bodyText`
//! would have two bodies where its Topic has a `body`. So the first document that states a body decides: `null` states that
//! there is none, and the event is sent. A `contentType` of a later document belongs to another body.

use serde_json::Value as Json;

use crate::document::declaration::{Declaration, Shown};
use crate::document::reader::Fields;
use crate::document::record::{Optional, Presence};
use crate::document::value::Kind;

/// The fields that state a body.
const BODIES: [&str; 2] = ["body", "bodyText"];

/// An optional field that belongs to a body.
pub struct OfBody<K>(pub Optional<K>);

impl<K: Kind> Presence for OfBody<K> {
    type Value = Option<K::Value>;

    fn read(&self, fields: &Fields<'_>, name: &'static str) -> Option<Option<K::Value>> {
        fields.accept(&[name]);
        for document in fields.documents() {
            if let Some(at) = document.peek(name).filter(|at| !at.is_null()) {
                return self.0.0.read(&at).map(Some);
            }
            if BODIES.iter().any(|field| document.peek(field).is_some()) {
                break;
            }
        }
        Some(None)
    }

    fn write(&self, value: &Option<K::Value>) -> Option<Json> {
        self.0.write(value)
    }

    fn shown(&self, value: &Option<K::Value>) -> Option<Json> {
        self.0.shown(value)
    }

    fn declare(&self, name: &'static str, about: &[&str]) -> Declaration {
        self.0.declare(name, about)
    }

    fn show(&self, path: String, value: &Option<K::Value>, shown: &mut Vec<Shown>) {
        self.0.show(path, value, shown);
    }
}
