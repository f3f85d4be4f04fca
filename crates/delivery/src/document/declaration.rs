//! [`Declaration`]: the declaration of a field, and [`Shown`]: a setting for display.

use serde_json::Value as Json;

use super::reader::Cursor;

/// The declaration of one field of a record.
pub struct Declaration {
    /// The name of the field in documents.
    pub name: &'static str,
    /// The description for the reference and the JSON Schema.
    pub about: String,
    /// True if the field must be stated, in a user's document or in the defaults of a profile.
    pub is_required: bool,
    /// The value that applies if no document states the field.
    pub default: Option<Json>,
    /// The JSON Schema of the field's values.
    pub schema: Json,
    /// The declarations of nested fields, if the value is a mapping that is merged field by field;
    /// otherwise empty.
    pub fields: Vec<Declaration>,
}

/// A setting with its value, for display.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// The path of the field: field names, joined with dots.
    pub path: String,
    /// The value as JSON for tools, without secrets.
    pub value: Json,
    /// The value as text for people, without secrets.
    pub text: String,
}

/// Joins the lines of a doc comment into one text.
pub fn text(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// Adds the path of each stated field to `found`, with the first position that states it. `explain
/// --origins` shows these positions.
pub fn origins<'a>(
    declarations: &[Declaration],
    documents: &[Cursor<'a>],
    path: &str,
    found: &mut Vec<(String, Cursor<'a>)>,
) {
    for Declaration { name, fields, .. } in declarations {
        let path = if path.is_empty() { (*name).to_owned() } else { format!("{path}.{name}") };
        let stating =
            documents.iter().filter_map(|document| document.peek(name)).filter(|at| !at.is_null());
        let stating: Vec<Cursor<'a>> = stating.collect();
        if fields.is_empty() || stating.first().is_some_and(|first| !first.is_mapping()) {
            found.extend(stating.into_iter().next().map(|first| (path, first)));
        } else {
            origins(fields, &stating, &path, found);
        }
    }
}
