//! Errors and warnings about resources of Event Grid: a text with `^` at the place of its one
//! finding of this severity, and below it the finding.

use super::{DESTINATIONS, ID, S2, S3, S4};
use crate::tests::support::{finds_one, rows};

/// A part of a sample, and what it is broken to.
const KUBERNETES: &str = r#"
"maxDeliveryAttempts": 3 => "maxDeliveryAttempts": ^"3"
    error: properties.retryPolicy.maxDeliveryAttempts: expected a whole number, found text; write 3, without quotes
"maxDeliveryAttempts": 3 => "maxDeliveryAttempts": ^0
    error: properties.retryPolicy.maxDeliveryAttempts: must be 1 to 1000, but is 0
InMinutes": 30 => InMinutes": ^20161
    error: properties.retryPolicy.eventTimeToLiveInMinutes: must be 1 to 20160, but is 20161
"https://b => ^"b
    error: properties.destination.properties.endpointUrl: the URL has no scheme; http://… or https://…
"https://b => ^"/subscriptions/b
    error: properties.destination.properties.endpointUrl: not the address of a webhook; http://… or https://…
" CloudEvent => ^" CloudEvents
    error: properties.destination.properties.eventDeliverySchema: "CloudEventsSchemaV1_0" is not a valid value; did you mean CloudEventSchemaV1_0?
"WebHook" => ^"WebHooks"
    error: properties.destination.endpointType: "WebHooks" is not a valid value; did you mean WebHook?
"#;

const TOPIC: &str = r#"
"maxDeliveryAttempts": 30 => "maxDeliveryAttempts": ^31
    error: properties.retryPolicy.maxDeliveryAttempts: must be 1 to 30, but is 31
InMinutes": 1440 => InMinutes": ^1441
    error: properties.retryPolicy.eventTimeToLiveInMinutes: must be 1 to 1440, but is 1441
PerBatch": 1000 => PerBatch": ^5001
    error: properties.destination.properties.maxEventsPerBatch: must be 1 to 5000, but is 5001
Kilobytes": 512 => Kilobytes": ^1025
    error: properties.destination.properties.preferredBatchSizeInKilobytes: must be 1 to 1024, but is 1025
"#;

const NAMESPACE: &str = r#"
Count": 3 => Count": ^11
    error: properties.deliveryConfiguration.push.maxDeliveryCount: must be 1 to 10, but is 11
"P1D" => ^"P8D"
    error: properties.deliveryConfiguration.push.eventTimeToLive: must be PT1M to P7D, but is "P8D"
InDays": 2 => InDays": ^3
    error: properties.deliveryConfiguration.push.deadLetterDestinationWithResourceIdentity.deliveryRetryPeriodInDays: must be 1 to 2, but is 3
"Push" => ^"Queue"
    error: properties.deliveryConfiguration.deliveryMode: pull delivery is not supported
"#;

/// Resources with `@id`, and with `@webhook` as their destination or its address `@url`.
const RESOURCES: &str = r#"
# headers
id: @id, properties: {destination: {endpointType: WebHook, properties: {@url, deliveryAttributeMappings: [{name: a, type: ^Dynamc, properties: {sourceField: data.x}}]}}}
    error: properties.destination.properties.deliveryAttributeMappings[0].type: "Dynamc" is not a valid value; did you mean Dynamic?
id: @id, properties: {destination: {endpointType: WebHook, properties: {@url, deliveryAttributeMappings: [^{name: a, properties: {value: v}}]}}}
    error: properties.destination.properties.deliveryAttributeMappings[0].type: type is missing
id: @id, properties: {destination: {endpointType: WebHook, properties: {@url, deliveryAttributeMappings: [{name: a, type: Dynamic, properties: {sourceField: ^'data.*'}}]}}}
    error: properties.destination.properties.deliveryAttributeMappings[0].properties.sourceField: not a path; a path selects one value
id: @id, properties: {destination: {endpointType: WebHook, properties: {@url, deliveryAttributeMappings: [{name: a, type: Dynamic, properties: ^{}}]}}}
    error: properties.destination.properties.deliveryAttributeMappings[0].properties.sourceField: sourceField is missing
id: @id, properties: {destination: {endpointType: WebHook, properties: {@url, deliveryAttributeMappings: [{name: a, type: Static, properties: ^{isSecret: true}}]}}}
    error: properties.destination.properties.deliveryAttributeMappings[0].properties.value: value is missing
id: @id, properties: {destination: {endpointType: WebHook, properties: {@url, deliveryAttributeMappings: [{name: a, type: Static, properties: {value: v, isSecret: ^1}}]}}}
    error: properties.destination.properties.deliveryAttributeMappings[0].properties.isSecret: expected true or false, found a whole number
id: @id, properties: {destination: {endpointType: WebHook, properties: {@url, deliveryAttributeMappings: [{name: ^aeg-x, type: Static, properties: {value: v}}]}}}
    error: properties.destination.properties.deliveryAttributeMappings[0].name: the header "aeg-x" cannot be set by a subscription
id: @id, properties: {destination: {endpointType: WebHook, properties: {@url, deliveryAttributeMappings: [^{name: x-forwarded-for, type: Dynamic, properties: {sourceField: data.a}}]}}}
    error: properties.destination.properties.deliveryAttributeMappings[0]: the header "x-forwarded-for" cannot contain a value from the event: set a fixed value, or choose another name
# addresses and topics
name: n, lastmile: {topic: a/b}, properties: {destination: {endpointType: EventHub, properties: {resourceId: ^/hub}}}
    error: properties.destination.properties.resourceId: this resource needs an address in a Destinations document; add to its spec: {"/hub": https://…}
^name: n, properties: {@webhook}
    error: the topic of this subscription is missing: no id, topic, scope or lastmile names it; add "lastmile": {"topic": "namespace/topic"}
id: @id, name: ^_n, properties: {@webhook}
    error: name: not a valid name: names that begin with _ are reserved
id: @id, lastmile: {topic: ^a}, properties: {@webhook}
    error: lastmile.topic: expected namespace/topic
# retries, schemas and the rest
id: @id, lastmile: {dialect: ^knative}, properties: {@webhook}
    error: lastmile.dialect: "knative" is not a valid value
id: @id, lastmile: {onRefused: ^all}, properties: {@webhook}
    error: lastmile.onRefused: onRefused has no effect if each event is sent in a separate request; maxEvents (maxEventsPerBatch in Event Grid) enables
id: @id, lastmile: {onRefused: ^none}, properties: {@webhook}
    error: lastmile.onRefused: "none" is not a valid value
id: @id, lastmile: {retryOn: ^[400], neverRetry: [400]}, properties: {@webhook}
    error: lastmile.retryOn: 400 is also in neverRetry
id: @id, properties: {@webhook, expirationTimeUtc: ^tomorrow}
    error: properties.expirationTimeUtc: "tomorrow" is not an RFC 3339 time
id: @id, properties: {@webhook, eventDeliverySchema: ^Avro}
    error: properties.eventDeliverySchema: "Avro" is not a valid value; known: EventGridSchema, CloudEventSchemaV1_0, CustomInputSchema
id: @id, properties: {destination: {endpointType: WebHook, properties: {@url, eventDeliverySchema: ^EventGridSchema}}, eventDeliverySchema: CustomInputSchema}
    error: properties.destination.properties.eventDeliverySchema: the properties of the subscription have a different
id: @id, properties: {@webhook, ^retrypolicy: {}}
    warning: properties.retrypolicy: unknown field "retrypolicy"; did you mean retryPolicy?
id: @id, properties: {@webhook, retryPolicy: {maxDeliveryAttempts: 1, maxNumberOfAttempts: ^2}}
    warning: properties.retryPolicy.maxNumberOfAttempts: no effect
name: n, lastmile: {topic: a/b}, properties: {deliveryConfiguration: {deliveryMode: Push, push: {@webhook, eventTimeToLive: ^PT59S}}}
    error: properties.deliveryConfiguration.push.eventTimeToLive: must be PT1M to P7D
name: n, lastmile: {topic: a/b}, properties: {deliveryConfiguration: {deliveryMode: Push, push: {@webhook, ^destinatio: {}}}}
    warning: properties.deliveryConfiguration.push.destinatio: unknown field "destinatio"; did you mean destination?
"#;

/// A resource with an error is left out, one with a warning is not.
fn is_found(marked: &str, expected: &str) {
    let reading = finds_one(marked, expected);
    let left = usize::from(expected.starts_with("warning"));
    assert_eq!(reading.catalogue.subscriptions().count(), left, "{marked}");
}

#[test]
fn each_sample_with_one_field_broken_is_refused_at_line_and_column() {
    for (sample, table) in [(S2, KUBERNETES), (S3, TOPIC), (S4, NAMESPACE)] {
        for (change, expected) in rows(table) {
            let (right, wrong) = change.split_once(" => ").expect(change);
            assert!(sample.contains(right), "{right}");
            let broken = sample.replacen(right, wrong, 1);
            is_found(&format!("{broken}\n---\n{DESTINATIONS}"), expected);
        }
    }
}

#[test]
fn what_is_wrong_or_odd_in_a_resource_is_reported_at_its_position() {
    const URL: &str = "endpointUrl: 'http://h/'";
    let webhook = format!("destination: {{endpointType: WebHook, properties: {{{URL}}}}}");
    let text = |row: &str| {
        let row = row.replace("@id", ID).replace("@webhook", &webhook).replace("@url", URL);
        // A mark before the first field is one of the whole resource.
        row.strip_prefix('^').map_or_else(|| format!("{{{row}}}"), |rest| format!("^{{{rest}}}"))
    };
    for (row, expected) in rows(RESOURCES) {
        is_found(&text(row), expected);
    }
    let eleven = (0..11).map(|n| format!("{{name: h{n}, type: Static, properties: {{value: v}}}}"));
    let eleven = eleven.collect::<Vec<_>>().join(", ");
    let row = format!(
        "id: @id, properties: {{destination: {{endpointType: WebHook, properties: {{@url, deliveryAttributeMappings: ^[{eleven}]}}}}}}"
    );
    let field = "properties.destination.properties.deliveryAttributeMappings";
    is_found(&text(&row), &format!("error: {field}: at most 10 headers are allowed, found 11"));
}
