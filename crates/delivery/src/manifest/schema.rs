//! The definitions of declared fields for the JSON Schema of native documents.
//!
//! Separate because only tools need it. The defaults are those of the native profile. The properties of a mapping are a list
//! of pairs, in the order of the declarations.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::canonical::written_defaults;
use crate::document::kind::{DEFINITION, of_mapping};
use crate::document::record::Record as _;
use crate::subscription::DeliverySettings;
use crate::subscription::profile::Dialect;

/// The definitions by name.
#[must_use]
pub fn definitions() -> BTreeMap<String, Json> {
    let mut found = BTreeMap::new();
    let mut settings = of_mapping(
        DeliverySettings::NAME,
        DeliverySettings::ABOUT,
        DeliverySettings::declarations(),
    );
    add_defaults(&mut settings, &written_defaults(Dialect::Native));
    hoist(&mut settings["properties"], &mut found);
    if let Some(mut defaults) = found.get("destination").cloned() {
        remove(&mut defaults, "url");
        found.insert("destinationDefaults".to_owned(), defaults);
    }
    found
}

/// Adds the values of a document as defaults; a field with a default is not required.
fn add_defaults(schema: &mut Json, defaults: &Json) {
    if let Some(first) = schema.get_mut("oneOf").and_then(Json::as_array_mut) {
        return first.iter_mut().for_each(|of| add_defaults(of, defaults));
    }
    let Some(pairs) = schema.get_mut("properties").and_then(Json::as_array_mut) else { return };
    for pair in pairs {
        let Some(default) = pair[0].as_str().and_then(|name| defaults.get(name)) else { continue };
        // A schedule is one value, which has a description in words.
        match default.is_object() {
            true => add_defaults(&mut pair[1], default),
            false => pair[1]["default"] = default.clone(),
        }
    }
    let is_needed = |name: &Json| name.as_str().is_none_or(|name| defaults.get(name).is_none());
    if let Some(required) = schema.get_mut("required").and_then(Json::as_array_mut) {
        required.retain(is_needed);
    }
}

/// Moves every schema with a name to the definitions, and leaves a reference in its place.
fn hoist(schema: &mut Json, found: &mut BTreeMap<String, Json>) {
    match schema {
        Json::Array(elements) => elements.iter_mut().for_each(|of| hoist(of, found)),
        Json::Object(members) => {
            let name = members.remove(DEFINITION).and_then(|name| Some(lower(name.as_str()?)));
            members.values_mut().for_each(|of| hoist(of, found));
            if let Some(name) = name.filter(|name| !name.is_empty()) {
                let defined = schema.take();
                *schema = json!({ "$ref": format!("#/$defs/{name}") });
                if let Some(about) = defined.get("description") {
                    schema["description"] = about.clone();
                }
                found.insert(name, defined);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

/// The name of a type as that of a definition.
fn lower(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// Removes a property.
fn remove(schema: &mut Json, name: &str) {
    if let Some(pairs) = schema.get_mut("properties").and_then(Json::as_array_mut) {
        pairs.retain(|pair| pair[0] != name);
    }
    if let Some(required) = schema.get_mut("required").and_then(Json::as_array_mut) {
        required.retain(|of| of != name);
    }
}
