//! Reads `properties` of a resource, which are flat in the output of Azure's command line.

use delivery::document::reader::{Cursor, Fields};

/// Returns a field of a resource's properties, which may be flat.
pub(super) fn property<'a>(resource: &Cursor<'a>, path: &str) -> Option<Cursor<'a>> {
    resource.peek(&format!("properties.{path}")).or_else(|| resource.peek(path))
}

/// Reads `properties`, or the surrounding fields if they are flat.
pub(super) fn properties<'a, T>(
    fields: &Fields<'a>,
    read: impl FnOnce(&Fields<'a>) -> T,
) -> Option<T> {
    match fields.given("properties") {
        Some(properties) => properties.mapping(read),
        None => Some(read(fields)),
    }
}

/// Adds a note for a field without an effect.
pub(super) fn unused(fields: &Fields<'_>, field: &'static str) {
    if let Some(key) = fields.given_key(field) {
        key.note(format!("{field} is not used here"));
    }
}
