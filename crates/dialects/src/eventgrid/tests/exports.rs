//! Exported resources: flat, in lists, of any source.

use super::{ID, Source, loaded, read, read_files, shown, webhook};
use crate::tests::support::names;
use delivery::subscription::Concurrency;
use delivery::subscription::dead_letter_format::{DeadLetterFormat, Format};
use delivery::subscription::header::{Header, Value};
use delivery::subscription::profile::{Dialect, Profile};
use delivery::subscription::sink::Sink;
use delivery::subscription::{Batch, DeadLetterPolicy, OnRefused};
use delivery::time::duration::{DAY_MS, MINUTE_MS, SECOND_MS};

/// A resource as the command line prints it: without `properties` at any level, and with `null` for
/// every unset value.
const FLAT: &str = r#"{
  "deadLetterDestination": {"endpointType": "StorageBlob", "resourceId": "/subscriptions/s/acc", "blobContainerName": "c"},
  "deadLetterWithResourceIdentity": null, "deliveryWithResourceIdentity": null, "futureField": null,
  "destination": {"endpointType": "WebHook", "endpointUrl": "https://h/in", "endpointBaseUrl": "https://h/in",
    "deliveryAttributeMappings": [{"name": "a", "type": "Static", "value": "x", "isSecret": false},
                                  {"name": "b", "type": "Dynamic", "sourceField": "data.b"}],
    "maxEventsPerBatch": 10, "preferredBatchSizeInKilobytes": null, "minimumTlsVersionAllowed": null},
  "eventDeliverySchema": "EventGridSchema", "expirationTimeUtc": null, "labels": null,
  "filter": {"advancedFilters": null, "includedEventTypes": ["A"], "subjectBeginsWith": "", "isSubjectCaseSensitive": null},
  "id": "/subscriptions/s/resourceGroups/g/providers/Microsoft.EventGrid/topics/t/providers/Microsoft.EventGrid/eventSubscriptions/n",
  "name": "n", "provisioningState": "Succeeded", "resourceGroup": "g", "systemData": null,
  "retryPolicy": {"eventTimeToLiveInMinutes": 60, "maxDeliveryAttempts": 7},
  "topic": "/subscriptions/s/resourceGroups/g/providers/microsoft.eventgrid/topics/t",
  "type": "Microsoft.EventGrid/eventSubscriptions"
}"#;

/// Returns the bucket of dead letters.
fn bucket(policy: &DeadLetterPolicy) -> &str {
    let Sink::Container(container) = &policy.sink else { panic!("{policy:?}") };
    &container.bucket
}

#[test]
fn a_flat_resource_is_read_like_one_with_properties() {
    let mapped = "{apiVersion: lastmile.dev/v1, kind: Destinations, spec: \
                  {/subscriptions/s/acc/blobServices/default/containers/c: 's3://here'}}";
    let (subscription, findings) = loaded(&[FLAT, mapped]);
    assert_eq!(findings, Vec::<String>::new());
    assert_eq!(
        (subscription.name.to_string().as_str(), subscription.dialect),
        ("g/t/n", Dialect::EventGrid)
    );
    assert_eq!(
        (subscription.retry.max_attempts, subscription.retry.time_to_live_ms),
        (7, Some(60 * MINUTE_MS))
    );
    let batch = Batch { max_events: 10, preferred_bytes: 64 * 1_024, on_refused: OnRefused::Split };
    assert_eq!(subscription.batch, Some(batch));
    let header = |name: &str, value| Header { name: name.to_owned(), value };
    assert_eq!(
        subscription.destination.headers,
        [
            header("a", Value::Static("x".to_owned())),
            header("b", Value::Path("$.data.b".parse().unwrap()))
        ]
    );
    assert_eq!(bucket(&subscription.dead_letter), "here");
    assert!(super::takes(
        &subscription,
        r#"{"specversion":"1.0","id":"1","source":"s","type":"A"}"#
    ));
    assert!(!super::takes(
        &subscription,
        r#"{"specversion":"1.0","id":"1","source":"s","type":"B"}"#
    ));
}

#[test]
fn arrays_and_rest_lists_are_their_resources() {
    let other = FLAT.replace(r#""name": "n""#, r#""name": "m""#);
    for text in [
        format!("[{FLAT}, {other}]"),
        format!(r#"{{"value": [{FLAT}, {other}]}}"#),
        format!(r#"[{{"value": [{FLAT}, {other}], "nextLink": null}}]"#),
    ] {
        let reading = read_files(&[&text]);
        assert_eq!(names(&reading), ["g/t/m", "g/t/n"], "{:#?}", shown(&reading));
    }
    let found =
        shown(&read_files(&[&format!(r#"{{"value": [{FLAT}], "nextLink": "https://n/"}}"#)]));
    assert!(
        found[0].starts_with("1:1: warning: the list is incomplete: it continues at its nextLink"),
        "{found:#?}"
    );
    assert_eq!(shown(&read_files(&[r#"{"value": []}"#])), Vec::<String>::new());
}

#[test]
fn without_a_namespace_a_source_names_no_topic() {
    let target = "properties: {destination: {endpointType: WebHook, properties: {endpointUrl: 'http://h/'}}}";
    for (around, problem) in [
        (
            "scope: Microsoft.Storage/storageAccounts/a, ",
            "1:9: error: scope: the namespace of the topic a is unknown, because the resource \
             group is missing; add \"lastmile\": {\"topic\": \"namespace/a\"} next to properties",
        ),
        (
            "",
            "1:1: error: the topic of this subscription is missing: no id, topic, scope or \
             lastmile names it; add \"lastmile\": {\"topic\": \"namespace/topic\"} next to \
             properties",
        ),
    ] {
        assert_eq!(shown(&read_files(&[&format!("{{{around}{target}}}")])), [problem]);
    }
}

#[test]
fn only_custom_topics_are_read_as_those_of_kubernetes() {
    let grid = "/subscriptions/s/resourceGroups/g/providers/Microsoft.EventGrid";
    let version = ", apiVersion: 2020-10-15-preview";
    let export = |id: &str| webhook("", version).replace(ID, id);
    for id in [
        format!("{grid}/systemTopics/t/eventSubscriptions/n"),
        format!("{grid}/domains/d/topics/t/eventSubscriptions/n"),
        format!("{grid}/eventSubscriptions/n"),
        "/subscriptions/s/resourceGroups/g/providers/Microsoft.EventHub/namespaces/h/providers/Microsoft.EventGrid/eventSubscriptions/n".to_owned(),
    ] {
        let (subscription, findings) = loaded(&[&export(&id)]);
        assert_eq!((subscription.dialect, findings), (Dialect::EventGrid, vec![]), "{id}");
        let inside = export(&id).replace("'http://h/'", "'http://h/', eventDeliverySchema: EventGridSchema");
        assert_eq!(loaded(&[&inside]).0.dialect, Dialect::EventGrid, "{id}");
    }
    let (subscription, findings) =
        loaded(&[&export(&format!("{grid}/topics/t/eventSubscriptions/n"))]);
    assert_eq!(subscription.dialect, Dialect::EventGridKubernetes);
    assert!(
        findings.len() == 1 && findings[0].contains("apiVersion: read as Event Grid on Kubernetes"),
        "{findings:?}"
    );
    let stated = webhook("", &format!("{version}, lastmile: {{dialect: eventgrid-kubernetes}}"));
    assert_eq!(loaded(&[&stated]).1, Vec::<String>::new());
}

#[test]
fn filters_that_kubernetes_lacks_are_warnings_and_work() {
    let filter = ", filter: {enableAdvancedFilteringOnArrays: true, advancedFilters: [\
                  {key: data.a, operatorType: StringNotContains, values: [x]}, {key: data.a, operatorType: IsNotNull}, \
                  {key: data.a, operatorType: StringIn, values: [y]}]}";
    let (subscription, findings) =
        loaded(&[&webhook(filter, ", lastmile: {dialect: eventgrid-kubernetes}")]);
    assert_eq!(findings.len(), 3, "{findings:#?}");
    assert!(findings[0].contains(
        "enableAdvancedFilteringOnArrays: Event Grid on Kubernetes does not support filters on \
         arrays"
    ));
    assert!(findings[1].contains(
        "[0].operatorType: Event Grid on Kubernetes does not support the operator \
         \"StringNotContains\""
    ));
    assert!(findings[2].contains("[1].operatorType: ") && findings[2].contains("\"IsNotNull\""));
    let event = |a: &str| {
        format!(
            r#"{{"specversion":"1.0","id":"1","source":"s","type":"t","data":{{"a":["{a}"]}}}}"#
        )
    };
    assert!(super::takes(&subscription, &event("y")) && !super::takes(&subscription, &event("z")));
    assert_eq!(loaded(&[&webhook(filter, "")]).1, Vec::<String>::new());
}

#[test]
fn queues_of_one_account_are_told_apart() {
    let queue = |name: &str, account: &str, queue: &str| {
        format!(
            "{{name: {name}, lastmile: {{topic: a/b}}, properties: {{destination: {{endpointType: StorageQueue, \
             properties: {{resourceId: {account}, queueName: {queue}}}}}}}}}"
        )
    };
    let account = "/subscriptions/s/providers/Microsoft.Storage/storageAccounts/acc";
    let queues = format!("{account}/queueServices/default/queues");
    let mapped = format!(
        "{{apiVersion: lastmile.dev/v1, kind: Destinations, spec: {{{queues}/one: 'http://one/', {queues}/two: 'http://two/'}}}}"
    );
    let texts = [queue("x", account, "one"), queue("y", &format!("{account}/"), "Two"), mapped];
    let reading = read_files(&texts.each_ref().map(String::as_str));
    assert_eq!(shown(&reading), Vec::<String>::new());
    let urls: Vec<String> = reading
        .catalogue
        .subscriptions()
        .map(|subscription| subscription.destination.url.to_string())
        .collect();
    assert_eq!(urls, ["http://one/", "http://two/"]);
    let reading = read_files(&[&texts[0], &texts[1]]);
    let keys: Vec<&str> = reading
        .findings
        .iter()
        .filter_map(|finding| finding.reference.as_ref().map(|reference| reference.key.as_str()))
        .collect();
    assert_eq!(keys, [format!("{queues}/one"), format!("{queues}/Two")]);
    // A complete id of a queue and a URL are used as written.
    for id in [format!("{queues}/one"), "http://one/".to_owned()] {
        assert_eq!(
            loaded(&[&queue("x", &id, "other"), &texts[2]]).0.destination.url.as_str(),
            "http://one/"
        );
    }
}

#[test]
fn an_exported_url_lacks_its_query_unless_it_is_mapped() {
    let base = webhook("", "").replace("endpointUrl", "endpointBaseUrl");
    let (_, findings) = loaded(&[&base]);
    let expected = "endpointBaseUrl: an exported URL has no query, so a secret in the query is \
                    missing; set endpointUrl to the full URL, which az prints with \
                    --include-full-endpoint-url true";
    assert!(findings.len() == 1 && findings[0].ends_with(expected), "{findings:?}");
    let mapped = "{apiVersion: lastmile.dev/v1, kind: Destinations, spec: {'http://h/': 'http://h/?code=1'}}";
    let (subscription, findings) = loaded(&[&base, mapped]);
    assert_eq!((subscription.destination.url.as_str(), findings), ("http://h/?code=1", vec![]));
    assert_eq!(loaded(&[&base.replace("http://h/", "http://h/?code=1")]).1, Vec::<String>::new());
}

#[test]
fn a_namespace_sends_cloud_events_only() {
    let schema = |name: &str| {
        super::push("").replace(
            "properties: {deliveryConf",
            &format!("properties: {{eventDeliverySchema: {name}, deliveryConf"),
        )
    };
    assert_eq!(loaded(&[&schema("CloudEventSchemaV1_0")]).1, Vec::<String>::new());
    for name in ["EventGridSchema", "CustomInputSchema"] {
        let found = shown(&read_files(&[&schema(name)]));
        let expected = "properties.eventDeliverySchema: topics of a namespace support only \
                        CloudEvents; use CloudEventSchemaV1_0, or omit the field";
        assert!(
            found.len() == 1 && found[0].contains(": error: ") && found[0].contains(expected),
            "{found:?}"
        );
    }
}

#[test]
fn the_retry_period_beside_the_dead_letter_destination_counts_and_is_named() {
    let letters = "deadLetterDestinationWithResourceIdentity: {endpointType: StorageBlob, properties: {resourceId: 's3://letters'}}";
    let (subscription, findings) =
        loaded(&[&super::push(&format!(", deliveryRetryPeriodInDays: 1, {letters}"))]);
    assert_eq!(subscription.dead_letter.keep_trying_for_ms, DAY_MS);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(
        findings[0].contains(
            "push.deliveryRetryPeriodInDays: deliveryRetryPeriodInDays should be inside the \
             dead-letter destination"
        ),
        "{findings:?}"
    );
}

#[test]
fn the_delivery_of_a_native_topic_is_between_the_dialect_and_the_resource() {
    let topic = "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: g, name: t}\nspec:\n  delivery:\n    \
                 destination: {timeout: PT5S, maxConcurrency: 3, headers: [{name: x-key, secret: 'env:KEY'}]}\n    \
                 retry: {maxAttempts: 4, timeToLive: PT1H, retryOn: [404]}\n    \
                 batch: {maxEvents: 10}\n    deadLetter: {sink: 's3://letters', format: namespace, delay: PT1M}\n    \
                 paused: true\n";
    let reading = read_files(&[&webhook("", ""), topic]);
    assert_eq!(shown(&reading), Vec::<String>::new());
    let subscription = reading.catalogue.subscriptions().next().unwrap();
    let profile = Profile::for_dialect(Dialect::EventGrid);
    assert_eq!(
        (subscription.retry.max_attempts, subscription.retry.time_to_live_ms),
        (4, Some(60 * MINUTE_MS))
    );
    assert_eq!(
        (&subscription.retry.schedule, &subscription.retry.least_waits),
        (&profile.retry.schedule, &profile.retry.least_waits)
    );
    assert!(
        !subscription.retry.never_retry.contains(404)
            && subscription.retry.never_retry.contains(403)
    );
    let destination = &subscription.destination;
    assert_eq!(destination.response_timeout_ms, 5 * SECOND_MS);
    assert_eq!(destination.max_concurrency, Concurrency::of_all(3));
    assert_eq!(
        (destination.late_window_ms, destination.probation),
        (profile.late_window_ms, profile.probation)
    );
    assert!(destination.notification_headers && subscription.paused);
    assert!(!destination.plain_json && destination.secrets().count() == 1);
    assert_eq!(subscription.batch.map(|batch| batch.max_events), Some(10));
    let letters = &subscription.dead_letter;
    assert_eq!((bucket(letters), letters.delay_ms), ("letters", MINUTE_MS));
    assert_eq!(letters.format, DeadLetterFormat::Fixed(Format::Namespace));
    assert_eq!(letters.keep_trying_for_ms, profile.keep_trying_for_ms);
    let origins = &reading.origins[&subscription.name];
    assert_eq!(origins["maxAttempts"], "folder/f.yaml:7:26");
    // The values of the resource take precedence.
    let own = ", retryPolicy: {maxDeliveryAttempts: 2}, deadLetterDestination: {endpointType: StorageBlob, properties: {resourceId: 's3://own'}}";
    let stated = webhook(own, "")
        .replace("'http://h/'", "'http://h/', maxEventsPerBatch: 1, deliveryAttributeMappings: []");
    let reading = read_files(&[&stated, topic]);
    let subscription = reading.catalogue.subscriptions().next().unwrap();
    assert_eq!(
        (subscription.retry.max_attempts, subscription.retry.time_to_live_ms),
        (2, Some(60 * MINUTE_MS))
    );
    assert_eq!((subscription.batch, subscription.destination.headers.len()), (None, 0));
    assert_eq!(bucket(&subscription.dead_letter), "own");
    assert!(reading.origins[&subscription.name]["maxAttempts"].starts_with("folder/f.yaml:1:"));
}

/// A webhook with a source of this id.
fn of_source(source: &str, name: &str) -> String {
    format!(
        "---\n{{name: {name}, topic: '{source}', type: Microsoft.EventGrid/eventSubscriptions, destination: \
         {{endpointType: WebHook, endpointUrl: 'http://h/?a'}}}}\n"
    )
}

#[test]
fn sources_of_different_ids_that_are_one_topic_are_reported_once() {
    let group = "/subscriptions/s/resourceGroups/g/providers";
    let topic = format!("{group}/Microsoft.EventGrid/topics/t");
    for (other, is_reported) in [
        (format!("{group}/Microsoft.Storage/storageAccounts/t"), true),
        (topic.replace("/s/", "/another/"), true),
        (topic.to_uppercase().replace("/G/", "/g/"), false),
        (topic.replace("topics/t", "topics/u"), false),
    ] {
        let text = of_source(&topic, "a") + &of_source(&other, "b") + &of_source(&other, "c");
        let found = shown(&read_files(&[&text]));
        if is_reported {
            assert_eq!(
                found,
                [format!(
                    "4:18: warning: topic: {other} and {topic} at folder/f.yaml:2:18 share the \
                     topic g/t: each subscription of the topic receives the events of both; add \
                     \"lastmile\": {{\"topic\": \"namespace/topic\"}} next to properties to \
                     assign another topic to one of them"
                )]
            );
        } else {
            assert_eq!(found, Vec::<String>::new());
        }
    }
}

#[test]
fn names_of_azure_ignore_case_and_the_first_spelling_counts() {
    let id = |group: &str, topic: &str| {
        format!("/subscriptions/s/{group}/providers/Microsoft.EventGrid/topics/{topic}")
    };
    let files = [
        of_source(&id("resourceGroups/Rg", "Orders"), "a"),
        of_source(&id("resourcegroups/RG", "orders"), "b"),
    ];
    assert_eq!(names(&read_files(&[&files.concat()])), ["Rg/Orders/a", "Rg/Orders/b"]);
    let native = "---\n{apiVersion: lastmile.dev/v1, kind: Topic, metadata: {namespace: rg, name: orders}}\n";
    let described = read_files(&[&(files.concat() + native)]);
    assert_eq!(names(&described), ["rg/orders/a", "rg/orders/b"]);
    assert_eq!(shown(&described), Vec::<String>::new());
}

#[test]
fn an_identity_alone_is_no_destination() {
    let identity = "WithResourceIdentity: {identity: {type: SystemAssigned}";
    for properties in [
        format!(", deadLetter{identity}}}"),
        format!(", deadLetterDestination{identity}, deadLetterDestination: null}}"),
        format!(", delivery{identity}}}"),
        format!(", delivery{identity}, destination: null}}"),
    ] {
        let (subscription, found) = loaded(&[&webhook(&properties, "")]);
        assert_eq!(subscription.dead_letter.sink, Sink::DefaultContainer, "{properties}");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with("identity has no effect"), "{found:?}");
    }
    // An identity beside a real destination is ignored.
    let beside = format!(
        ", deadLetter{identity}}}, deadLetterDestination: {{endpointType: StorageBlob, properties: {{resourceId: /s, \
         blobContainerName: c}}}}"
    );
    let mapped = "{apiVersion: lastmile.dev/v1, kind: Destinations, spec: \
                  {/s/blobServices/default/containers/c: 's3://here'}}";
    let (subscription, _) = loaded(&[&webhook(&beside, ""), mapped]);
    assert_eq!(bucket(&subscription.dead_letter), "here");
}

#[test]
fn an_expiration_may_be_without_a_zone_and_after_all_times() {
    for (text, expires_ms) in [
        ("2026-12-01T10:00:00", Some(1_796_119_200_000)),
        ("2026-12-01T10:00:00.0000000", Some(1_796_119_200_000)),
        ("2026-12-01T10:00:00Z", Some(1_796_119_200_000)),
        ("9999-12-31T23:59:59.9999999Z", None),
        ("9999-12-31T23:59:59", None),
        ("0001-01-01T00:00:00", Some(0)),
    ] {
        let (subscription, found) =
            loaded(&[&webhook(&format!(", expirationTimeUtc: '{text}'"), "")]);
        assert_eq!((subscription.expires_ms, found), (expires_ms, vec![]), "{text}");
    }
}

/// A template with comments, as people write them.
const COMMENTED: &str = r#"// ARM templates may have comments
{
  "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
  "contentVersion": "1.0.0.0", /* and these */
  "resources": [
    {
      "type": "Microsoft.EventGrid/topics/eventSubscriptions", // nested name
      "apiVersion": "2022-06-15",
      "name": "orders/billing",
      "lastmile": {"topic": "rg/orders"},
      "properties": {
        "destination": {"endpointType": "WebHook", "properties": {"endpointUrl": "https://hook.example.com/in"}},
        // only created orders
        "filter": {"includedEventTypes": ["OrderCreated"]},
        /* an hour */
        "retryPolicy": {"maxDeliveryAttempts": 5, "eventTimeToLiveInMinutes": 60},
      }
    }
  ]
}
"#;

#[test]
fn comments_in_a_template_hide_nothing() {
    for (texts, name) in
        [(vec![COMMENTED], "a.json"), (vec![COMMENTED], "a"), (vec![COMMENTED, FLAT], "a")]
    {
        let text = texts.join("\n---\n");
        let reading = read(&[Source { name, text: &text }]);
        let found = shown(&reading);
        let subscription = reading.catalogue.subscription(&"rg/orders/billing".parse().unwrap());
        let subscription = subscription.unwrap_or_else(|| panic!("{name}: {found:?}"));
        assert_eq!(
            (subscription.retry.max_attempts, subscription.retry.time_to_live_ms),
            (5, Some(60 * MINUTE_MS))
        );
        assert!(
            subscription.filter.to_string().contains("OrderCreated"),
            "{}",
            subscription.filter
        );
        assert_eq!(reading.catalogue.subscriptions().count(), texts.len(), "{found:?}");
    }
}

#[test]
fn an_entry_of_a_list_that_wants_an_old_schema_is_left_out_and_the_others_are_read() {
    let entry = |name: &str, schema: &str| {
        FLAT.replace("\"name\": \"n\"", &format!("\"name\": \"{name}\""))
            .replace("eventSubscriptions/n\"", &format!("eventSubscriptions/{name}\""))
            .replace("\"EventGridSchema\"", schema)
    };
    let resource = |name: &str, schema: &str| {
        format!(
            "{{\"type\": \"Microsoft.EventGrid/topics/eventSubscriptions\", \"name\": \"t/{name}\", \"lastmile\": {{\"topic\": \"g/t\"}}, \
             \"properties\": {{\"eventDeliverySchema\": {schema}, \"destination\": {{\"endpointType\": \"WebHook\", \
             \"properties\": {{\"endpointUrl\": \"https://h/in\"}}}}}}}}"
        )
    };
    let (old, new) = ("\"CloudEventV01Schema\"", "\"CloudEventSchemaV1_0\"");
    let template = "\"$schema\": \"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#\"";
    for text in [
        format!("[{}, {}]", entry("a", old), entry("b", new)),
        format!("{{\"value\": [{}, {}]}}", entry("a", old), entry("b", new)),
        format!("{{{template}, \"resources\": [{}, {}]}}", resource("a", old), resource("b", new)),
    ] {
        let reading = read_files(&[&text]);
        let found: Vec<String> = shown(&reading)
            .into_iter()
            .filter(|finding| finding.contains("eventDeliverySchema"))
            .collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("warning: ") && found[0].contains("is not deployed"),
            "{found:?}"
        );
        assert_eq!(names(&reading), ["g/t/b"], "{text}");
        assert!(reading.into_result().is_ok(), "{text}");
    }
    // If no entry remains, reading fails, because nothing is left to deploy.
    for text in [entry("a", old), format!("[{}, {}]", entry("a", old), entry("b", old))] {
        assert!(read_files(&[&text]).into_result().is_err(), "{text}");
    }
}
