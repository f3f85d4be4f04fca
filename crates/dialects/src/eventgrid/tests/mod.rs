use std::sync::Arc;

use super::super::{Reading, Source, read};
use crate::tests::support::names;
use delivery::event::envelope::decode;
use delivery::event::schema::Schema;
use delivery::event::{Element, Input};
use delivery::subscription::dead_letter_format::Response;
use delivery::subscription::header::{Header, Value};
use delivery::subscription::profile::{Dialect, Profile};
use delivery::subscription::sink::{Container, Sink};
use delivery::subscription::{
    BATCH_BYTES, Batch, DeadLetterPolicy, Destination, OnRefused, Subscription,
};
use delivery::time::duration::{DAY_MS, MINUTE_MS, SECOND_MS};

mod exports;
mod filters;
mod kinds;
mod refused;
mod templates;

const ID: &str =
    "/subscriptions/s/resourceGroups/g/providers/Microsoft.EventGrid/topics/t/eventSubscriptions/n";
const S2: &str = include_str!("../../../fixtures/eventgrid-kubernetes.json");
const S3: &str = include_str!("../../../fixtures/eventgrid.json");
const S4: &str = include_str!("../../../fixtures/eventgrid-namespace.json");
const DESTINATIONS: &str = include_str!("../../../fixtures/eventgrid-destinations.yaml");

fn read_files(texts: &[&str]) -> Reading {
    let files: Vec<Source<'_>> =
        texts.iter().map(|text| Source { name: "folder/f.yaml", text }).collect();
    read(&files)
}

fn shown(reading: &Reading) -> Vec<String> {
    let findings = reading.findings.iter().map(ToString::to_string);
    findings.map(|finding| finding.trim_start_matches("folder/f.yaml:").to_owned()).collect()
}

/// Returns the only subscription of these texts and the findings. Fails if the texts have an error.
fn loaded(texts: &[&str]) -> (Arc<Subscription>, Vec<String>) {
    let reading = read_files(texts);
    let found = shown(&reading);
    let catalogue = reading.into_result().unwrap_or_else(|_| panic!("{texts:?}: {found:#?}"));
    let mut subscriptions = catalogue.subscriptions();
    let subscription =
        Arc::clone(subscriptions.next().unwrap_or_else(|| panic!("no subscription in {texts:?}")));
    assert!(subscriptions.next().is_none());
    (subscription, found)
}

/// A webhook resource in one line of YAML, with additional fields in its properties and around
/// them.
fn webhook(properties: &str, around: &str) -> String {
    format!(
        "{{id: {ID}, properties: {{destination: {{endpointType: WebHook, properties: {{endpointUrl: 'http://h/'}}}}\
         {properties}}}{around}}}"
    )
}

fn push(fields: &str) -> String {
    format!(
        "{{name: n, lastmile: {{topic: a/b}}, properties: {{deliveryConfiguration: {{deliveryMode: Push, push: \
         {{destination: {{endpointType: WebHook, properties: {{endpointUrl: 'http://h/'}}}}{fields}}}}}}}}}"
    )
}

#[test]
fn missing_values_are_those_of_the_dialects_profile() {
    let resource = "{id: /subscriptions/s/resourceGroups/g/providers/P/a/t/eventSubscriptions/n, properties: \
                    {destination: {endpointType: EventHub, properties: {resourceId: /hub}}}}\n---\n\
                    {apiVersion: lastmile.dev/v1, kind: Destinations, spec: {/hub: 'http://h/'}}";
    for (text, dialect, delay_ms) in [
        (webhook("", ""), Dialect::EventGrid, 5 * MINUTE_MS),
        (resource.to_owned(), Dialect::EventGridResource, 5 * MINUTE_MS),
        (push(""), Dialect::EventGridNamespace, 0),
        (webhook("", ", apiVersion: 2020-10-15-Preview"), Dialect::EventGridKubernetes, 0),
    ] {
        let (subscription, findings) = loaded(&[&text]);
        let profile = Profile::for_dialect(dialect);
        let is_concluded = dialect == Dialect::EventGridKubernetes;
        assert_eq!(findings.len(), usize::from(is_concluded), "{text}: {findings:?}");
        assert_eq!(subscription.dialect, dialect);
        assert_eq!(subscription.retry, profile.retry);
        assert_eq!(subscription.destination.url.as_str(), "http://h/");
        assert_eq!(subscription.destination.response_timeout_ms, profile.response_timeout_ms);
        let policy = &subscription.dead_letter;
        assert_eq!(
            policy,
            &DeadLetterPolicy { delay_ms, ..DeadLetterPolicy::for_profile(&profile) }
        );
        assert_eq!(subscription.expires_ms, None);
        assert_eq!((subscription.batch, &subscription.destination.consent), (None, &None));
        let Destination { late_window_ms, probation, schema, notification_headers, .. } =
            &subscription.destination;
        assert_eq!((*late_window_ms, *probation), (profile.late_window_ms, profile.probation));
        assert!(schema.is_none() && *notification_headers);
    }
}

#[test]
fn the_schema_may_be_in_either_place() {
    let inside = |word: &str| {
        webhook("", "").replace("'http://h/'", &format!("'http://h/', eventDeliverySchema: {word}"))
    };
    for (word, schema) in [
        ("EventGridSchema", Some(Schema::EventGrid)),
        ("CloudEventSchemaV1_0", Some(Schema::CloudEventsStructured)),
        ("customInputSchema", Some(Schema::Custom)),
        ("null", None),
    ] {
        let outer = format!(", eventDeliverySchema: {word}");
        let both = inside(word).replace("}}}, ", "}}").replace("}}}}", &format!("}}}}{outer}}}}}"));
        for text in [webhook(&outer, ""), inside(word), both] {
            let stated = format!("lastmile: {{dialect: eventgrid}}, {}", &text[1..]);
            let (subscription, findings) = loaded(&[&format!("{{{stated}")]);
            assert_eq!(findings, Vec::<String>::new(), "{text}");
            assert_eq!(subscription.destination.schema, schema, "{text}");
        }
    }
}

/// A webhook with these fields beside its URL.
fn with_fields(fields: &str, around: &str) -> String {
    webhook("", around).replace("'http://h/'", &format!("'http://h/', {fields}"))
}

#[test]
fn batches_are_what_was_asked_for_and_an_export_of_the_defaults_asks_for_none() {
    let split = |max_events, preferred_bytes| {
        Some(Batch { max_events, preferred_bytes, on_refused: OnRefused::Split })
    };
    for (fields, expected) in [
        ("maxEventsPerBatch: 1, preferredBatchSizeInKilobytes: 64", None),
        ("maxEventsPerBatch: 1", None),
        ("maxEventsPerBatch: null, preferredBatchSizeInKilobytes: null", None),
        ("maxEventsPerBatch: 10", split(10, BATCH_BYTES)),
        ("preferredBatchSizeInKilobytes: 64", split(5_000, BATCH_BYTES)),
        (
            "maxEventsPerBatch: 5000, preferredBatchSizeInKilobytes: 1024",
            split(5_000, 1_024 * 1_024),
        ),
    ] {
        let (subscription, findings) = loaded(&[&with_fields(fields, "")]);
        assert_eq!((subscription.batch, findings), (expected, Vec::new()), "{fields}");
    }
    let limited = with_fields("maxEventsPerBatch: 10", ", lastmile: {maxPerSecond: 20}");
    assert_eq!(loaded(&[&limited]).0.destination.max_per_second, Some(20));
    let kept = with_fields(
        "maxEventsPerBatch: 1",
        ", lastmile: {hidePath: true, deadLetterResponse: none}",
    );
    let (subscription, _) = loaded(&[&kept]);
    assert!(subscription.destination.hide_path && subscription.dead_letter.hide_path);
    assert_eq!(subscription.dead_letter.response, Response::None);
    let strict = with_fields("maxEventsPerBatch: 10", ", lastmile: {onRefused: all}");
    let on_refused = loaded(&[&strict]).0.batch.map(|batch| batch.on_refused);
    assert_eq!(on_refused, Some(OnRefused::All));
    let reading = read_files(&[&strict]);
    let origins = reading.origins.values().next().unwrap();
    assert!(
        origins.contains_key("batch.maxEvents") && origins.contains_key("batch.onRefused"),
        "{origins:?}"
    );
    assert!(!origins.contains_key("batch.preferredKilobytes"), "{origins:?}");
}

#[test]
fn custom_delivery_properties_are_static_concealed_or_from_the_event() {
    let mappings = "[{name: a, type: Static, properties: {value: x}}, \
                    {name: b, type: static, properties: {value: x, isSecret: false}}, \
                    {name: c, type: Static, properties: {value: hush, isSecret: true}}, \
                    {name: d, type: Dynamic, properties: {sourceField: data.foo}}, \
                    {name: e, type: Dynamic, properties: {sourceField: id}}]";
    let text = webhook("", "")
        .replace("'http://h/'", &format!("'http://h/', deliveryAttributeMappings: {mappings}"));
    let (subscription, findings) = loaded(&[&text]);
    assert_eq!(findings, Vec::<String>::new());
    let header = |name: &str, value| Header { name: name.to_owned(), value };
    assert_eq!(
        subscription.destination.headers,
        [
            header("a", Value::Static("x".to_owned())),
            header("b", Value::Static("x".to_owned())),
            header("c", Value::Concealed("hush".to_owned())),
            header("d", Value::Path("$.data.foo".parse().unwrap())),
            header("e", Value::Path("$.id".parse().unwrap())),
        ]
    );
    assert!(!format!("{subscription:?}").contains("hush"));
}

#[test]
fn the_sample_for_kubernetes_loads_when_completed() {
    let (subscription, findings) = loaded(&[S2]);
    assert_eq!(
        findings,
        [
            "9:28: warning: properties.destination.properties.eventDeliverySchema: read as Event \
             Grid on Kubernetes: its time to live, waits and rules for statuses apply; confirm with \
             \"lastmile\": {\"dialect\": \"eventgrid-kubernetes\"}, or use \"eventgrid\" for \
             Event Grid in Azure",
            "9:28: warning: properties.destination.properties.eventDeliverySchema: spaces around \"CloudEventSchemaV1_0\" are ignored",
        ]
    );
    assert_eq!(
        (subscription.name.to_string().as_str(), subscription.dialect),
        ("shop/orders/billing", Dialect::EventGridKubernetes)
    );
    assert_eq!(subscription.destination.schema, Some(Schema::CloudEventsStructured));
    assert_eq!(
        (subscription.retry.max_attempts, subscription.retry.time_to_live_ms),
        (3, Some(30 * MINUTE_MS))
    );
}

#[test]
fn the_values_of_event_grids_page_load_as_a_resource() {
    let (subscription, findings) = loaded(&[S3, DESTINATIONS]);
    assert_eq!(findings, Vec::<String>::new());
    let batch =
        Batch { max_events: 1_000, preferred_bytes: 512 * 1_024, on_refused: OnRefused::Split };
    assert_eq!(subscription.batch, Some(batch));
    assert_eq!(
        (subscription.name.to_string().as_str(), subscription.dialect),
        ("shop/uploads/site", Dialect::EventGrid)
    );
    let container = Container { bucket: "dead-letters".to_owned(), prefix: "shop".to_owned() };
    assert_eq!(subscription.dead_letter.sink, Sink::Container(container));
}

#[test]
fn the_sample_of_namespaces_loads_inside_a_push_subscription() {
    let (subscription, findings) = loaded(&[S4, DESTINATIONS]);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].contains("identity has no effect"), "{findings:?}");
    assert_eq!(subscription.name.to_string(), "mynamespace/mytopic/f");
    assert_eq!(subscription.dialect, Dialect::EventGridNamespace);
    assert_eq!(
        (subscription.retry.max_attempts, subscription.retry.time_to_live_ms),
        (3, Some(DAY_MS))
    );
    assert_eq!(subscription.dead_letter.keep_trying_for_ms, 2 * DAY_MS);
    assert!(
        matches!(&subscription.dead_letter.sink, Sink::Container(container) if container.bucket == "dead-letters")
    );
    let headers = [("Custom-Header-1", "value1"), ("Custom-Header-2", "34")];
    let header = |(name, value): (&str, &str)| Header {
        name: name.to_owned(),
        value: Value::Static(value.to_owned()),
    };
    assert_eq!(subscription.destination.headers, headers.map(header));
}

/// Fields of a resource, its properties, and the dialect and the name of its subscription.
const RESOURCES: [(&str, &str, &str, &str); 19] = [
    ("id: GRID/topics/t/eventSubscriptions/x", TARGET, AZURE, "g/t/f"),
    (
        "id: GRID/topics/t/providers/Microsoft.EventGrid/eventSubscriptions/x\nname: n",
        TARGET,
        AZURE,
        "g/t/n",
    ),
    ("id: GRID/domains/d/topics/t/eventSubscriptions/x\nname: n", TARGET, AZURE, "d/t/n"),
    ("id: GRID/domains/d/eventSubscriptions/x\nname: n", TARGET, AZURE, "g/d/n"),
    ("id: GRID/eventSubscriptions/n", TARGET, AZURE, "g/g/f"),
    (
        "id: GRID/namespaces/ns/topics/t/eventSubscriptions/x\nname: n",
        PUSHED,
        "eventgrid-namespace",
        "ns/t/n",
    ),
    (
        "type: Microsoft.EventGrid/namespaces/topics/eventSubscriptions\nname: ns/t/n",
        PUSHED,
        "eventgrid-namespace",
        "ns/t/n",
    ),
    ("topic: GRID/topics/t", TARGET, AZURE, "g/t/f"),
    ("topic: GROUP", TARGET, AZURE, "g/g/f"),
    ("scope: GROUP/providers/Microsoft.Storage/storageAccounts/a", TARGET, AZURE, "g/a/f"),
    ("scope: Microsoft.Storage/storageAccounts/a\nresourceGroup: g", TARGET, AZURE, "g/a/f"),
    ("scope: GRID/domains/d/topics/t", TARGET, AZURE, "d/t/f"),
    (
        "type: microsoft.eventgrid/topics/eventsubscriptions\nname: t/n\nlastmile: {topic: a/b}",
        TARGET,
        AZURE,
        "a/b/n",
    ),
    (
        "id: GRID/topics/t/eventSubscriptions/x\nname: n\nlastmile: {topic: a/b}",
        TARGET,
        AZURE,
        "a/b/n",
    ),
    ("lastmile: {topic: a/b, name: c}", TARGET, AZURE, "a/b/c"),
    ("lastmile: {topic: a/b, name: c}\nname: n", TARGET, AZURE, "a/b/c"),
    (
        "lastmile: {topic: a/b, dialect: eventgrid-kubernetes}",
        TARGET,
        "eventgrid-kubernetes",
        "a/b/f",
    ),
    (
        "lastmile: {topic: a/b, dialect: eventgrid-namespace}",
        TARGET,
        "eventgrid-namespace",
        "a/b/f",
    ),
    (
        "apiVersion: 2020-10-15-preview\nlastmile: {topic: a/b, dialect: eventgrid}",
        TARGET,
        AZURE,
        "a/b/f",
    ),
];
const AZURE: &str = "eventgrid";
const TARGET: &str =
    "{destination: {endpointType: WebHook, properties: {endpointUrl: 'http://h/'}}}";
const PUSHED: &str = "{deliveryConfiguration: {deliveryMode: Push, push: {destination: {endpointType: WebHook, \
                      properties: {endpointUrl: 'http://h/'}}}}}";

#[test]
fn dialect_and_name_follow_from_the_resource_unless_lastmile_names_others() {
    for (around, properties, dialect, name) in RESOURCES {
        let group = "/subscriptions/s/resourceGroups/g";
        let around = around
            .replace("GRID", &format!("{group}/providers/Microsoft.EventGrid"))
            .replace("GROUP", group);
        for text in [
            format!("{around}\nproperties: {properties}"),
            format!("properties: {properties}\n{around}"),
        ] {
            let (subscription, findings) = loaded(&[&text]);
            let name_read = subscription.name.to_string();
            assert_eq!(findings, [""; 0], "{text}");
            assert_eq!((subscription.dialect.as_str(), &*name_read), (dialect, name), "{text}");
        }
    }
}

#[test]
fn a_template_is_its_event_subscriptions() {
    let schema = "$schema: https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#\n\
                  contentVersion: 1.0.0.0\nparameters: {}\n";
    let properties = "properties: {destination: {endpointType: WebHook, properties: {endpointUrl: 'http://h/'}}}";
    let text = format!(
        "{schema}resources:\n- {{type: Microsoft.EventGrid/topics, name: t}}\n\
         - {{type: Microsoft.EventGrid/topics/eventSubscriptions, name: t/one, dependsOn: ['[x()]'], lastmile: {{topic: a/b}}, {properties}}}\n\
         - {{type: Microsoft.EventGrid/topics/eventSubscriptions, name: t/two, lastmile: {{topic: a/b}}, \
         properties: {{destination: {{endpointType: WebHook, properties: {{endpointUrl: \"[parameters('e')]\"}}}}}}}}\n\
         - type: Microsoft.EventGrid/namespaces\n  name: ns\n  resources:\n  - type: topics\n    name: tt\n    resources:\n    \
         - {{type: eventSubscriptions, name: three, properties: {{deliveryConfiguration: {{deliveryMode: Push, push: \
         {{destination: {{endpointType: WebHook, properties: {{endpointUrl: 'http://h/'}}}}}}}}}}}}\n"
    );
    let reading = read_files(&[&text]);
    assert_eq!(names(&reading), ["a/b/one", "ns/tt/three"]);
    let found = shown(&reading);
    assert_eq!(found.len(), 4, "{found:#?}");
    assert!(
        found[0].contains("5:3: warning: resources[0]: \"Microsoft.EventGrid/topics\" is ignored"),
        "{found:#?}"
    );
    assert!(
        found[1].contains("7:")
            && found[1].contains("endpointUrl: template expressions are not evaluated")
    );
    assert!(
        found[2].contains("resources[3]: \"Microsoft.EventGrid/namespaces\" is ignored"),
        "{found:#?}"
    );
}

#[test]
fn limits_and_overrides_are_read_with_their_positions() {
    let text = "{\n\"id\": \"/subscriptions/s/resourceGroups/g/providers/P/a/t/eventSubscriptions/n\",\n\
                \"lastmile\": {\"retryOn\": [404], \"neverRetry\": [204, 500]},\n\"properties\": {\n\
                \"destination\": {\"endpointType\": \"webhook\", \"properties\": {\"endpointBaseUrl\": \"http://h/\", \
                \"deliveryAttributeMappings\": []}},\n\
                \"retryPolicy\": {\"maxNumberOfAttempts\": 7, \"eventTimeToLiveInMinutes\": 5},\n\
                \"expirationTimeUtc\": \"1970-01-01T00:00:01Z\", \"eventDeliverySchema\": \"EventGridSchema\",\n\
                \"deadLetterWithResourceIdentity\": {\"deadLetterDestination\": {\"endpointType\": \"StorageBlob\", \
                \"properties\": {\"resourceId\": \"s3://letters\", \"deliveryRetryPeriodInDays\": 1}}}\n}}";
    let reading = read_files(&[text]);
    let found = shown(&reading);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].starts_with("5:78: warning: ")
            && found[0].contains("an exported URL has no query")
    );
    let subscription = reading.catalogue.subscriptions().next().unwrap();
    assert_eq!(
        (subscription.retry.max_attempts, subscription.retry.time_to_live_ms),
        (7, Some(5 * MINUTE_MS))
    );
    assert_eq!(
        [404, 500, 204].map(|status| subscription.retry.never_retry.contains(status)),
        [false, true, true]
    );
    assert!(!subscription.retry.success.contains(204));
    assert_eq!(subscription.expires_ms, Some(SECOND_MS));
    assert_eq!(subscription.dead_letter.keep_trying_for_ms, DAY_MS);
    let origins = &reading.origins[&subscription.name];
    let stated: Vec<(&str, &str)> =
        origins.iter().map(|(field, at)| (field.as_str(), at.as_str())).collect();
    assert_eq!(
        stated,
        [
            ("deadLetter.keepTryingFor", "folder/f.yaml:8:167"),
            ("deadLetter.sink", "folder/f.yaml:8:122"),
            ("headers", "folder/f.yaml:5:120"),
            ("maxAttempts", "folder/f.yaml:6:40"),
            ("neverRetry", "folder/f.yaml:3:46, folder/f.yaml:3:25"),
            ("retryOn", "folder/f.yaml:3:25"),
            ("schema", "folder/f.yaml:7:69"),
            ("success", "folder/f.yaml:3:46, folder/f.yaml:3:25"),
            ("timeToLive", "folder/f.yaml:6:71"),
            ("url", "folder/f.yaml:5:78"),
        ]
    );
}

/// Returns true if the filter of a subscription matches an event.
fn takes(subscription: &Subscription, event: &str) -> bool {
    match decode(&event.into(), Input::Auto).as_slice() {
        [Element::Event(event)] => subscription.filter.takes(&event.members()),
        other => panic!("{other:?}"),
    }
}
