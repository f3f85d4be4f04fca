//! Generates the JSON Schema of records.

use serde_json::{Value as Json, json};

use super::declaration::{Declaration, text};

/// Name of a temporary member of a schema. Its value is the name under which the combined schema of
/// all documents defines this schema once.
pub const DEFINITION: &str = "$definition";

/// Returns the JSON Schema of a record. The properties are a list of pairs, because a JSON object
/// would not keep their order.
pub fn of_mapping(name: &str, about: &[&str], declarations: Vec<Declaration>) -> Json {
    let required: Vec<&str> = declarations
        .iter()
        .filter(|declaration| declaration.is_required)
        .map(|declaration| declaration.name)
        .collect();
    let mut schema = json!({
        DEFINITION: name,
        "description": text(about),
        "type": ["object", "null"],
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["properties"] = properties(declarations);
    schema
}

/// Returns the properties of a record's schema, as a list of pairs of name and schema.
pub fn properties(declarations: Vec<Declaration>) -> Json {
    let property = |Declaration { name, about, default, mut schema, .. }: Declaration| {
        schema["description"] = json!(about);
        if let Some(default) = default {
            schema["default"] = default;
        }
        json!([name, schema])
    };
    declarations.into_iter().map(property).collect()
}
