//! [`Declaration`]: the declaration of a field, and [`Shown`]: a setting for display.

use serde_json::Value as Json;

use super::reader::Cursor;

/// The declaration of a field.
pub struct Declaration {
    /// The name in documents.
    pub name: &'static str,
    /// The description for the reference and the JSON Schema.
    pub about: String,
    /// True if some document must state the field.
    pub is_required: bool,
    /// The value if no document states the field.
    pub default: Option<Json>,
    /// The JSON Schema of the values.
    pub schema: Json,
    /// The fields of a merged mapping; empty for other kinds.
    pub fields: Vec<Declaration>,
}

/// A setting for display.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// The path of the field, with dots between names.
    pub path: String,
    /// The value for tools, without secrets.
    pub value: Json,
    /// The value for people.
    pub text: String,
}

/// Joins the lines of a doc comment.
pub fn text(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// Finds the first position that states each field, with the path of the field. `explain --origins`
/// shows these positions.
pub fn origins<'a>(
    declarations: &[Declaration],
    documents: &[Cursor<'a>],
    path: &str,
    found: &mut Vec<(String, Cursor<'a>)>,
) {
    for Declaration { name, fields, .. } in declarations {
        let path = if path.is_empty() { (*name).to_owned() } else { format!("{path}.{name}") };
        let stating = documents.iter().filter_map(|of| of.peek(name)).filter(|at| !at.is_null());
        let stating: Vec<Cursor<'a>> = stating.collect();
        if fields.is_empty() || stating.first().is_some_and(|first| !first.is_mapping()) {
            found.extend(stating.into_iter().next().map(|first| (path, first)));
        } else {
            origins(fields, &stating, &path, found);
        }
    }
}
