//! Reads `destination`: the endpoint, and the settings of its requests.
//!
//! Separate because a webhook has a URL, while every other endpoint is an Azure resource. A
//! resource needs an address in `Destinations`, and the rules for resources apply to it.

use std::borrow::Cow;

use serde_json::json;
use url::Url;

use super::super::access::Asked;
use super::super::destinations::Destinations;
use super::super::translation::Translation;
use super::context::Context;
use super::properties::{properties, unused};
use super::{entra, words};
use delivery::document::findings::{Message, ReferenceUse};
use delivery::document::kind::Kind as _;
use delivery::document::reader::{Cursor, Fields};
use delivery::event::path::PATH_RULE;
use delivery::event::schema::Schema;
use delivery::subscription::batch::{EVENTS, KILOBYTES};
use delivery::subscription::header::{Header, Value};
use delivery::subscription::kinds::headers::Headers;
use delivery::subscription::kinds::{batches, headers};
use delivery::template::has_tags;

/// The types of endpoints. The value is true if the endpoint is an Azure resource.
const TYPES: [(&str, bool); 10] = [
    ("WebHook", false),
    ("AzureFunction", true),
    ("EventHub", true),
    ("HybridConnection", true),
    ("MonitorAlert", true),
    ("NamespaceTopic", true),
    ("PartnerDestination", true),
    ("ServiceBusQueue", true),
    ("ServiceBusTopic", true),
    ("StorageQueue", true),
];
const SCHEMAS: [(&str, Schema); 3] = [
    ("EventGridSchema", Schema::EventGrid),
    ("CloudEventSchemaV1_0", Schema::CloudEventsStructured),
    ("CustomInputSchema", Schema::Custom),
];
/// Types of custom delivery properties, each with the reader of its value.
const PROPERTIES: [(&str, ReadValue); 2] = [("Static", static_value), ("Dynamic", dynamic_value)];
type ReadValue = fn(&Fields<'_>) -> Option<Value>;
/// Fields that have no meaning outside Azure.
pub(super) const UNUSED: [&str; 2] =
    ["minimumTlsVersionAllowed", "queueMessageTimeToLiveInSeconds"];

/// Fields with the address of an endpoint. The type of the endpoint determines which field counts.
const ADDRESSES: [&str; 4] = ["endpointBaseUrl", "endpointUrl", "queueName", "resourceId"];

pub(super) struct Endpoint<'a> {
    /// The address that receives requests.
    pub(super) called: Called<'a>,
    pub(super) is_resource: bool,
    /// The delivery schema, with its position.
    pub(super) schema: Option<(Schema, Cursor<'a>)>,
}

/// The address that receives requests, and its key.
pub(super) struct Called<'a> {
    pub(super) url: Url,
    /// Key of the address in a `Destinations` document.
    pub(super) key: String,
    pub(super) at: Cursor<'a>,
    /// All values that the file requests for the destination, except its address.
    pub(super) asked: Asked<'a>,
}

impl<'a> Endpoint<'a> {
    pub(super) fn read(cursor: &Cursor<'a>, context: &mut Context<'_>) -> Option<Self> {
        cursor.mapping(|fields| {
            let is_resource =
                fields.required("endpointType").and_then(|kind| words::read(&kind, &TYPES));
            properties(fields, |properties| {
                batch(properties, &mut context.to);
                UNUSED.into_iter().for_each(|field| unused(properties, field));
                let schema = schema(properties);
                let mappings = properties.given("deliveryAttributeMappings");
                let headers = mappings.as_ref().and_then(|at| headers::list(at, header));
                let written = |headers| Headers.write(&headers);
                context.to.set_some("destination.headers", headers, written, mappings.as_ref());
                let Some(is_resource) = is_resource else {
                    // Accept all of these fields. The endpoint type determines which one counts,
                    // and the unusable type has a finding of its own.
                    properties.accept(&ADDRESSES);
                    properties.accept(&entra::FIELDS);
                    return None;
                };
                let called = match is_resource {
                    true => resource(properties, context.destinations),
                    false => webhook(properties, context.destinations),
                }?;
                context.to.set("destination.url", &json!(called.url.as_str()), &called.at);
                Some(Self { called, is_resource, schema })
            })?
        })?
    }
}

/// Reads `eventDeliverySchema`, which is beside the destination, or inside the destination on
/// Kubernetes.
pub(super) fn schema<'a>(fields: &Fields<'a>) -> Option<(Schema, Cursor<'a>)> {
    let cursor = fields.given("eventDeliverySchema")?;
    Some((words::read(&cursor, &SCHEMAS)?, cursor))
}

fn webhook<'a>(fields: &Fields<'a>, destinations: &Destinations<'_>) -> Option<Called<'a>> {
    let asked = entra::asked(fields);
    let base = fields.given("endpointBaseUrl");
    let (cursor, is_base) = match (fields.given("endpointUrl"), base) {
        (Some(cursor), _) => (cursor, false),
        (None, Some(cursor)) => (cursor, true),
        (None, None) => (fields.required("endpointUrl")?, false),
    };
    let text = cursor.text()?;
    if is_base && !text.contains('?') && !destinations.completes(text) {
        let message = "an exported URL has no query, so a secret in the query is missing";
        cursor.warn(Message::new(message).help(
            "set endpointUrl to the full URL, which az prints with --include-full-endpoint-url true",
        ));
    }
    let unknown = Message::new("not the address of a webhook").help("http://… or https://…");
    let target = destinations.resolve(text, &cursor).or_refuse(&cursor, unknown);
    let Some(url) = target.and_then(|target| target.for_events(&cursor)) else {
        destinations.warn_missing_token(&asked, text);
        return None;
    };
    Some(Called { url, key: text.to_owned(), at: cursor, asked })
}

fn resource<'a>(fields: &Fields<'a>, destinations: &Destinations<'_>) -> Option<Called<'a>> {
    entra::report_unused(fields);
    let queue = fields.given("queueName");
    let cursor = fields.required("resourceId")?;
    let id = queue_id(cursor.text()?, queue.as_ref())?;
    let unknown = unmapped(&id);
    let target = destinations.resolve(&id, &cursor).or_refuse(&cursor, unknown)?;
    let url = target.for_events(&cursor)?;
    Some(Called { url, key: id.into_owned(), at: cursor, asked: Asked::default() })
}

/// Returns the message for an endpoint that no `Destinations` document maps. The message has the
/// whole key, however long, so that people can copy it.
fn unmapped(key: &str) -> Message {
    let help = format!("add to its spec: {{\"{key}\": https://…}}");
    Message::new("this resource needs an address in a Destinations document")
        .help(help)
        .about(key, ReferenceUse::Events)
}

/// Returns the full id of a storage queue. Joins the account's id and the queue's name, because an
/// account has many queues. Returns `id` unchanged if it is already full, or if no queue is named.
fn queue_id<'i>(id: &'i str, queue: Option<&Cursor<'_>>) -> Option<Cow<'i, str>> {
    let Some(queue) = queue else { return Some(id.into()) };
    let name = queue.text()?;
    if id.contains("://") || id.to_ascii_lowercase().contains("/queues/") {
        return Some(id.into());
    }
    Some(format!("{}/queueServices/default/queues/{name}", id.trim_end_matches('/')).into())
}

/// Reads the batch settings, with the limits of "output batching" in Event Grid: 1 to 5,000 events,
/// 1 to 1,024 KB. A maximum of one event means no batching, whatever the size, because exported
/// resources without batching have this maximum.
fn batch(fields: &Fields<'_>, to: &mut Translation) {
    let [events_at, size_at] =
        ["maxEventsPerBatch", "preferredBatchSizeInKilobytes"].map(|name| fields.given(name));
    let events = events_at.as_ref().and_then(|at| EVENTS.read(at));
    let kilobytes = size_at.as_ref().and_then(|at| at.integer(KILOBYTES));
    if events == Some(1) {
        return to.set_some("batch", events, |_| json!(batches::NONE), events_at.as_ref());
    }
    to.set_some("batch.maxEvents", events, |events| json!(events), events_at.as_ref());
    to.set_some(
        "batch.preferredKilobytes",
        kilobytes,
        |kilobytes| json!(kilobytes),
        size_at.as_ref(),
    );
}

fn header(fields: &Fields<'_>) -> Option<Header> {
    let name = fields.required("name").and_then(|cursor| headers::name(&cursor));
    let Some(read) = fields.required("type").and_then(|kind| words::read(&kind, &PROPERTIES))
    else {
        // Accept this section unread. The type determines its meaning, and the unusable type has a
        // finding of its own.
        fields.accept(&["properties"]);
        return None;
    };
    let value = properties(fields, read).flatten();
    Some(Header { name: name?, value: value? })
}

fn static_value(properties: &Fields<'_>) -> Option<Value> {
    let is_secret = properties.is_true("isSecret");
    let value = properties.required("value").and_then(|cursor| headers::value(&cursor))?;
    if !is_secret && has_tags(&value) {
        // The native form would read such a value as a template.
        let cursor = properties.required("value")?;
        return cursor.refuse("a static value cannot contain {{, {% or {#");
    }
    Some(if is_secret { Value::Concealed(value) } else { Value::Static(value) })
}

fn dynamic_value(properties: &Fields<'_>) -> Option<Value> {
    properties.required("sourceField")?.parsed("a path", PATH_RULE).map(Value::Path)
}
