//! Merges the fields `body`, `bodyText` and `contentType` of several documents together.
//!
//! This module is separate because every other field is merged on its own. With that rule, a
//! Subscription with `bodyText` and a Topic with `body` would result in two bodies. Instead, the
//! first document that states a body decides. `null` states that the event is the body. The
//! `contentType` of later documents is ignored, because it belongs to another body.

use serde_json::Value as Json;

use crate::document::declaration::{Declaration, Shown};
use crate::document::reader::Fields;
use crate::document::record::{Optional, Presence};
use crate::document::value::Kind;

/// The fields with which a document states a body.
const BODIES: [&str; 2] = ["body", "bodyText"];

/// The presence rule of an optional field that is merged together with the body.
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
