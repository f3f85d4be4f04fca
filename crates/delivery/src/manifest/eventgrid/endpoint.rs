//! `destination`: where requests go, and what every one of them carries.
//!
//! Separate because a webhook is an address, while every other endpoint is a resource of Azure that has to be given an
//! address here, in `Destinations`, and is judged by the rules for resources.

use url::Url;

use super::super::destinations::{Destinations, Resolved, Target};
use super::super::findings::Message;
use super::super::headers;
use super::super::reader::{Cursor, Fields};
use super::words;

/// Every type of endpoint.
const TYPES: [&str; 10] = [
    WEBHOOK,
    "AzureFunction",
    "EventHub",
    "HybridConnection",
    "MonitorAlert",
    "NamespaceTopic",
    "PartnerDestination",
    "ServiceBusQueue",
    "ServiceBusTopic",
    "StorageQueue",
];
const WEBHOOK: &str = "WebHook";
/// The shapes that events can be asked for in.
const SCHEMAS: [&str; 3] = ["EventGridSchema", "CloudEventSchemaV1_0", "CustomInputSchema"];
/// Fields that mean nothing outside Azure.
const UNUSED: [&str; 5] = [
    "azureActiveDirectoryApplicationIdOrUri",
    "azureActiveDirectoryTenantId",
    "minimumTlsVersionAllowed",
    "queueMessageTimeToLiveInSeconds",
    "queueName",
];

/// What a resource says about its endpoint.
pub(super) struct Endpoint {
    /// Where requests go.
    pub(super) url: Url,
    /// It stands for a resource of Azure.
    pub(super) is_resource: bool,
    /// Headers of every request.
    pub(super) headers: Vec<(String, String)>,
}

impl Endpoint {
    /// Reads `destination`; `usual_schema` is the shape that needs no mention.
    pub(super) fn read(cursor: &Cursor<'_>, usual_schema: &str, destinations: &Destinations<'_>) -> Option<Self> {
        cursor.mapping(|fields| {
            let kind = fields.required("endpointType").and_then(|kind| words::read(&kind, &TYPES));
            fields.required("properties")?.mapping(|properties| {
                batching(properties);
                UNUSED.into_iter().for_each(|field| unused(properties, field));
                if let Some(schema) = properties.given("eventDeliverySchema") {
                    read_schema(&schema, usual_schema);
                }
                let mappings = properties.given("deliveryAttributeMappings");
                let headers = mappings.map_or(Some(Vec::new()), |cursor| headers::list(&cursor, header));
                let Some(kind) = kind else {
                    // Which of them count depends on the type, which has its own finding.
                    properties.accept(&["endpointBaseUrl", "endpointUrl", "resourceId"]);
                    return None;
                };
                let is_resource = kind != WEBHOOK;
                let url =
                    if is_resource { resource(properties, destinations) } else { webhook(properties, destinations) };
                Some(Self { url: url?, is_resource, headers: headers? })
            })?
        })?
    }
}

/// Reads `eventDeliverySchema`.
pub(super) fn read_schema(cursor: &Cursor<'_>, usual: &str) {
    if words::read(cursor, &SCHEMAS).is_some_and(|schema| schema != usual) {
        cursor.warn("this version delivers events in the shape they are published in, whatever stands here");
    }
}

/// Warns of a field that is read and not followed.
pub(super) fn unused(fields: &Fields<'_>, field: &'static str) {
    if fields.given(field).is_some()
        && let Some(key) = fields.key(field)
    {
        key.warn(format!("{field} is not used here"));
    }
}

fn webhook(fields: &Fields<'_>, destinations: &Destinations<'_>) -> Option<Url> {
    // A resource that is read back has the base of the address alone: the rest may hold secrets.
    let base = fields.given("endpointBaseUrl");
    let cursor = match (fields.given("endpointUrl"), base) {
        (Some(cursor), _) | (None, Some(cursor)) => cursor,
        (None, None) => fields.required("endpointUrl")?,
    };
    match destinations.resolve(cursor.text()?, &cursor) {
        Resolved::Target(Target::Endpoint(url)) => Some(url),
        Resolved::Reported => None,
        Resolved::Target(Target::Container(_)) | Resolved::Unknown => {
            cursor.error(Message::new("not the address of a webhook").help("http://… or https://…"));
            None
        }
    }
}

fn resource(fields: &Fields<'_>, destinations: &Destinations<'_>) -> Option<Url> {
    let cursor = fields.required("resourceId")?;
    let id = cursor.text()?;
    match destinations.resolve(id, &cursor) {
        Resolved::Target(Target::Endpoint(url)) => Some(url),
        Resolved::Reported => None,
        Resolved::Target(Target::Container(_)) | Resolved::Unknown => {
            let message = Message::new("what this resource is here has to stand in a Destinations document");
            cursor.error(message.help(format!("spec: {{\"{id}\": https://…}}")));
            None
        }
    }
}

/// Event Grid, "output batching": 1 to 5,000 events, 1 to 1,024 KB.
fn batching(fields: &Fields<'_>) {
    let events = fields.given("maxEventsPerBatch");
    let size = fields.given("preferredBatchSizeInKilobytes");
    let most = events.as_ref().map(|cursor| cursor.integer(1..=5_000));
    let preferred = size.as_ref().map(|cursor| cursor.integer(1..=1_024));
    let asked = match (most, preferred) {
        (Some(Some(2..)), _) => events,
        (None, Some(Some(_))) => size,
        (_, _) => None,
    };
    if let Some(cursor) = asked {
        cursor.warn("this version delivers each event in a request of its own");
    }
}

fn header(fields: &Fields<'_>) -> Option<(String, String)> {
    let name = fields.required("name").and_then(|cursor| headers::name(&cursor));
    let kind = fields.required("type")?;
    if words::read(&kind, &["Static", "Dynamic"])? == "Dynamic" {
        fields.accept(&["properties"]);
        kind.unsupported("a dynamic delivery property");
        return None;
    }
    let value = fields.required("properties")?.mapping(|properties| {
        let secret = properties.given("isSecret");
        if let Some(secret) = secret.filter(|secret| secret.boolean() == Some(true)) {
            properties.accept(&["value"]);
            secret.unsupported("a secret delivery property");
            return None;
        }
        properties.required("value").and_then(|cursor| headers::value(&cursor))
    })?;
    Some((name?, value?))
}
