//! Generates the JSON Schema of native documents.
//!
//! This module is separate because only tools need it. Defaults are those of the native profile.
//! The properties of a mapping are a list of pairs, to keep the order of the declarations.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::canonical::API_VERSION;
use super::defaults::written_defaults;
use super::metadata::{SubscriptionMetadata, TopicMetadata};
use super::notifications::NotificationsSpec;
use super::secret_policy::SecretPolicySpec;
use super::selection::Selection;
use crate::document::kind::{DEFINITION, of_mapping};
use crate::document::record::Record;
use crate::subscription::DeliverySettings;
use crate::subscription::profile::Dialect;
use crate::subscription::topic_settings::TopicSettings;

/// Returns all definitions of the JSON Schema, by name.
#[must_use]
pub fn definitions() -> BTreeMap<String, Json> {
    let mut found = BTreeMap::new();
    let mut settings = of_record::<DeliverySettings>();
    add_defaults(&mut settings, &written_defaults(Dialect::Native));
    hoist(&mut settings["properties"], &mut found);
    if let Some(mut defaults) = found.get("destination").cloned() {
        // A Topic has no address, so its defaults have none.
        ["url", "aws", "reference"].iter().for_each(|name| remove(&mut defaults, name));
        found.insert("destinationDefaults".to_owned(), defaults);
    }
    if let Some(destination) = found.get_mut("destination") {
        if let Some(members) = destination.as_object_mut() {
            members.remove("required");
        }
        destination["oneOf"] = json!([{ "required": ["url"] }, { "required": ["aws"] }]);
    }
    let documents = [
        topic_document(&settings),
        subscription_document(&settings),
        document("Notifications", [("spec", of_record::<NotificationsSpec>())], &["spec"]),
        document("SecretPolicy", [("spec", of_record::<SecretPolicySpec>())], &["spec"]),
    ];
    for mut document in documents {
        let kind = lower(document["properties"][1][1]["const"].as_str());
        hoist(&mut document["properties"], &mut found);
        found.insert(format!("{kind}Document"), document);
    }
    found
}

fn topic_document(settings: &Json) -> Json {
    let mut delivery = settings.clone();
    delivery["description"] =
        json!("Defaults for the subscriptions of the topic, which can override each field.");
    for pair in delivery["properties"].as_array_mut().into_iter().flatten() {
        if pair[0] == "destination" {
            pair[1]["$ref"] = json!("#/$defs/destinationDefaults");
        }
    }
    let mut spec = of_record::<TopicSettings>();
    push(&mut spec, [json!(["delivery", delivery])]);
    let members = [("metadata", of_record::<TopicMetadata>()), ("spec", spec)];
    document("Topic", members, &["metadata"])
}

fn subscription_document(settings: &Json) -> Json {
    let mut spec = settings.clone();
    let about = "The events to deliver, their destination and the retry policy.";
    spec["description"] = json!(about);
    spec["required"] = json!(["destination"]);
    let selection = of_record::<Selection>();
    push(&mut spec, selection["properties"].as_array().into_iter().flatten().cloned());
    let profiles: Vec<&str> = Dialect::PROFILES.iter().map(|(word, _)| *word).collect();
    let about = "Dialect whose defaults and rules apply, in subscriptions that were converted from another dialect.";
    let profile = json!({ "description": about, "enum": profiles });
    let about = "Defaults of the profile when the file was written. Without this field, the defaults of this version \
                 apply.";
    let defaults = json!({ "description": about, "type": "object" });
    let metadata = of_record::<SubscriptionMetadata>();
    let members =
        [("metadata", metadata), ("spec", spec), ("profile", profile), ("defaults", defaults)];
    document("Subscription", members, &["metadata", "spec"])
}

/// Returns the schema of a record without a definition name, so that it is not moved to the
/// definitions.
fn of_record<R: Record>() -> Json {
    let mut schema = of_mapping("", R::ABOUT, R::declarations());
    if let Some(members) = schema.as_object_mut() {
        members.remove(DEFINITION);
    }
    schema
}

/// Returns the schema of a document of this `kind`. It allows `apiVersion`, `kind` and these
/// members, and no others.
pub fn document<const N: usize>(kind: &str, members: [(&str, Json); N], required: &[&str]) -> Json {
    let mut properties =
        vec![json!(["apiVersion", { "const": API_VERSION }]), json!(["kind", { "const": kind }])];
    properties.extend(members.into_iter().map(|(name, mut schema)| {
        if required.contains(&name) {
            schema["type"] = json!("object");
        }
        json!([name, schema])
    }));
    let required: Vec<&str> = ["apiVersion", "kind"].iter().chain(required).copied().collect();
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    })
}

/// Appends properties to the schema of a mapping.
fn push(schema: &mut Json, more: impl IntoIterator<Item = Json>) {
    if let Some(pairs) = schema["properties"].as_array_mut() {
        pairs.extend(more);
    }
}

/// Adds the values of a document as defaults to a schema. A field with a default is not required.
fn add_defaults(schema: &mut Json, defaults: &Json) {
    if let Some(first) = schema.get_mut("oneOf").and_then(Json::as_array_mut) {
        return first.iter_mut().for_each(|choice| add_defaults(choice, defaults));
    }
    let Some(pairs) = schema.get_mut("properties").and_then(Json::as_array_mut) else { return };
    for pair in pairs {
        let Some(default) = pair[0].as_str().and_then(|name| defaults.get(name)) else { continue };
        // The default of a mapping consists of the defaults of its fields.
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

/// Moves every named schema to the definitions, and replaces it with a reference.
pub fn hoist(schema: &mut Json, found: &mut BTreeMap<String, Json>) {
    match schema {
        Json::Array(elements) => elements.iter_mut().for_each(|element| hoist(element, found)),
        Json::Object(members) => {
            let name = members.remove(DEFINITION).map(|name| lower(name.as_str()));
            members.values_mut().for_each(|member| hoist(member, found));
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

/// Converts the name of a type to the name of its definition, by changing its first letter to lower
/// case.
fn lower(name: Option<&str>) -> String {
    let mut letters = name.unwrap_or_default().chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

fn remove(schema: &mut Json, name: &str) {
    if let Some(pairs) = schema.get_mut("properties").and_then(Json::as_array_mut) {
        pairs.retain(|pair| pair[0] != name);
    }
    if let Some(required) = schema.get_mut("required").and_then(Json::as_array_mut) {
        required.retain(|field| field != name);
    }
}
