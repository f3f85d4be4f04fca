//! `properties` of a resource, which the command line of Azure prints flat.

use delivery::document::reader::{Cursor, Fields};

/// A field of the properties of a resource, which may be flat.
pub(super) fn property<'a>(resource: &Cursor<'a>, path: &str) -> Option<Cursor<'a>> {
    resource.peek(&format!("properties.{path}")).or_else(|| resource.peek(path))
}

/// Reads `properties`, or the fields around it where they are flat.
pub(super) fn properties<'a, T>(
    fields: &Fields<'a>,
    read: impl FnOnce(&Fields<'a>) -> T,
) -> Option<T> {
    match fields.given("properties") {
        Some(properties) => properties.mapping(read),
        None => Some(read(fields)),
    }
}

/// Notes a field that has no effect.
pub(super) fn unused(fields: &Fields<'_>, field: &'static str) {
    if let Some(key) = fields.given_key(field) {
        key.note(format!("{field} is not used here"));
    }
}
