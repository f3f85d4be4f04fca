//! The JSON Schema of native files: native documents, and `Destinations`.

use std::collections::BTreeMap;

use delivery::document::kind::of_mapping;
use delivery::document::record::Record as _;
use delivery::native::schema;
use delivery::subscription::kinds::address::ADDRESS_PATTERN;
use serde_json::{Value as Json, json};

use super::destination_entry::DestinationEntry;

/// Returns all definitions of the JSON Schema, by name.
#[must_use]
pub fn definitions() -> BTreeMap<String, Json> {
    let mut found = schema::definitions();
    let mut entry =
        of_mapping("DestinationEntry", DestinationEntry::ABOUT, DestinationEntry::declarations());
    entry["type"] = json!("object");
    entry["minProperties"] = json!(1);
    let address = json!({ "type": "string", "pattern": ADDRESS_PATTERN });
    let spec = json!({
        "description": "The address for each Knative reference or resource id of another platform: text, or a mapping with more settings.",
        "additionalProperties": { "anyOf": [address, entry] },
    });
    let mut document = schema::document("Destinations", [("spec", spec)], &["spec"]);
    schema::hoist(&mut document, &mut found);
    found.insert("destinationsDocument".to_owned(), document);
    found
}
