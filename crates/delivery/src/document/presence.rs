//! [`Presence`]: states whether a field is required, optional, or has a default.

use serde_json::Value as Json;

use super::declaration::{Declaration, Shown, text};
use super::reader::Fields;
use super::value::Kind;

/// States whether a field is required, optional, or has a default.
pub trait Presence {
    /// The Rust type of the field in its record.
    type Value;

    /// Reads the field with this name. Reports an invalid or missing field and returns `None`.
    fn read(&self, fields: &Fields<'_>, name: &'static str) -> Option<Self::Value>;

    /// Returns the value to write into a document. Returns `None` for an absent value or a default,
    /// which a document omits.
    fn write(&self, value: &Self::Value) -> Option<Json>;

    /// Returns the value for display, without secrets; `None` if there is no value.
    fn shown(&self, value: &Self::Value) -> Option<Json>;

    /// Returns the declaration of a field with this name and description.
    fn declare(&self, name: &'static str, about: &[&str]) -> Declaration;

    /// Adds the value of the field at `path` to the settings for display.
    fn show(&self, path: String, value: &Self::Value, shown: &mut Vec<Shown>);
}

/// A field that must be stated, in a user's document or in the defaults of a profile.
pub struct Required<K>(pub K);

/// A field without a default. The text describes what its absence means.
pub struct Optional<K>(pub K, pub &'static str);

/// A field with a default value, which applies if no document states the field.
pub struct Or<K, V>(pub K, pub V);

/// Reads the field. Returns `None` if no document states the field, and `Some(None)` if its value
/// is invalid.
fn stated<K: Kind>(kind: &K, fields: &Fields<'_>, name: &'static str) -> Option<Option<K::Value>> {
    let at = if K::NULL_IS_ABSENT { fields.given(name) } else { fields.get(name) };
    at.map(|at| kind.read_over(&at, &fields.bases_of(name, &at)))
}

/// Returns true if a default has the same meaning as an absent field: null, or an empty list or
/// mapping.
fn is_empty(default: &Json) -> bool {
    match default {
        Json::Null => true,
        Json::Array(elements) => elements.is_empty(),
        Json::Object(fields) => fields.is_empty(),
        Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    }
}

fn declaration<K: Kind>(kind: &K, name: &'static str, about: &[&str]) -> Declaration {
    let (schema, fields) = (kind.schema(), kind.fields());
    let about = text(about);
    Declaration { name, about, is_required: false, default: None, schema, fields }
}

impl<K: Kind> Presence for Required<K> {
    type Value = K::Value;

    fn read(&self, fields: &Fields<'_>, name: &'static str) -> Option<K::Value> {
        let read = stated(&self.0, fields, name);
        read.unwrap_or_else(|| fields.report_missing(name))
    }

    fn write(&self, value: &K::Value) -> Option<Json> {
        Some(self.0.write(value))
    }

    fn shown(&self, value: &K::Value) -> Option<Json> {
        Some(self.0.shown(value))
    }

    fn declare(&self, name: &'static str, about: &[&str]) -> Declaration {
        Declaration { is_required: true, ..declaration(&self.0, name, about) }
    }

    fn show(&self, path: String, value: &K::Value, shown: &mut Vec<Shown>) {
        self.0.show(path, value, shown);
    }
}

impl<K: Kind> Presence for Optional<K> {
    type Value = Option<K::Value>;

    fn read(&self, fields: &Fields<'_>, name: &'static str) -> Option<Option<K::Value>> {
        match stated(&self.0, fields, name) {
            Some(read) => read.map(Some),
            None => Some(None),
        }
    }

    fn write(&self, value: &Option<K::Value>) -> Option<Json> {
        value.as_ref().map(|value| self.0.write(value))
    }

    fn shown(&self, value: &Option<K::Value>) -> Option<Json> {
        value.as_ref().map(|value| self.0.shown(value))
    }

    fn declare(&self, name: &'static str, about: &[&str]) -> Declaration {
        declaration(&self.0, name, about)
    }

    fn show(&self, path: String, value: &Option<K::Value>, shown: &mut Vec<Shown>) {
        match value {
            Some(value) => self.0.show(path, value, shown),
            None => shown.push(Shown { path, value: Json::Null, text: self.1.to_owned() }),
        }
    }
}

impl<K: Kind, V: Clone + Into<K::Value>> Presence for Or<K, V> {
    type Value = K::Value;

    fn read(&self, fields: &Fields<'_>, name: &'static str) -> Option<K::Value> {
        stated(&self.0, fields, name).unwrap_or_else(|| Some(self.1.clone().into()))
    }

    fn write(&self, value: &K::Value) -> Option<Json> {
        let written = self.0.write(value);
        let default = self.0.write(&self.1.clone().into());
        (written != default).then_some(written)
    }

    fn shown(&self, value: &K::Value) -> Option<Json> {
        Some(self.0.shown(value))
    }

    fn declare(&self, name: &'static str, about: &[&str]) -> Declaration {
        let default =
            Some(self.0.write(&self.1.clone().into())).filter(|default| !is_empty(default));
        Declaration { default, ..declaration(&self.0, name, about) }
    }

    fn show(&self, path: String, value: &K::Value, shown: &mut Vec<Shown>) {
        self.0.show(path, value, shown);
    }
}
