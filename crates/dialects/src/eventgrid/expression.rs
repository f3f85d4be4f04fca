//! Finds the template expressions that prevent a resource from being read: expressions in values
//! that its delivery needs.
//!
//! Separate because each resource has one finding with the command that exports it (`export`),
//! instead of one finding per expression. Expressions in other fields are ignored (`location`,
//! `tags`, `dependsOn`, identities).

use super::template::Resource;
use super::{endpoint, export, source};
use delivery::document::findings::Message;
use delivery::document::reader::{Cursor, Entry};

/// Properties that affect delivery.
const NEEDED: [&str; 12] = [
    COPY,
    "deadLetterDestination",
    "deadLetterDestinationWithResourceIdentity",
    "deadLetterWithResourceIdentity",
    "deliveryConfiguration",
    "deliveryWithResourceIdentity",
    "destination",
    "eventDeliverySchema",
    "expirationTimeUtc",
    "filter",
    "filtersConfiguration",
    "retryPolicy",
];
/// Field that creates several copies of a resource, or of a list element.
const COPY: &str = "copy";

/// Reports the first needed field whose value only a deployment has. Returns false if there is
/// none.
pub(super) fn report(resource: &Resource<'_>) -> bool {
    let found = [copies(resource), of_topic(resource), of_name(resource), of_settings(resource)];
    let Some(at) = found.into_iter().flatten().min_by_key(Cursor::position) else { return false };
    let (problem, fix) = match at.is_expression() {
        true => ("template expressions are not evaluated", "write the value"),
        false => ("copy loops are not evaluated", "write each copy"),
    };
    let help = format!("{fix}, or check the output of: {}", export::command(resource));
    at.error(Message::new(problem).help(help));
    true
}

fn copies<'a>(resource: &Resource<'a>) -> Option<Cursor<'a>> {
    resource.cursor.peek(COPY).filter(|copy| !copy.is_null())
}

/// Returns the expression that names the topic, unless another field names it.
fn of_topic<'a>(resource: &Resource<'a>) -> Option<Cursor<'a>> {
    let is_named =
        source::of_resource(resource).is_some_and(|(source, _)| source.namespace.is_some());
    if is_named || is_stated(resource, "lastmile.topic") {
        return None;
    }
    let fields = ["id", "properties.topic", "topic", "scope", "resourceGroup"];
    let fields = fields.into_iter().filter_map(|field| resource.cursor.peek(field));
    fields.filter(Cursor::is_expression).chain(resource.name_expression.clone()).next()
}

fn of_name<'a>(resource: &Resource<'a>) -> Option<Cursor<'a>> {
    let name = resource.cursor.peek("name").filter(Cursor::is_expression);
    name.filter(|_| !is_stated(resource, "lastmile.name"))
}

fn of_settings<'a>(resource: &Resource<'a>) -> Option<Cursor<'a>> {
    if let Some(own) = resource.cursor.peek("lastmile").and_then(|own| in_value(&own)) {
        return Some(own);
    }
    let properties = resource.cursor.peek("properties").filter(|properties| !properties.is_null());
    let properties = properties.unwrap_or_else(|| resource.cursor.clone());
    if properties.is_expression() {
        return Some(properties);
    }
    let fields = entries(&properties).into_iter();
    fields.filter(|field| NEEDED.contains(&field.name)).find_map(|field| in_entry(&field))
}

/// Returns the first expression in a value, except in fields that have no effect here. The
/// recursion ends because the nesting of documents is limited.
fn in_value<'a>(value: &Cursor<'a>) -> Option<Cursor<'a>> {
    if value.is_expression() {
        return Some(value.clone());
    }
    let elements = if value.is_list() { value.list().unwrap_or_default() } else { Vec::new() };
    let in_list = elements.iter().find_map(in_value);
    in_list.or_else(|| entries(value).iter().find_map(in_entry))
}

fn in_entry<'a>(entry: &Entry<'a>) -> Option<Cursor<'a>> {
    if entry.name.eq_ignore_ascii_case(COPY) && entry.value.is_list() {
        return Some(entry.key.clone());
    }
    let is_unused = entry.name == "identity" || endpoint::UNUSED.contains(&entry.name);
    if is_unused { None } else { in_value(&entry.value) }
}

/// Returns the entries of a mapping, or an empty list for any other value.
fn entries<'a>(value: &Cursor<'a>) -> Vec<Entry<'a>> {
    if value.is_mapping() { value.entries().unwrap_or_default() } else { Vec::new() }
}

fn is_stated(resource: &Resource<'_>, field: &str) -> bool {
    resource.cursor.peek(field).is_some_and(|value| !value.is_null())
}
