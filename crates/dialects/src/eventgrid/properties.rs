//! Reads the `properties` of a resource. The output of Azure's command line is flat: it has these
//! fields in the resource itself.

use delivery::document::reader::{Cursor, Fields};

/// Returns a field in the `properties` of a resource, or in the resource itself if it is flat.
pub(super) fn property<'a>(resource: &Cursor<'a>, path: &str) -> Option<Cursor<'a>> {
    resource.peek(&format!("properties.{path}")).or_else(|| resource.peek(path))
}

/// Reads the `properties` of a resource, or the resource itself if it is flat.
pub(super) fn properties<'a, T>(
    fields: &Fields<'a>,
    read: impl FnOnce(&Fields<'a>) -> T,
) -> Option<T> {
    match fields.given("properties") {
        Some(properties) => properties.mapping(read),
        None => Some(read(fields)),
    }
}

/// Adds a note for a field that has no effect here.
pub(super) fn unused(fields: &Fields<'_>, field: &'static str) {
    if let Some(key) = fields.given_key(field) {
        key.note(format!("{field} has no effect"));
    }
}
