//! Event Grid: event subscriptions of topics and domains, of namespace topics (push), and of Event
//! Grid on Kubernetes.
//!
//! Separate because it is one of several families of dialects, in the formats of others: an unknown
//! field is a warning, since a newer version may define it; a value outside the documented range is
//! an error.
//!
//! Steps: document → resources (`template`) → dialect and name (`identity`) → `properties`
//! (`settings`, and one module for each part of it) → a subscription with the profile of its
//! dialect.
//!
//! Does not evaluate template expressions, and does not support pull delivery.

mod dead_letter;
mod endpoint;
mod filter;
mod identity;
mod retry;
mod settings;
mod template;
mod words;

use super::destinations::Destinations;
use super::origins::{Origins, note};
use super::reader::Cursor;
use super::{Described, Draft};
use identity::LastmileSection;
use settings::Settings;
use template::Resource;

pub(super) use template::is_template;

/// The fields of a resource that do not affect delivery, or are read elsewhere.
const IGNORED_FIELDS: [&str; 11] = [
    "$schema",
    "apiVersion",
    "comments",
    "dependsOn",
    "location",
    "resourceGroup",
    "resources",
    "scope",
    "systemData",
    "tags",
    "type",
];

/// What reading a resource needs and fills in.
struct Context<'d> {
    /// The `Destinations` documents.
    destinations: &'d Destinations<'d>,
    /// Where the values are written.
    origins: Origins,
}

impl Context<'_> {
    /// Notes where the value of a field is written; does nothing without a cursor.
    fn note(&mut self, field: &'static str, at: Option<&Cursor<'_>>) {
        note(&mut self.origins, field, at);
    }
}

/// Reads all Event Grid documents into the draft.
pub(super) fn read<'a>(
    documents: &[Cursor<'a>],
    destinations: &Destinations<'_>,
    draft: &mut Draft<'a>,
) {
    for resource in documents.iter().flat_map(template::resources) {
        let read = resource.cursor.without_error(|| read_resource(&resource, destinations, draft));
        if let Some(described) = read {
            draft.add_subscription(described);
        }
    }
}

fn read_resource<'a>(
    resource: &Resource<'a>,
    destinations: &Destinations<'_>,
    draft: &mut Draft<'a>,
) -> Option<Described<'a>> {
    resource.cursor.mapping(|fields| {
        fields.accept(&IGNORED_FIELDS);
        let mut context = Context { destinations, origins: Origins::new() };
        let own = fields
            .section("lastmile", |own| LastmileSection::read(own, &mut context))
            .unwrap_or_default();
        let dialect = own.dialect.unwrap_or_else(|| identity::detect_dialect(resource));
        let name = identity::name(resource, fields, &own, draft);
        let properties = fields.required("properties");
        let settings =
            properties.and_then(|of| of.mapping(|of| Settings::read(of, dialect, &mut context)));
        settings?.complete(name?, dialect, &own, context.origins)
    })?
}

#[cfg(test)]
mod tests;
