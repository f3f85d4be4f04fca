//! Declarations of fields, and settings as they are shown.

use serde_json::Value as Json;

use super::reader::Cursor;

/// The declaration of a field.
pub struct Declaration {
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
    pub about: String,
    /// Some document has to state it.
    pub is_required: bool,
    /// The default where no document states it.
    pub default: Option<Json>,
    /// The JSON Schema of its values.
    pub schema: Json,
    /// The fields of a mapping that is merged field by field.
    pub fields: Vec<Declaration>,
}

/// A setting as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// The names of its fields, joined by dots.
    pub path: String,
    /// Its value, without secrets.
    pub value: Json,
    /// Its value for people.
    pub text: String,
}

/// The lines of a doc comment as one text.
pub fn text(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// The first position that states each field, with its path: the settings of a record, and where they are written.
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
