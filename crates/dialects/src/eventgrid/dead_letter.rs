//! Reads dead-letter destinations: containers in an Azure storage account, mapped to sinks.
//!
//! Separate because dead-letter destinations have many spellings. The fields may be in the
//! destination itself, or one level deeper, beside an identity. The container may be in
//! `properties` or in `StorageBlob`, and its id may be in two parts or whole. An id that no
//! `Destinations` document maps causes only a warning, because dead letters are then stored in the
//! default container.

use serde_json::json;

use super::super::access::SINK_ACCESS;
use super::context::Context;
use super::properties::{properties, unused};
use super::words;
use delivery::document::findings::{Message, ReferenceUse};
use delivery::document::reader::{Cursor, Fields};
use delivery::subscription::kinds::address::Resolved;
use delivery::time::duration::{DAY_MS, format_ms};

/// Field names for a dead-letter destination.
const SPELLINGS: [&str; 3] = [
    "deadLetterDestination",
    "deadLetterDestinationWithResourceIdentity",
    "deadLetterWithResourceIdentity",
];

/// Fields of a dead-letter destination, apart from the identity that writes to it.
const DESTINATION_FIELDS: [&str; 5] =
    ["StorageBlob", "deadLetterDestination", PERIOD, "endpointType", "properties"];

/// Field with the period in which storing a dead letter is retried.
const PERIOD: &str = "deliveryRetryPeriodInDays";

/// Translates the dead-letter destination, which has one of several field names.
pub(super) fn translate(fields: &Fields<'_>, context: &mut Context<'_>) {
    if let Some(key) = fields.given_key(PERIOD) {
        let message =
            Message::new(format!("{PERIOD} should be inside the dead-letter destination"));
        key.warn(message.help(format!("move it into {}; it is applied anyway", SPELLINGS[1])));
        period(fields, context);
    }
    let mut first = None;
    for name in SPELLINGS {
        let Some(cursor) = fields.given(name) else { continue };
        if is_identity_alone(&cursor) {
            cursor.mapping(|members| {
                members.accept(&DESTINATION_FIELDS);
                unused(members, "identity");
            });
            continue;
        }
        if let Some(first) = first {
            cursor.error(format!("{first} is also set; remove one of the two"));
            continue;
        }
        first = Some(name);
        cursor.mapping(|members| destination(members, context));
    }
}

/// Reads the fields of a dead-letter destination. With an identity, the destination itself may be
/// one level deeper.
fn destination(fields: &Fields<'_>, context: &mut Context<'_>) {
    unused(fields, "identity");
    period(fields, context);
    if let Some(inner) = fields.given("deadLetterDestination") {
        inner.mapping(|inner| destination(inner, context));
        return;
    }
    if let Some(kind) = fields.required("endpointType") {
        words::read(&kind, &[("StorageBlob", ())]);
    }
    let container = |properties: &Fields<'_>| {
        period(properties, context);
        sink(properties, context);
    };
    match fields.given("StorageBlob") {
        Some(blob) => blob.mapping(container),
        None => properties(fields, container),
    };
}

fn period(fields: &Fields<'_>, context: &mut Context<'_>) {
    let Some(at) = fields.given(PERIOD) else { return };
    let ms = at.integer(1..=2).map(|days| u64::from(days) * DAY_MS);
    context.to.set_some("deadLetter.keepTryingFor", ms, |ms| json!(format_ms(ms)), Some(&at));
}

/// True if the destination contains only an identity, which has no effect.
fn is_identity_alone(cursor: &Cursor<'_>) -> bool {
    let has = |field: &str| cursor.peek(field).is_some_and(|value| !value.is_null());
    has("identity") && !DESTINATION_FIELDS.iter().any(|field| has(field))
}

fn sink(fields: &Fields<'_>, context: &mut Context<'_>) -> Option<()> {
    let destinations = context.destinations;
    let cursor = fields.required("resourceId");
    let container = fields.given("blobContainerName");
    let cursor = cursor?;
    let id = container_id(cursor.text()?.trim_end_matches('/'), container.as_ref())?;
    destinations.warn_unused_access(&id, &cursor, SINK_ACCESS);
    match destinations.resolve(&id, &cursor) {
        Resolved::Target(target) => {
            let address = target.to_string();
            context.to.set("deadLetter.sink", &json!(address), &cursor);
            let key = destinations.reference(&id, &address);
            context.to.set_some("deadLetter.reference", key, |key| json!(key), Some(&cursor));
        }
        Resolved::Reported => {}
        Resolved::Unknown => unmapped(&cursor, &id),
    }
    Some(())
}

/// Returns the full id of a container. Joins the account's id and the container's name, unless `id`
/// is already full.
fn container_id(id: &str, container: Option<&Cursor<'_>>) -> Option<String> {
    let Some(container) = container else { return Some(id.to_owned()) };
    let name = container.text()?;
    let full = id
        .rsplit_once('/')
        .filter(|(around, _)| around.to_ascii_lowercase().ends_with("/containers"));
    let Some((_, in_id)) = full else {
        return Some(format!("{id}/blobServices/default/containers/{name}"));
    };
    if !in_id.eq_ignore_ascii_case(name) {
        container.warn("no effect: resourceId names another container");
    }
    Some(id.to_owned())
}

/// Adds a warning for a container that no document maps.
fn unmapped(cursor: &Cursor<'_>, id: &str) {
    let message = Message::new(
        "no Destinations document maps this container; dead letters go to the default one",
    );
    // Show the whole id, however long it is, so that people can copy it.
    let message = message.help(format!("add to its spec: {{\"{id}\": s3://…}}"));
    cursor.warn(message.about(id, ReferenceUse::DeadLetters));
}
