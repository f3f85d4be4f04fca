//! Reads Event Grid: event subscriptions of topics and domains, of namespace topics (push), and of
//! Event Grid on Kubernetes.
//!
//! Separate because Event Grid is one of several foreign families. An unknown field causes a
//! warning, because a newer version may define it. A value outside its documented range is an
//! error.
//!
//! The input passes through these forms (modules in parentheses):
//! - document
//! - resources (`template`)
//! - resources whose needed fields are literal (`expression`)
//! - the source of their events (`source`)
//! - dialect and name (`identity`, `kubernetes`)
//! - `properties` (`settings`, with one module per part)
//! - a native Subscription
//!
//! A resource may have the form of the REST API, with its fields in `properties`. It may also be
//! flat, as in the output of Azure's command line, which has no `properties` at any level. The
//! module does not support pull delivery, and does not evaluate template expressions.

mod context;
mod dead_letter;
mod endpoint;
mod entra;
mod export;
mod expression;
mod filter;
mod identity;
mod kubernetes;
mod properties;
mod retry;
mod settings;
mod source;
mod template;
mod topics;
mod words;

use std::collections::BTreeSet;

use super::destinations::Destinations;
use super::translation::{Translated, Translation};
use context::Context;
use delivery::document::findings::Message;
use delivery::document::reader::Cursor;
use delivery::native::LeftOut;
use delivery::subscription::name::TopicName;
use identity::LastmileSection;
use properties::{properties, property};
use template::Resource;
use topics::SourceTopics;

pub(super) use template::is_template;

/// Fields of a resource that do not affect delivery, or are read by another module.
const IGNORED_FIELDS: [&str; 17] = [
    "$schema",
    "apiVersion",
    "comments",
    "condition",
    "copy",
    "dependsOn",
    "existing",
    "id",
    "location",
    "metadata",
    "resourceGroup",
    "resources",
    "scope",
    "systemData",
    "tags",
    "topic",
    "type",
];

/// The delivery schema of old editions, CloudEvents 0.1, which is not supported.
const OLD_SCHEMA: &str = "CloudEventV01Schema";

/// True if the document has a destination in a position that Event Grid uses.
pub(super) fn has_destination(document: &Cursor<'_>) -> bool {
    let fields =
        ["destination.endpointType", "deliveryConfiguration", "deliveryWithResourceIdentity"];
    document.peek("properties.destination").is_some()
        || fields.iter().any(|field| property(document, field).is_some())
}

/// Translates all Event Grid documents. The spelling of topics in native documents takes
/// precedence.
pub(super) fn translate(
    documents: &[Cursor<'_>],
    destinations: &Destinations<'_>,
    described: &BTreeSet<TopicName>,
    translated: &mut Translated<'_>,
) {
    let topics = SourceTopics::new(described.iter());
    let resources: Vec<Resource<'_>> = documents.iter().flat_map(template::resources).collect();
    // If all resources have the old schema, each is an error, because nothing would be deployed.
    let is_other = |resource: &Resource<'_>| old_schema(&resource.cursor).is_none();
    let has_others = resources.iter().any(is_other);
    for resource in resources {
        let at = &resource.cursor;
        if has_others && is_of_old_schema(at) {
            let left_out = LeftOut::because(at, &[&resource.path], OLD_SCHEMA_REASON);
            translated.left_out.push(left_out);
            continue;
        }
        match at.result_or_error(|| translate_resource(&resource, destinations, &topics)) {
            Ok(subscription) => translated.subscriptions.push(subscription),
            Err(error) => translated.left_out.push(LeftOut::at(at, &[&resource.path], error)),
        }
    }
}

const OLD_SCHEMA_REASON: &str = "CloudEvents 0.1 is not supported";

/// Returns true for a resource with CloudEvents 0.1, and adds a warning that it is not deployed.
/// This is not an error: exports contain such resources from old editions, and the other resources
/// can be deployed.
fn is_of_old_schema(resource: &Cursor<'_>) -> bool {
    let Some(at) = old_schema(resource) else { return false };
    let message = format!("{OLD_SCHEMA_REASON}: this subscription is not deployed");
    at.warn(Message::new(message).help("eventDeliverySchema: CloudEventSchemaV1_0"));
    true
}

/// Returns the delivery schema of a resource if it is CloudEvents 0.1.
fn old_schema<'a>(resource: &Cursor<'a>) -> Option<Cursor<'a>> {
    let schema = property(resource, "eventDeliverySchema")?;
    let is_old =
        schema.peek_text().is_some_and(|text| text.trim().eq_ignore_ascii_case(OLD_SCHEMA));
    is_old.then_some(schema)
}

fn translate_resource(
    resource: &Resource<'_>,
    destinations: &Destinations<'_>,
    topics: &SourceTopics,
) -> Option<Translation> {
    if expression::report(resource) {
        return None;
    }
    resource.cursor.mapping(|fields| {
        fields.accept(&IGNORED_FIELDS);
        let mut context = Context { destinations, to: Translation::new(&resource.cursor) };
        let own = fields
            .section("lastmile", |own| LastmileSection::read(own, &mut context))
            .unwrap_or_default();
        let source = source::of_resource(resource);
        let dialect =
            own.dialect.unwrap_or_else(|| identity::detect_dialect(resource, source.as_ref()));
        let topic =
            own.topic.clone().or_else(|| identity::topic_of(resource, source.as_ref(), topics));
        let name = identity::name(resource, fields, topic, &own);
        let dialect = properties(fields, |properties| {
            settings::translate(properties, dialect, &own, &mut context)
        })?;
        let (name, at) = name?;
        context.to.name(&name, &at, dialect?);
        Some(context.to)
    })?
}

#[cfg(test)]
mod tests;
